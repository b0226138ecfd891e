"""Features of pixels that are sampled from a target with a class for every pixel."""

from dataclasses import asdict
from importlib.metadata import version

import numpy as np

from headstart.datamodules.photos.picture_decoding import formats
from headstart.datamodules.row_request import ComputeSettings, NetworkSettings, RowRequest, require_readable
from headstart.datamodules.rows import find, label_maps
from headstart.evaluation.embeddings import Job
from headstart.evaluation.sources.source_features import SourceFeatures, prefix_target
from headstart.evaluation.sources.targets import Target
from headstart.modules.networks.preprocessing import NO_CLASS
from headstart.output.errors import UserError
from headstart.store.cache import cache_folder
from headstart.store.feature_table import TABLES, FeatureTable, pack
from headstart.store.json_digest import digest_of

# Increase this whenever the same settings result in other pixels or features.
VERSION = 1


def pixel_features(job: Job, target: Target, per_photo: int, seed: int) -> SourceFeatures:
    """Compute the features of sampled pixels by a source model, running its network unless the sample is stored.

    Args:
        job: The embeddings to compute, by a network with features of every pixel.
        target: The target, whose photos have label maps.
        per_photo: Pixels of a photo, at most.
        seed: Seed of the sample.

    Returns:
        Features, logits and labels of the pixels, in the order of the photos.

    Raises:
        UserError: The model cannot be loaded or run, or a photo or label map cannot be decoded. The message names the
            target, or an option of the extraction.
    """
    network, options = job.network, job.options
    preprocessing, maps = network.preprocessing, target.photos.maps
    assert preprocessing is not None
    assert maps is not None

    resources = ComputeSettings(cache_folder(options.cache_dir), f"photos of {target.name}", options.num_workers)
    settings = NetworkSettings(options.precision, device=options.device)
    key = {
        "pixels": VERSION,
        "target": target.fingerprint,
        "per_photo": per_photo,
        "seed": seed,
        "network": network.identity,
        "preprocessing": asdict(preprocessing),
        "decoding": [target.photos.decoding, maps.decoding, sorted(formats())],
        "policy": settings.identity(preprocessing.crop),
        **{package: version(package) for package in ("numpy", "torch", "torchvision", "pillow")},
    }

    table, sample = FeatureTable(resources.cache / TABLES, key), pack([digest_of({"sample": seed})])
    with prefix_target(target.name):
        stored_rows = table.find(sample)
        if len(stored_rows.missing):
            # This imports torch, which a stored sample does not need.
            from headstart.evaluation.sources.sampled_pixels import compute_pixels

            photos = require_readable(target.photos, find(RowRequest(target.photos, preprocessing), resources))
            classes = np.asarray(require_readable(maps, label_maps(preprocessing, maps, resources)).rows)
            if (classes == NO_CLASS).all():
                raise UserError("no pixel of its label maps has a class")

            title = f"pixels of {target.name}"
            arguments = (network, photos.rows, classes, settings, per_photo, seed, title)
            table.compute_once(sample, lambda: (*compute_pixels(*arguments), {}))
            stored_rows = table.find(sample)
        stored = stored_rows.gather()

    [rows], width = np.asarray(stored.rows), stored.notes["width"]
    logits = rows[:, width:-2]
    return SourceFeatures(
        rows[:, :width],
        logits if logits.shape[1] else None,
        stored.notes["weights"],
        rows[:, -2].astype(np.int64),
        rows[:, -1].astype(np.int64),
    )

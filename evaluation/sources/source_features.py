"""Features of a target's photos, or of pixels sampled from them, by a source model, with the logits of its head."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headstart.contract.schema import ModelEntry
from headstart.datamodules.photos.picture_decoding import formats
from headstart.datamodules.row_request import ComputeSettings, NetworkSettings, RowRequest, require_readable
from headstart.datamodules.rows import find, label_maps
from headstart.evaluation.embeddings import Extraction, Job, choose_taps, embed, prefix_extraction
from headstart.evaluation.sources.scores import Metrics
from headstart.evaluation.sources.targets import Target
from headstart.metrics.transferability.baselines import SourceFacts
from headstart.metrics.transferability.left_out import divide, divide_groups
from headstart.modules.networks.preprocessing import NO_CLASS
from headstart.modules.networks.spec import CLASSIFIER_LIBRARIES, NetworkSpec, prefix_model_errors
from headstart.modules.networks.taps import SOURCE_HEAD
from headstart.output.errors import UserError
from headstart.store.feature_table import TABLES, FeatureTable, StoredRows, pack
from headstart.store.json_digest import digest_of

# Increase this whenever the same settings result in other pixels or features of pixels.
PIXELS_VERSION = 1


@dataclass(frozen=True)
class SourceFeatures:
    """Features of a target's photos, or of pixels sampled from them, by a source model.

    Attributes:
        features: float32 `[samples, features]`.
        logits: Outputs of the source head, float32 `[samples, source classes]`; None where there is no head.
        weights: SHA-256 of the loaded weights.
        labels: Class of each sample, `[samples]`: of a photo, or of a sampled pixel.
        photos: Index of each pixel's photo, `[samples]`; None where samples are photos.
    """

    features: Any
    logits: Any
    weights: str
    labels: NDArray[np.int64]
    photos: NDArray[np.int64] | None = None

    def divide(self, parts: int, seed: int) -> NDArray[np.int64]:
        """Divide the samples into parts that are left out in turn, `[samples]`; the pixels of a photo stay together."""
        if self.photos is None:
            return divide(self.labels, parts, seed)
        return divide_groups(self.photos, self.labels, parts, seed)


def source_job(entry: ModelEntry, network: NetworkSpec, target: Target, options: Extraction) -> Job:
    """Return the embeddings to compute of a target by a source model.

    Args:
        entry: The source model.
        network: Its network.
        target: The target.
        options: How features are computed.
    """
    if target.photos.maps is not None:
        return Job(replace(network, pixels=True), [], target.photos, options)
    head = [SOURCE_HEAD] if network.library in CLASSIFIER_LIBRARIES else []
    return Job(network, [*choose_taps(entry), *head], target.photos, options)


def source_features(job: Job, target: Target, stored: StoredRows | None = None) -> SourceFeatures:
    """Compute the features of a target by a source model, running its network only on photos without a stored row.

    Args:
        job: The embeddings to compute.
        target: The target.
        stored: The rows, where they are already computed.

    Returns:
        Features and logits of the target's photos, in order.

    Raises:
        UserError: The model cannot be loaded or run, or a photo cannot be decoded. The message names the target, or an
            option of the extraction.
    """
    with _prefix_target(target.name):
        table = stored or embed(job)
    width, *head = table.notes["widths"]
    logits = table.rows[:, width:] if head else None
    return SourceFeatures(table.rows[:, :width], logits, table.notes["weights"], target.photos.labels)


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

    resources = ComputeSettings(options.cache, f"photos of {target.name}", options.num_workers)
    settings = NetworkSettings(options.precision, device=options.device)
    key = {
        "pixels": PIXELS_VERSION,
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
    with _prefix_target(target.name):
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


@contextmanager
def _prefix_target(target: str) -> Iterator[None]:
    """Prefix errors with their option of the extraction, or with the target."""
    try:
        with prefix_extraction():
            yield
    except UserError as error:
        if str(error).startswith("extraction."):
            raise
        raise UserError(f"target {target!r}: {error}") from error


def source_facts(networks: Mapping[str, NetworkSpec], metrics: Metrics) -> dict[str, SourceFacts]:
    """Return the facts of source models that the metrics take, by source.

    Args:
        networks: Networks of the source models, by their names.
        metrics: The metrics.

    Raises:
        UserError: The parameters of a network are counted, and it cannot be built.
    """
    if not any("facts" in metric.data for metric in metrics.values()):
        return dict.fromkeys(networks, SourceFacts())
    # This imports torch, which stored features do not need.
    from headstart.modules.networks.build import count_parameters, known_accuracy

    facts = {}
    for name, network in networks.items():
        with prefix_model_errors(name):
            facts[name] = SourceFacts(count_parameters(network), known_accuracy(network))
    return facts

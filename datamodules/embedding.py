"""Features of pictures as an array: those that comparisons feed, from the same store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from headstart.datamodules.chosen_backbone import build_chosen
from headstart.datamodules.photos.folder_listing import report_left_out
from headstart.datamodules.photos.given_pictures import Picture, read_pictures
from headstart.datamodules.photos.pictures import Pictures
from headstart.datamodules.row_computation import best_precision, require_device
from headstart.datamodules.row_request import ComputeSettings, NetworkSettings, Precision, RowRequest, require_readable
from headstart.datamodules.rows import find
from headstart.engines.options import EngineOptions
from headstart.modules.arithmetic import set_float32_arithmetic
from headstart.modules.networks.backbone import Backbone
from headstart.modules.networks.backbone_spec import BackboneSpec
from headstart.modules.networks.spec import NetworkSpec
from headstart.output.errors import UserError, prefix_errors
from headstart.output.parser import OneLineErrorParser
from headstart.store.cache import cache_folder
from headstart.store.feature_table import COPIED, StoredRows


def embed(
    photos: str | Path | Sequence[Picture] | NDArray[np.uint8] | Pictures,
    backbone: str | Mapping[str, Any] | BackboneSpec = "mobilenet_v2",
    *,
    precision: Literal["auto", "float32", "bfloat16"] = "auto",
    device: str = "auto",
    num_workers: int | None = None,
    cache_dir: str | None = None,
    seed: int = 0,
) -> NDArray[np.float32]:
    """Compute features of pictures with a frozen backbone: what enters its classifier.

    They are those that a comparison feeds, from the same store. Rows that a comparison or another call has stored are
    reused, whatever the files are called.

    Args:
        photos: A folder: its pictures come first, then those of its folders, each in the order of their names. A file,
            or a list of files. A CSV file with the column path. A data set of the Hugging Face Hub, `hf://owner/name`,
            a folder of it, or tar shards or Parquet files. Arrays `[height, width, 3]` in uint8 as a list, or one array
            `[samples, height, width, 3]`. Or the photos of a data set, such as `DrawnPets().train()`. Labels are not
            needed.
        backbone: Name of a network, with the weights that are its library's default; or the options of
            `--data.backbone` by their names, `{"name": "resnet50", "weights": "IMAGENET1K_V2"}`.
        precision: Arithmetic of the network; `auto` takes bfloat16 where the processor or GPU gains from it.
        device: Where the network runs; `auto` takes a GPU where there is one.
        num_workers: Processes that decode; None for one per processor.
        cache_dir: Folder of the store; by default that in HEADSTART_CACHE, else one in the user's cache directory.
        seed: Seed of random weights.

    Returns:
        Features `[samples, width]`, in the order of the pictures.

    Raises:
        UserError: There are no pictures, one cannot be decoded, or there is no such network.

    Example:
        >>> from headstart.datamodules import DrawnPets
        >>> embed(DrawnPets(train_size=4).train(), {"weights": "embedded"}).shape
        (4, 1280)
    """
    pictures = read_pictures(photos, cache_folder(cache_dir))
    report_left_out(getattr(pictures, "left_out", {}), "photos")
    spec = _read_spec(backbone)
    embedded = embed_readable(pictures, spec, precision, device, num_workers, cache_dir, seed)
    with prefix_errors("photos"):
        require_readable(pictures, embedded.stored)
    return embedded.features


@dataclass(frozen=True)
class Embedded:
    """Features of pictures by one network.

    Attributes:
        stored: Features `[samples, width]`; of a black picture where one cannot be decoded, with a remark.
        backbone: The network, on the processor, where its features are too.
        network: Its definition, with its preprocessing and the SHA-256 of its weights.
        precision: Its arithmetic.
        device: The device that computed the features.
    """

    stored: StoredRows
    backbone: Backbone
    network: NetworkSpec
    precision: Precision
    device: str

    @property
    def features(self) -> NDArray[np.float32]:
        """The features in memory, `[samples, width]`."""
        return np.array(self.stored.rows)

    @property
    def unreadable(self) -> dict[int, str]:
        """Why pictures cannot be decoded, by index."""
        return self.stored.remarks

    @property
    def digest(self) -> str:
        """SHA-256 of the weights of the network."""
        assert self.network.loaded_sha256 is not None
        return self.network.loaded_sha256


def embed_readable(
    pictures: Pictures,
    chosen: BackboneSpec,
    precision: Literal["auto", "float32", "bfloat16"] = "auto",
    device: str = "auto",
    num_workers: int | None = None,
    cache_dir: str | None = None,
    seed: int = 0,
    workers: int | None = None,
    ray: str | None = None,
    copied: int = COPIED,
) -> Embedded:
    """Compute features of pictures, also where some cannot be decoded; arguments and errors as for `embed`.

    Args:
        pictures: The pictures.
        chosen: The network.
        precision: As for `embed`.
        device: As for `embed`.
        num_workers: As for `embed`.
        cache_dir: As for `embed`.
        seed: As for `embed`.
        workers: Processes that compute missing rows side by side; by default this one computes them.
        ray: Address of a Ray cluster that computes them instead.
        copied: As for `rows.find`.
    """
    set_float32_arithmetic()
    cache, is_elsewhere = cache_folder(cache_dir), ray is not None and device != "auto"
    if is_elsewhere and precision == "auto":
        raise UserError(f"precision: the best one on {device} of the cluster is not known here; give one")
    # A cluster may have devices that this machine lacks.
    target = torch.device("cpu") if is_elsewhere else require_device(NetworkSettings(device=device))
    with prefix_errors("backbone"):
        network, backbone = build_chosen(chosen, seed, target)
    arithmetic = best_precision(target) if precision == "auto" else precision
    with prefix_errors("photos"):
        pictures.packed_digests(cache)
    settings = NetworkSettings(arithmetic, folded=True, device=device if is_elsewhere else str(target))
    resources = ComputeSettings(cache, "features", num_workers, engines=EngineOptions(workers, ray))
    stored = find(RowRequest(pictures, backbone.preprocessing, settings, network), resources, copied)
    return Embedded(stored, backbone.cpu(), network, arithmetic, settings.device)


def _read_spec(backbone: str | Mapping[str, Any] | BackboneSpec) -> BackboneSpec:
    if isinstance(backbone, BackboneSpec):
        return backbone
    options = {"name": backbone} if isinstance(backbone, str) else dict(backbone)
    parser = OneLineErrorParser()
    parser.add_class_arguments(BackboneSpec, "backbone")
    spec: BackboneSpec = parser.instantiate_classes(parser.parse_object({"backbone": options})).backbone
    return spec

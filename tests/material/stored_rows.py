"""Rows of a small random network, of photos that are known by their number, and what lies in a cache."""

import hashlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
from PIL import Image

from headstart.datamodules.photos.photo_source import Photos
from headstart.datamodules.photos.pictures import Pictures
from headstart.datamodules.row_request import ComputeSettings, NetworkSettings, RowRequest
from headstart.datamodules.rows import find
from headstart.modules.networks.backbone_spec import BackboneSpec
from headstart.modules.networks.preprocessing import Preprocessing
from headstart.modules.networks.taps import Tap
from headstart.store.feature_table import TABLES, StoredRows

SMALL = Preprocessing(resize=32, crop=32)
NETWORK = BackboneSpec("mobilenet_v2", "random", {"width_mult": 0.25}, SMALL).network(0)
ON_CPU = NetworkSettings(device="cpu")
TAPS = [Tap("features.1", "pool", None), Tap("penultimate", "flatten", 1280)]


def features_of(pictures: Pictures) -> RowRequest:
    return RowRequest(pictures, SMALL, NetworkSettings(folded=True, device="cpu"), NETWORK)


WAYS: dict[str, Callable[[Pictures], RowRequest]] = {
    "embeddings": lambda pictures: RowRequest(pictures, SMALL, ON_CPU, NETWORK, TAPS),
    "features": features_of,
    "activations": lambda pictures: RowRequest(pictures, SMALL, ON_CPU, NETWORK, boundary="features.14"),
    "pixels": lambda pictures: RowRequest(pictures, SMALL),
}


def find_in(folder: Path, request: RowRequest, workers: int = 0) -> StoredRows:
    return find(request, ComputeSettings(folder, "rows", workers))


def parts_in(cache: Path) -> list[Path]:
    return sorted((cache / TABLES).glob("*/*.safetensors"))


class NumberedPhotos(Photos):
    """Photos whose colour is their number; some cannot be read.

    Args:
        count: Number of photos.
        unreadable: Those that cannot be read.
    """

    # That of other processes, which load other modules.
    _own_code = ""

    def __init__(self, count: int, unreadable: tuple[int, ...] = ()) -> None:
        self.names = [f"photo {i}" for i in range(count)]
        self.labels = np.arange(count) % 2
        self.classes = ("even", "odd")
        self.unreadable = unreadable

    def read(self, index: int) -> Image.Image:
        if index in self.unreadable:
            raise OSError(*(["no more bytes"] if index % 2 else []))
        colour = (index + 1) % 256
        return Image.new("RGB", (8, 8), (colour, colour, index // 255))

    def digest(self, index: int) -> str:
        return hashlib.sha256(f"{index} {index in self.unreadable}".encode()).hexdigest()

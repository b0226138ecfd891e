"""Rows that are computed, not stored: of photos that are known by their number, and of a network of one layer."""

import hashlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor, nn

from headstart.datamodules.photos.photo_source import Photos
from headstart.datamodules.photos.pictures import Pictures
from headstart.datamodules.row_computation import ComputedRows
from headstart.datamodules.row_policy import Policy, Resources
from headstart.modules.networks.layer_embedding import LayerEmbedding
from headstart.modules.networks.preprocessing import Preprocessing

PLAIN = Preprocessing(resize=8, crop=8, mean=(0.0, 0.0, 0.0), std=(1.0, 1.0, 1.0))
REMARK = Policy(unreadable="remark")
MakeRows = Callable[..., ComputedRows]


def pixel_rows(pictures: Pictures, preprocessing: Preprocessing, workers: int = 0) -> ComputedRows:
    return ComputedRows(pictures, range(len(pictures)), preprocessing, REMARK, Resources(Path(), "pixels", workers))


def stack(rows: ComputedRows) -> NDArray[np.float32]:
    return np.concatenate(list(rows))


def network_of(rows: ComputedRows) -> nn.Module:
    assert rows.frozen is not None
    assert isinstance(rows.frozen.network, LayerEmbedding)
    return rows.frozen.network.network


class NumberedPhotos(Photos):
    """Photos whose colour is their number; some cannot be read.

    Args:
        count: Number of photos.
        unreadable: Those that cannot be read.
    """

    def __init__(self, count: int, unreadable: tuple[int, ...] = ()) -> None:
        self.names = [f"photo {i}" for i in range(count)]
        self.labels = np.arange(count) % 2
        self.classes = ("even", "odd")
        self.unreadable = unreadable

    def read(self, index: int) -> Image.Image:
        if index in self.unreadable:
            raise OSError(*(["no more bytes"] if index % 2 else []))
        return Image.new("RGB", (8, 8), (index + 1, index + 1, index + 1))

    def digest(self, index: int) -> str:
        return hashlib.sha256(f"{index} {index in self.unreadable}".encode()).hexdigest()


class Network(nn.Module):
    """Flattens a photo; the dropout before shows whether the network is in evaluation mode."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Sequential(nn.Dropout(0.9), nn.Flatten(), nn.Linear(192, 5))

    def forward(self, photos: Tensor) -> Tensor:
        rows: Tensor = self.layer(photos)
        return rows

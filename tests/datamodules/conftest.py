"""Streams outside a trainer, on the folder of photos, and counts of the rows that are computed."""

from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from headstart.datamodules.photos.class_folders import ClassFolders
from headstart.datamodules.photos.photo_source import Photos
from headstart.datamodules.row_computation import ComputedPart, RowComputer
from headstart.datamodules.sample_stream import SampleStream
from headstart.modules.networks.backbone_spec import BackboneSpec
from headstart.modules.networks.preprocessing import Preprocessing

# A backbone that takes milliseconds per photo.
TINY = BackboneSpec("mobilenet_v2", "random", {"width_mult": 0.25}, Preprocessing(resize=32, crop=32))


@pytest.fixture
def set_up(photo_folder: Path) -> Callable[..., SampleStream]:
    """Set up a stream of the folder of photos, on the processor."""

    def make(kind: type[SampleStream], **options: Any) -> SampleStream:
        defaults = {"photos": ClassFolders(str(photo_folder)), "backbone": TINY, "max_samples": 20, "num_workers": 0}
        stream = kind(**{**defaults, **options})
        strategy = SimpleNamespace(root_device=torch.device("cpu"))
        stream.trainer = SimpleNamespace(strategy=strategy, precision="32-true")  # type: ignore[assignment]
        stream.setup("fit")
        return stream

    return make


@pytest.fixture
def computed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Collect how many rows each computation gives."""
    counts: list[int] = []
    compute = RowComputer.compute

    def count(self: RowComputer, indices: Sequence[int], *report: Any) -> ComputedPart:
        counts.append(len(indices))
        return compute(self, indices, *report)

    monkeypatch.setattr(RowComputer, "compute", count)
    return counts


@pytest.fixture
def photos(photo_folder: Path) -> Photos:
    return ClassFolders(str(photo_folder)).train()

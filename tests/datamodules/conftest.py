"""Streams outside a trainer."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from headstart.datamodules.photos.class_folders import ClassFolders
from headstart.datamodules.sample_stream import SampleStream
from headstart.modules.networks.backbone import BackboneSpec
from headstart.modules.networks.preprocessing import Preprocessing

TINY = BackboneSpec("mobilenet_v2", "random", {"width_mult": 0.25}, Preprocessing(resize=32, crop=32))


@pytest.fixture
def tiny() -> BackboneSpec:
    """A backbone that takes milliseconds per photo."""
    return TINY


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

"""Streams outside a trainer, rows of the folder of photos, and rows of a network of one layer."""

from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor, nn

from headstart.datamodules.photos.class_folders import ClassFolders
from headstart.datamodules.photos.photo_source import Photos
from headstart.datamodules.photos.pictures import Pictures
from headstart.datamodules.photos.stimuli import Stimuli
from headstart.datamodules.row_computation import ComputedPart, FrozenNetwork, RowComputer
from headstart.datamodules.row_request import Policy, Precision, Resources, RowRequest
from headstart.datamodules.rows import find as find_rows
from headstart.datamodules.sample_stream import SampleStream
from headstart.modules.networks.backbone_spec import BackboneSpec
from headstart.modules.networks.layer_embedding import LayerEmbedding
from headstart.modules.networks.preprocessing import Preprocessing
from headstart.modules.networks.spec import NetworkSpec
from headstart.modules.networks.taps import Tap
from headstart.store.feature_table import StoredRows
from headstart.tests.material.stored_rows import NETWORK, ON_CPU, TAPS, Find

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


@pytest.fixture
def find(tmp_path: Path) -> Find:
    """Ask for rows, by default of the network at its taps."""

    def ask(
        pictures: Pictures,
        network: NetworkSpec = NETWORK,
        taps: Sequence[Tap] = TAPS,
        policy: Policy = ON_CPU,
        cache: str = "cache",
    ) -> StoredRows:
        assert network.preprocessing is not None
        request = RowRequest(pictures, network.preprocessing, policy, network, taps)
        return find_rows(request, Resources(tmp_path / cache, "rows", 0))

    return ask


@pytest.fixture
def pictures(tmp_path: Path) -> Stimuli:
    generator = np.random.default_rng(0)
    paths = [tmp_path / f"{i}.png" for i in range(7)]
    for path in paths:
        Image.fromarray(generator.integers(0, 256, (8, 8, 3)).astype(np.uint8)).save(path)
    return Stimuli([f"some/{path.name}" for path in paths], paths)


PLAIN = Preprocessing(resize=8, crop=8, mean=(0.0, 0.0, 0.0), std=(1.0, 1.0, 1.0))


class Network(nn.Module):
    """Flattens a photo; the dropout before shows whether the network is in evaluation mode."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Sequential(nn.Dropout(0.9), nn.Flatten(), nn.Linear(192, 5))

    def forward(self, photos: Tensor) -> Tensor:
        rows: Tensor = self.layer(photos)
        return rows


@pytest.fixture
def make_computer(pictures: Stimuli) -> Callable[..., RowComputer]:
    torch.manual_seed(0)
    network = Network()

    def make(precision: Precision = "float32", some: Pictures = pictures, workers: int = 0) -> RowComputer:
        layers = LayerEmbedding("small", network, [Tap("layer", "flatten", 5)], PLAIN)
        frozen = FrozenNetwork("small", layers, torch.device("cpu"), layers.widths, "some")
        return RowComputer(RowRequest(some, PLAIN, Policy(precision, device="cpu")), workers, frozen)

    return make

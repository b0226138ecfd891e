"""Streams outside a trainer, rows of the folder of photos, and rows of a network of one layer."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from headstart.datamodules import rows
from headstart.datamodules.photos.class_folders import ClassFolders
from headstart.datamodules.photos.photo_source import Photos
from headstart.datamodules.photos.pictures import Pictures
from headstart.datamodules.photos.stimuli import Stimuli
from headstart.datamodules.row_computation import ComputedRows, FrozenNetwork
from headstart.datamodules.row_policy import Policy, Precision, Resources
from headstart.datamodules.sample_stream import SampleStream
from headstart.modules.networks.backbone_spec import BackboneSpec
from headstart.modules.networks.layer_embedding import LayerEmbedding
from headstart.modules.networks.preprocessing import Preprocessing
from headstart.modules.networks.spec import NetworkSpec
from headstart.modules.networks.taps import Tap
from headstart.store.row_store import StoredRows
from headstart.tests.material.computed_rows import PLAIN, MakeRows, Network
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
    compute = ComputedRows.__iter__

    def count(self: ComputedRows) -> Iterator[Any]:
        counts.append(len(self))
        return compute(self)

    monkeypatch.setattr(ComputedRows, "__iter__", count)
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
        return rows.rows(network, taps, pictures, policy, Resources(tmp_path / cache, "rows", 0))

    return ask


@pytest.fixture
def pictures(tmp_path: Path) -> Stimuli:
    generator = np.random.default_rng(0)
    paths = [tmp_path / f"{i}.png" for i in range(7)]
    for path in paths:
        Image.fromarray(generator.integers(0, 256, (8, 8, 3)).astype(np.uint8)).save(path)
    return Stimuli([f"some/{path.name}" for path in paths], paths)


@pytest.fixture
def make_rows(pictures: Stimuli) -> MakeRows:
    torch.manual_seed(0)
    network = Network()

    def make(indices: Sequence[int] = range(7), precision: Precision = "float32") -> ComputedRows:
        layers = LayerEmbedding("small", network, [Tap("layer", "flatten", 5)], PLAIN)
        frozen = FrozenNetwork("small", layers, torch.device("cpu"), layers.widths, "some")
        return ComputedRows(pictures, indices, PLAIN, Policy(precision), Resources(Path(), "rows", 0), frozen)

    return make

"""Streams and comparisons on a GPU, without one: what is fed lies there, and nothing of it is waited for."""

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from headstart import modules
from headstart.datamodules import photo_data
from headstart.datamodules.feature_stream import FeatureStream
from headstart.datamodules.photo_stream import PhotoStream
from headstart.datamodules.sample_stream import SampleStream
from headstart.modules.comparison import Comparison
from headstart.modules.methods.catalogue import METHODS
from headstart.modules.networks.backbone import Backbone
from headstart.modules.networks.backbone_spec import BackboneSpec
from headstart.modules.networks.folding import FoldedNetwork
from headstart.modules.networks.preprocessing import Preprocessing
from headstart.tests.material.absent_gpu import GPU, absent_gpu, to_gpu
from headstart.tests.material.streams import WIDTH, random_photos, random_samples, tiny_backbone

CLASSES = 3
SAMPLES = 9
# The iterations of one end when all orderings have converged, the other computes on the processor.
WAIT = ("LogisticRegression", "ScikitLearnClassifier")
# A rank that fits the small backbone.
OPTIONS = {"LoRA": {"rank": 1}}


@pytest.fixture(autouse=True)
def nothing_to_verify(monkeypatch: pytest.MonkeyPatch) -> None:
    """Verify no folded network, by numbers that are not there, and look at no generator of the GPU."""
    monkeypatch.setattr(FoldedNetwork, "verify", lambda *_: None)
    generators = SimpleNamespace(in_use=nullcontext, fingerprint=lambda: "")
    monkeypatch.setattr(modules.method_state, "GlobalGenerators", lambda *_: generators)


def _stream(kind: type[SampleStream], orderings: int, backbone: Backbone) -> SampleStream:
    """Build a stream as it is when its rows have been read."""
    inputs, labels = (part[0] for part in _draw(kind))
    options: Any = {"photos": Any, "backbone": BackboneSpec(), "precision": "float32"}
    stream = kind(**options, orderings=orderings, max_samples=SAMPLES, batch_size=2)
    stream.trainer = SimpleNamespace(strategy=SimpleNamespace(root_device=GPU))  # type: ignore[assignment]
    stream.train_inputs, stream.train_labels = stream.validation_inputs, stream.validation_labels = inputs, labels
    stream.classes = tuple(str(label) for label in range(CLASSES))
    to_gpu(backbone)
    stream.backbone = backbone
    stream.move_samples(stream.device)
    return stream


def _draw(kind: type[SampleStream]) -> Any:
    if kind is FeatureStream:
        return random_samples(1, 20, WIDTH, CLASSES)
    photos, labels = random_photos(20, CLASSES)
    return photos.to(torch.uint8), labels


@pytest.mark.parametrize(
    ("kind", "inputs", "orderings"),
    [(FeatureStream, "features", 4), pytest.param(PhotoStream, "photos", 1, marks=pytest.mark.slow)],
)
def test_a_comparison_waits_for_nothing_but_its_counts(
    kind: type[SampleStream], inputs: str, orderings: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(photo_data, "_spare_bytes", lambda device: 10**9)
    names = [name for name, method in METHODS.items() if inputs in method.inputs and name not in WAIT]
    comparison = Comparison(
        modules.GradientDescent(), {name: getattr(modules, name)(**OPTIONS.get(name, {})) for name in names}
    )
    comparison.weigh(np.arange(1, CLASSES + 1))
    chosen = np.ones((len(names) + 1, orderings), dtype=bool)
    if orderings > 1:
        chosen[1, 0] = chosen[2, 1:3] = False
    comparison.selected = chosen
    backbone = Backbone(tiny_backbone(), WIDTH, nn.Linear(WIDTH, 20), Preprocessing(resize=2, crop=2))
    with absent_gpu() as waits:
        comparison.trainer = SimpleNamespace(datamodule=_stream(kind, orderings, backbone))  # type: ignore[assignment]
        comparison.setup("fit")
        to_gpu(comparison)
        comparison._device = GPU  # which Lightning notes when it moves a module
        comparison.configure_optimizers()
        train, validation = comparison.stream.train_dataloader(), comparison.stream.val_dataloader()  # type: ignore[attr-defined]
        waits.noted.clear()
        for indices in train.dataset:
            comparison.training_step(train.collate_fn(indices), 0)
            with torch.no_grad():
                comparison.on_validation_epoch_start()
                for part in validation.dataset:
                    comparison.validation_step(part, 0)
            assert comparison.counts.device == GPU
        assert comparison.samples_seen == SAMPLES
        assert not waits.noted, f"waits for the GPU: {waits.noted}"

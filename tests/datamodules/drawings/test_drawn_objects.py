"""Behaviour of the source task and of the backbone trained on it."""

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from safetensors import safe_open
from safetensors.torch import load_file
from torchvision.models import mobilenet_v2

from headstart.datamodules.drawings.drawn_objects import SOURCE_CLASSES, draw_object
from headstart.modules.networks.backbone_spec import EMBEDDED_PREPROCESSING
from headstart.modules.networks.backbone_spec import EMBEDDED_WEIGHTS as WEIGHTS
from headstart.modules.networks.normalization import Normalization


def _pixels(label: int, index: int, seed: int = 0, size: int = 64) -> NDArray[np.uint8]:
    return np.asarray(draw_object(label, index, seed, size))


def test_every_class_draws_reproducibly_and_variedly() -> None:
    for label, name in enumerate(SOURCE_CLASSES):
        first = _pixels(label, 0)
        assert first.shape == (64, 64, 3)
        np.testing.assert_array_equal(_pixels(label, 0), first)
        assert len({_pixels(label, index, seed).tobytes() for index in (0, 1) for seed in (0, 1)}) == 4, name


def test_committed_weights_reach_the_documented_source_accuracy() -> None:
    network = mobilenet_v2(width_mult=0.35, num_classes=len(SOURCE_CLASSES))
    missing = network.load_state_dict(
        {name: tensor.float() for name, tensor in load_file(WEIGHTS).items()}, strict=False
    ).missing_keys
    assert all(name.endswith("num_batches_tracked") for name in missing)
    never_trained_on = np.stack(
        [_pixels(label, index, seed=999) for label in range(len(SOURCE_CLASSES)) for index in range(6)]
    )
    labels = torch.arange(len(SOURCE_CLASSES)).repeat_interleave(6)
    photos = torch.from_numpy(never_trained_on).permute(0, 3, 1, 2)
    with torch.inference_mode():
        predicted = network.eval()(Normalization(EMBEDDED_PREPROCESSING)(photos)).argmax(1)
    accuracy = float((predicted == labels).float().mean())
    with safe_open(WEIGHTS, framework="pt") as file:
        documented = float(file.metadata()["held_out_accuracy"])
    assert accuracy == pytest.approx(documented, abs=0.06)

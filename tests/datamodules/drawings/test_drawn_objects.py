"""Behaviour of the source task and of the backbone trained on it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from safetensors import safe_open
from safetensors.torch import load_file
from torchvision.models import mobilenet_v2

from datamodules.drawings.drawn_objects import SOURCE_CLASSES, draw_object
from datamodules.drawings.drawn_pets import draw_pet
from modules.networks.backbone import EMBEDDED_WEIGHTS as WEIGHTS
from scripts.pretrain_embedded import augment, measure_accuracy, normalise, write_weights

FURRY = {
    "cat",
    "dog",
    "fox",
    "wolf",
    "lion",
    "tiger",
    "bear",
    "rabbit",
    "hare",
    "mouse",
    "horse",
    "cow",
    "sheep",
}


def _pixels(label: int, index: int, seed: int = 0, size: int = 64) -> NDArray[np.uint8]:
    return np.asarray(draw_object(label, index, seed, size))


def test_source_task_has_many_distinct_classes_and_no_furry_animal() -> None:
    assert 30 <= len(SOURCE_CLASSES) <= 60
    assert len(set(SOURCE_CLASSES)) == len(SOURCE_CLASSES)
    words = {word.lower() for name in SOURCE_CLASSES for word in name.split()}
    assert not words & FURRY
    assert not any("cat" in word or "dog" in word for word in words)


@pytest.mark.parametrize("label", range(len(SOURCE_CLASSES)))
def test_every_class_draws_reproducibly_and_variedly(label: int) -> None:
    first = _pixels(label, 0)
    assert first.shape == (64, 64, 3)
    np.testing.assert_array_equal(_pixels(label, 0), first)
    assert len({_pixels(label, index, seed).tobytes() for index in (0, 1) for seed in (0, 1)}) == 4


def test_size_is_the_one_asked_for() -> None:
    assert draw_object(3, 0, size=48).size == (48, 48)


def test_source_and_target_share_no_random_stream() -> None:
    for label in (0, 1):
        corners = [np.asarray(draw(label, 4))[:2, :2].tobytes() for draw in (draw_pet, draw_object)]
        assert corners[0] != corners[1]


def test_augmentation_keeps_shape_and_values_and_is_seeded() -> None:
    batch = torch.from_numpy(np.stack([_pixels(0, i) for i in range(4)])).permute(0, 3, 1, 2)
    first, again = (augment(batch, torch.Generator().manual_seed(3)) for _ in range(2))
    other = augment(batch, torch.Generator().manual_seed(4))
    assert first.shape == batch.shape
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert first.min() >= 0.0
    assert first.max() <= 255.0


def test_normalised_mean_colour_is_zero() -> None:
    mean = torch.tensor([0.485, 0.456, 0.406]).mul(255).round().to(torch.uint8)
    assert normalise(mean.view(1, 3, 1, 1).expand(1, 3, 4, 4)).abs().max() < 0.02


def test_written_weights_are_half_precision_and_leave_no_temporary_file(tmp_path: Path) -> None:
    convolution = torch.nn.Conv2d(3, 4, 1)
    network = torch.nn.Sequential(convolution, torch.nn.BatchNorm2d(4))
    write_weights(network, tmp_path / "weights" / "small.safetensors", {"seed": "0"})
    state = load_file(tmp_path / "weights" / "small.safetensors")
    assert [path.name for path in (tmp_path / "weights").iterdir()] == ["small.safetensors"]
    assert {tensor.dtype for tensor in state.values()} == {torch.float16}
    assert "1.num_batches_tracked" not in state
    torch.testing.assert_close(state["0.weight"].float(), convolution.weight.detach(), rtol=1e-3, atol=1e-4)


def test_committed_weights_are_small_and_say_what_they_are() -> None:
    assert WEIGHTS.stat().st_size < 2_000_000
    with safe_open(WEIGHTS, framework="pt") as file:
        metadata = file.metadata()
    assert metadata["classes"] == str(len(SOURCE_CLASSES))
    assert metadata["size"] == "64"
    assert metadata["command"].startswith("python -m scripts.pretrain_embedded")


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
    accuracy = measure_accuracy(network, torch.from_numpy(never_trained_on).permute(0, 3, 1, 2), labels)
    with safe_open(WEIGHTS, framework="pt") as file:
        documented = float(file.metadata()["held_out_accuracy"])
    assert accuracy == pytest.approx(documented, abs=0.06)

"""Stimuli from files, and their embeddings as rows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from lightning.fabric.utilities.exceptions import MisconfigurationException
from PIL import Image
from torch import Tensor, nn

from datamodules import stimuli as module
from datamodules.extraction import Precision
from datamodules.stimuli import EmbeddingRows, Stimuli
from modules.layer_embedding import LayerEmbedding, Tap
from modules.preprocessing import Preprocessing

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
def pictures(tmp_path: Path) -> Stimuli:
    generator = np.random.default_rng(0)
    paths = [tmp_path / f"{i}.png" for i in range(7)]
    for path in paths:
        Image.fromarray(generator.integers(0, 256, (8, 8, 3)).astype(np.uint8)).save(path)
    return Stimuli([f"some/{path.name}" for path in paths], paths)


@pytest.fixture
def make_rows(pictures: Stimuli) -> Callable[..., EmbeddingRows]:
    torch.manual_seed(0)
    network = Network()

    def make(stimuli: Stimuli = pictures, precision: Precision = "float32") -> EmbeddingRows:
        model = LayerEmbedding("small", network, [Tap("layer", "flatten", 5)], PLAIN)
        return EmbeddingRows(stimuli, model, precision, 0, {"weights": "some"})

    return make


def compute(rows: EmbeddingRows) -> np.ndarray:
    return np.concatenate(list(rows))


def test_rows_equal_the_closed_form(pictures: Stimuli, make_rows: Callable[..., EmbeddingRows]) -> None:
    rows = make_rows()
    linear = rows.model.network.get_submodule("layer.2")
    assert isinstance(linear, nn.Linear)
    photos = np.stack([np.asarray(pictures.read(i)) for i in range(7)]).transpose(0, 3, 1, 2) / 255
    expected = photos.reshape(7, -1) @ linear.weight.detach().numpy().T + linear.bias.detach().numpy()
    assert np.allclose(compute(rows), expected, atol=1e-5)
    assert rows.notes == {"weights": "some"}


@pytest.mark.parametrize("size", [1, 2, 3, 7, 50])
def test_every_pass_has_the_same_size(
    make_rows: Callable[..., EmbeddingRows], monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr(module, "pass_size", lambda side, device: size)
    rows = make_rows()
    seen = []
    rows.model.network.register_forward_pre_hook(lambda network, arguments: seen.append(len(arguments[0])))
    assert compute(rows).shape == (7, 5)
    assert set(seen) == {size}


def test_a_row_does_not_depend_on_the_others(pictures: Stimuli, make_rows: Callable[..., EmbeddingRows]) -> None:
    alone = Stimuli([pictures.names[4]], [pictures.paths[4]])
    assert np.array_equal(compute(make_rows(alone)), compute(make_rows())[4:5])


def test_arithmetic_is_deterministic_while_rows_are_computed(make_rows: Callable[..., EmbeddingRows]) -> None:
    rows = make_rows()
    seen = []

    def look(network: nn.Module, arguments: object) -> None:
        cudnn = torch.backends.cudnn
        seen.append((cudnn.deterministic, cudnn.benchmark, cudnn.allow_tf32, torch.is_grad_enabled()))

    rows.model.network.register_forward_pre_hook(look)
    before = torch.backends.cudnn.deterministic
    compute(rows)
    assert set(seen) == {(True, False, False, False)}
    assert torch.backends.cudnn.deterministic == before


def test_precision_is_what_is_asked_for(make_rows: Callable[..., EmbeddingRows]) -> None:
    full, half = compute(make_rows()), compute(make_rows(precision="bfloat16"))
    assert full.dtype == half.dtype == np.float32
    assert not np.array_equal(full, half)
    assert np.allclose(full, half, atol=0.05)


def test_nan_is_refused_with_model_and_stimulus(make_rows: Callable[..., EmbeddingRows]) -> None:
    rows = make_rows()
    layer = rows.model.network.get_submodule("layer")
    layer.register_forward_hook(lambda module, arguments, output: output.masked_fill(output == output[2, 0], torch.nan))
    with pytest.raises(MisconfigurationException, match=r"'small'.*'some/2\.png'"):
        compute(rows)


def test_unreadable_stimulus_is_refused(pictures: Stimuli, make_rows: Callable[..., EmbeddingRows]) -> None:
    pictures.paths[3].write_bytes(pictures.paths[3].read_bytes()[:60])
    with pytest.raises(MisconfigurationException, match=r"'some/3\.png' cannot be decoded"):
        compute(make_rows())


@pytest.mark.parametrize("name", ["picture.jpg", "picture.png", "picture.webp", "picture.bmp", "picture.gif"])
def test_common_formats_are_read(tmp_path: Path, name: str) -> None:
    Image.new("RGB", (9, 5), (200, 30, 90)).save(tmp_path / name)
    assert Stimuli([name], [tmp_path / name]).read(0).size == (9, 5)


def test_formats_that_start_programs_are_not_tried(tmp_path: Path) -> None:
    path = tmp_path / "picture.png"
    Image.new("RGB", (4, 4)).save(path, format="EPS")
    with pytest.raises(OSError, match="cannot identify"):
        Stimuli(["some"], [path]).read(0)


def test_limit_of_pixels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Image.new("RGB", (10, 10)).save(tmp_path / "picture.png")
    picture = Stimuli(["some"], [tmp_path / "picture.png"])
    monkeypatch.setattr(module, "MAX_PIXELS", 100)
    assert picture.read(0).size == (10, 10)
    monkeypatch.setattr(module, "MAX_PIXELS", 99)
    with pytest.raises(OSError, match="10 x 10 pixels"):
        picture.read(0)

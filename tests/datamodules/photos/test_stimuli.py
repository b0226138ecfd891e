"""Stimuli from files, and their embeddings as rows."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor, nn

from datamodules.photos import stimuli as module
from datamodules.photos.stimuli import EmbeddingRows, Stimuli
from datamodules.rows import Precision
from modules.networks.layer_embedding import LayerEmbedding, Tap
from modules.networks.preprocessing import Preprocessing
from output.errors import UserError

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
    with pytest.raises(UserError, match=r"'small'.*'some/2\.png'"):
        compute(rows)


@pytest.mark.parametrize("place", [2, 5, 6])
def test_nan_in_a_later_chunk_names_its_stimulus(make_rows: Callable[..., EmbeddingRows], place: int) -> None:
    expected = compute(make_rows())[place, 0].item()
    rows = make_rows()
    rows.chunk = 3
    layer = rows.model.network.get_submodule("layer")
    layer.register_forward_hook(
        lambda module, arguments, output: output.masked_fill((output - expected).abs() < 1e-6, torch.nan)
    )
    for _ in range(2):  # the count starts anew
        with pytest.raises(UserError, match=rf"first for stimulus 'some/{place}\.png'"):
            compute(rows)


@pytest.mark.parametrize(("size", "chunk"), [(50, 64), (100, 100)])
def test_a_chunk_fills_a_pass(
    make_rows: Callable[..., EmbeddingRows], monkeypatch: pytest.MonkeyPatch, size: int, chunk: int
) -> None:
    monkeypatch.setattr(module, "pass_size", lambda side, device: size)
    assert make_rows().chunk == chunk


def test_every_pass_draws_the_same_random_numbers(make_rows: Callable[..., EmbeddingRows]) -> None:
    rows = make_rows()
    rows.size = 2
    seen = []
    rows.model.network.register_forward_pre_hook(lambda network, arguments: seen.append(torch.rand(()).item()))
    compute(rows)
    torch.manual_seed(99)
    state = torch.get_rng_state()
    rows.convert(torch.zeros(7, 3, 8, 8, dtype=torch.uint8))
    assert torch.equal(torch.get_rng_state(), state)
    assert len(seen) == 8
    assert len(set(seen)) == 1


def test_unreadable_stimulus_is_refused(pictures: Stimuli, make_rows: Callable[..., EmbeddingRows]) -> None:
    pictures.paths[3].write_bytes(pictures.paths[3].read_bytes()[:60])
    with pytest.raises(UserError, match=r"'some/3\.png' cannot be decoded"):
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


@pytest.mark.parametrize(
    ("size", "allowed"), [((1, 100), True), ((500, 5), True), ((1, 101), False), ((501, 5), False)]
)
def test_limit_of_the_aspect(tmp_path: Path, size: tuple[int, int], allowed: bool) -> None:
    Image.new("RGB", size).save(tmp_path / "picture.png")
    picture = Stimuli(["some"], [tmp_path / "picture.png"])
    if allowed:
        assert picture.read(0).size == size
    else:
        with pytest.raises(OSError, match=f"it has {size[0]} x {size[1]} pixels; the long side may have at most 100"):
            picture.read(0)


def write_header(path: Path, width: int, height: int) -> Stimuli:
    """Write a PNG picture of some size without its pixels."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b""))
    return Stimuli(["some"], [path])


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("width", "height", "reason"),
    [
        (50_000, 50_000, "decompression bomb"),
        (10_000, 10_001, "10000 x 10001 pixels, more than the 100,000,000"),
        (1_000_000, 1, "1000000 x 1 pixels; the long side"),
    ],
)
def test_large_pictures_are_refused_by_their_header(tmp_path: Path, width: int, height: int, reason: str) -> None:
    with pytest.raises(OSError, match=reason):
        write_header(tmp_path / "picture.png", width, height).read(0)
    with pytest.raises(OSError, match="truncated"):  # the size is allowed, without a warning of Pillow's
        write_header(tmp_path / "picture.png", 10_000, 10_000).read(0)


def test_lack_of_memory_is_a_stimulus_that_cannot_be_decoded(
    make_rows: Callable[..., EmbeddingRows], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(photo: Image.Image) -> Tensor:
        raise MemoryError

    rows = make_rows()
    monkeypatch.setattr(Preprocessing, "prepare", lambda self, photo: fail(photo))
    with pytest.raises(UserError, match=r"'some/0\.png' cannot be decoded: memory does not suffice"):
        compute(rows)


@pytest.mark.parametrize(
    ("name", "values", "reason"),
    [
        ("a.tiff", np.ones((4, 4), np.float32), "its pixels are floating-point numbers, of which none is white"),
        ("a.tiff", np.full((4, 4), 300, np.int32), "its pixels are 32-bit whole numbers"),
        ("a.tiff", np.full((4, 4), 300, np.uint16), ""),
        ("a.png", np.full((4, 4), 300, np.uint16), ""),
        ("a.tiff", np.full((4, 4), 1, np.uint8), ""),
    ],
)
def test_pixels_without_a_scale(tmp_path: Path, name: str, values: np.ndarray, reason: str) -> None:
    Image.fromarray(values).save(tmp_path / name)
    picture = Stimuli(["some"], [tmp_path / name])
    if reason:
        with pytest.raises(OSError, match=reason):
            picture.read(0)
    else:
        assert np.asarray(picture.read(0)).tolist() == np.ones((4, 4, 3)).tolist()


def test_limit_of_pixels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Image.new("RGB", (10, 10)).save(tmp_path / "picture.png")
    picture = Stimuli(["some"], [tmp_path / "picture.png"])
    monkeypatch.setattr(module, "MAX_PIXELS", 100)
    assert picture.read(0).size == (10, 10)
    monkeypatch.setattr(module, "MAX_PIXELS", 99)
    with pytest.raises(OSError, match="10 x 10 pixels"):
        picture.read(0)

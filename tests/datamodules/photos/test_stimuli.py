"""Stimuli from files: what is read, and what is refused."""

import struct
import zlib
from pathlib import Path

import pytest
from PIL import Image

from headstart.datamodules.photos.stimuli import Stimuli


@pytest.mark.parametrize("name", ["picture.jpg", "picture.png", "picture.webp", "picture.bmp", "picture.gif"])
def test_common_formats_are_read(tmp_path: Path, name: str) -> None:
    Image.new("RGB", (9, 5), (200, 30, 90)).save(tmp_path / name)
    assert Stimuli([name], [tmp_path / name]).read(0).size == (9, 5)


def test_formats_that_start_programs_are_not_tried(tmp_path: Path) -> None:
    path = tmp_path / "picture.png"
    Image.new("RGB", (4, 4)).save(path, format="EPS")
    with pytest.raises(OSError, match="no picture of a known format"):
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

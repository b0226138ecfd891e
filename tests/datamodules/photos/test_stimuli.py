"""Stimuli from files: what is read, and what is refused."""

import struct
import zlib
from pathlib import Path

import pytest
from PIL import Image

from headstart.datamodules.photos.stimuli import Stimuli


def test_formats_and_shapes(tmp_path: Path) -> None:
    path = tmp_path / "picture.png"
    for size, is_allowed in (((1, 100), True), ((500, 5), True), ((1, 101), False), ((501, 5), False)):
        Image.new("RGB", size).save(path)
        if is_allowed:
            assert Stimuli(["some"], [path]).read(0).size == size
        else:
            with pytest.raises(OSError, match=f"it has {size[0]} x {size[1]} pixels; the long side may have at most"):
                Stimuli(["some"], [path]).read(0)
    # A format that starts a program is not tried.
    Image.new("RGB", (4, 4)).save(path, format="EPS")
    with pytest.raises(OSError, match="no picture of a known format"):
        Stimuli(["some"], [path]).read(0)


def write_header(path: Path, width: int, height: int) -> Stimuli:
    """Write a PNG picture of some size without its pixels."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b""))
    return Stimuli(["some"], [path])


@pytest.mark.filterwarnings("error")
def test_large_pictures_are_refused_by_their_header(tmp_path: Path) -> None:
    for width, height, reason in (
        (50_000, 50_000, "decompression bomb"),
        (10_000, 10_001, "10000 x 10001 pixels, more than the 100,000,000"),
        (1_000_000, 1, "1000000 x 1 pixels; the long side"),
    ):
        with pytest.raises(OSError, match=reason):
            write_header(tmp_path / "picture.png", width, height).read(0)
    with pytest.raises(OSError, match="truncated"):  # the size is allowed, without a warning of Pillow's
        write_header(tmp_path / "picture.png", 10_000, 10_000).read(0)

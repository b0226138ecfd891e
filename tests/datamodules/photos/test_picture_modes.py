"""Pictures of every mode, depth and orientation become RGB of eight bits."""

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from headstart.datamodules.photos.photo_source import PhotoFiles

COLOR = (200, 100, 50)


def photo(size: tuple[int, int] = (48, 32)) -> Image.Image:
    return Image.new("RGB", size, COLOR)


def one(path: Path) -> PhotoFiles:
    return PhotoFiles(path.parent, [path.name], [0], ("cats", "dogs"))


@pytest.mark.parametrize(
    ("name", "mode"),
    [
        ("rgb.jpg", "RGB"),
        ("gray.jpg", "L"),
        ("cmyk.jpg", "CMYK"),
        ("palette.png", "P"),
        ("alpha.png", "RGBA"),
    ],
)
def test_every_mode_becomes_rgb(tmp_path: Path, name: str, mode: str) -> None:
    original = photo().convert(mode)
    original.save(tmp_path / name)
    decoded = one(tmp_path / name).read(0)
    assert decoded.mode == "RGB"
    assert decoded.size == (48, 32)
    expected = np.asarray(original.convert("RGB")).astype(int)
    assert np.abs(np.asarray(decoded).astype(int) - expected).max() <= 3


@pytest.mark.parametrize("ending", ["jpg", "png", "webp", "tif"])
def test_pictures_are_turned_upright(tmp_path: Path, ending: str) -> None:
    turned: dict[int, Callable[[Any], Any]] = {
        1: lambda x: x,
        3: lambda x: x[::-1, ::-1],
        6: lambda x: np.rot90(x, -1),
        8: lambda x: np.rot90(x, 1),
    }
    for orientation, turn in turned.items():
        exif = Image.Exif()
        exif[0x0112] = orientation
        path = tmp_path / f"{orientation}.{ending}"
        photo().save(path, exif=exif)
        with Image.open(path) as opened:
            stored = np.asarray(photo()) if ending == "tif" else np.asarray(opened.convert("RGB"))
        assert np.array_equal(np.asarray(one(path).read(0)), turn(stored)), orientation


def test_damaged_notes_of_a_camera_are_passed_over(tmp_path: Path) -> None:
    for number, notes in enumerate((b"Exif\0\0nonsense", b"Exif\0\0II*\0\x08\0\0\0\xff\xff\x12\x01")):
        photo().save(tmp_path / f"{number}.jpg", exif=notes)
        assert one(tmp_path / f"{number}.jpg").read(0).size == (48, 32)


def test_pixels_of_more_than_eight_bits(tmp_path: Path) -> None:
    (tmp_path / "deep.pgm").write_bytes(b"P5 3 1 65535\n" + np.array([0, 255, 65_535], ">u2").tobytes())
    Image.fromarray(np.array([[0, 0.5, 1]], np.float32)).save(tmp_path / "unit.tif")
    Image.fromarray(np.array([[0, 2]], np.float32)).save(tmp_path / "float.tif")
    Image.fromarray(np.array([[0, 300]], np.int32)).save(tmp_path / "whole.tif")
    assert np.asarray(one(tmp_path / "deep.pgm").read(0))[0, :, 0].tolist() == [0, 0, 255]
    assert np.asarray(one(tmp_path / "unit.tif").read(0))[0, :, 0].tolist() == [0, 128, 255]
    with pytest.raises(OSError, match="its pixels are floating-point numbers outside 0 to 1"):
        one(tmp_path / "float.tif").read(0)
    with pytest.raises(OSError, match="its pixels are whole numbers of 32 bits that use less than a 256th"):
        one(tmp_path / "whole.tif").read(0)
    Image.fromarray(np.array([[0, 2**30, 2**31 - 1]], np.int32)).save(tmp_path / "signed.tif")
    assert np.asarray(one(tmp_path / "signed.tif").read(0))[0, :, 0].tolist() == [0, 128, 255]
    Image.fromarray(np.array([[-1, 2**30]], np.int32)).save(tmp_path / "negative.tif")
    with pytest.raises(OSError, match="its pixels have negative numbers"):
        one(tmp_path / "negative.tif").read(0)


def tiff(content: bytes, width: int, bits: int, kind: int, white: int) -> bytes:
    """Write one row as an uncompressed TIFF; kind 1 is whole numbers and 3 floats, white 0 is 0 and 1 the maximum."""
    values = {256: width, 257: 1, 258: bits, 259: 1, 262: white, 273: 134, 277: 1, 278: 1, 279: len(content), 339: kind}
    tags = b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in values.items())
    return b"II*\0" + struct.pack("<IH", 8, len(values)) + tags + bytes(4) + content


def test_tags_of_tiff_say_what_is_white(tmp_path: Path) -> None:
    rows = {
        (8, 1): bytes([0, 128, 255]),
        (12, 1): bytes.fromhex("000 800 fff 000".replace(" ", "")),
        (16, 1): np.array([0, 32_768, 65_535], "<u2").tobytes(),
        (32, 1): np.array([0, 2**31, 2**32 - 1], "<u4").tobytes(),
        (32, 3): np.array([0, 0.5, 1], "<f4").tobytes(),
    }
    for (bits, kind), content in rows.items():
        # Pillow opens no other of 12 bits and of whole numbers of 32.
        for white in (1,) if (bits, kind) in ((12, 1), (32, 1)) else (1, 0):
            path = tmp_path / f"{bits}_{white}.tif"
            path.write_bytes(tiff(content, 4 if bits == 12 else 3, bits, kind, white))
            found = np.asarray(one(path).read(0))[0, :3, 0].astype(int)
            assert np.abs(found - ([0, 128, 255] if white else [255, 127, 0])).max() <= 1, path.name

"""Pictures of every mode, depth and orientation become RGB of eight bits; damage of any kind is an OSError."""

import multiprocessing
import os
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


def test_every_mode_becomes_rgb(tmp_path: Path) -> None:
    modes = {"rgb.jpg": "RGB", "gray.jpg": "L", "cmyk.jpg": "CMYK", "palette.png": "P", "alpha.png": "RGBA"}
    for name, mode in modes.items():
        original = photo().convert(mode)
        original.save(tmp_path / name)
        decoded = one(tmp_path / name).read(0)
        assert (decoded.mode, decoded.size) == ("RGB", (48, 32))
        expected = np.asarray(original.convert("RGB")).astype(int)
        assert np.abs(np.asarray(decoded).astype(int) - expected).max() <= 3, name


@pytest.mark.parametrize("ending", ["jpg", "tif"])
def test_pictures_are_turned_upright(tmp_path: Path, ending: str) -> None:
    turned: dict[int, Callable[[Any], Any]] = {
        1: lambda x: x,
        3: lambda x: x[::-1, ::-1],
        6: lambda x: np.rot90(x, -1),
        8: lambda x: np.rot90(x, 1),
    }
    # Notes that are damaged are passed over.
    notes: dict[str, Any] = {"exif": b"Exif\0\0nonsense"} if ending == "jpg" else {}
    photo().save(tmp_path / f"damaged.{ending}", **notes)
    assert one(tmp_path / f"damaged.{ending}").read(0).size == (48, 32)
    for orientation, turn in turned.items():
        exif = Image.Exif()
        exif[0x0112] = orientation
        path = tmp_path / f"{orientation}.{ending}"
        photo().save(path, exif=exif)
        with Image.open(path) as opened:
            stored = np.asarray(photo()) if ending == "tif" else np.asarray(opened.convert("RGB"))
        assert np.array_equal(np.asarray(one(path).read(0)), turn(stored)), orientation


def test_pixels_of_more_than_eight_bits(tmp_path: Path) -> None:
    (tmp_path / "deep.pgm").write_bytes(b"P5 3 1 65535\n" + np.array([0, 255, 65_535], ">u2").tobytes())
    assert np.asarray(one(tmp_path / "deep.pgm").read(0))[0, :, 0].tolist() == [0, 0, 255]
    path = tmp_path / "row.tif"
    for row, expected in (
        (np.array([[0, 0.5, 1]], np.float32), [0, 128, 255]),
        (np.array([[0, 2**30, 2**31 - 1]], np.int32), [0, 128, 255]),
        (np.array([[0, 2]], np.float32), "its pixels are floating-point numbers outside 0 to 1"),
        (np.array([[0, 300]], np.int32), "its pixels are whole numbers of 32 bits that use less than a 256th"),
        (np.array([[-1, 2**30]], np.int32), "its pixels have negative numbers"),
    ):
        Image.fromarray(row).save(path)
        if isinstance(expected, list):
            assert np.asarray(one(path).read(0))[0, :, 0].tolist() == expected
        else:
            with pytest.raises(OSError, match=expected):
                one(path).read(0)


def tiff(content: bytes, width: int, bits: int, kind: int, white: int) -> bytes:
    """Write one row as an uncompressed TIFF; kind 1 is whole numbers, 2 signed ones, 3 floats; white 0 is the least."""
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
        # Pillow opens no other of 12 bits, and of whole numbers of 32.
        for white in (1,) if (bits, kind) in ((12, 1), (32, 1)) else (1, 0):
            path = tmp_path / f"{bits}_{white}.tif"
            path.write_bytes(tiff(content, 4 if bits == 12 else 3, bits, kind, white))
            found = np.asarray(one(path).read(0))[0, :3, 0].astype(int)
            assert np.abs(found - ([0, 128, 255] if white else [255, 127, 0])).max() <= 1, path.name
    path.write_bytes(tiff(bytes([0, 64, 127]), 3, 8, 2, 1))
    with pytest.raises(OSError, match="its pixels are signed numbers of 8 bits"):
        one(path).read(0)


@pytest.mark.parametrize(("form", "error"), [("AVIF", RuntimeError), ("DDS", NotImplementedError)])
def test_damage_of_any_kind_is_an_os_error(tmp_path: Path, form: str, error: type[Exception]) -> None:
    if form not in Image.registered_extensions().values():
        pytest.skip("Pillow is too old")
    path = tmp_path / "cat.jpg"
    noise = np.random.default_rng(0).integers(0, 255, (64, 64, 3), dtype=np.uint8)
    Image.fromarray(noise).save(path, form)
    whole = path.read_bytes()
    faults: list[OSError] = []
    for position in range(0, 300, 4):
        path.write_bytes(whole[:position] + b"\0\0\0\0" + whole[position + 4 :])
        try:
            one(path).read(0)
        except OSError as fault:
            faults.append(fault)
    assert any(isinstance(fault.__cause__, error) for fault in faults)
    assert {fault.errno for fault in faults} == {None}


@pytest.mark.slow
@pytest.mark.parametrize(("form", "options"), [("JPEG", {"progressive": True}), ("WEBP", {"quality": 30})])
def test_lack_of_memory_is_never_taken_for_damage(tmp_path: Path, form: str, options: dict[str, int]) -> None:
    resource = pytest.importorskip("resource")
    path, memory = tmp_path / "cat", Path("/proc/self/statm")
    if not memory.exists():
        pytest.skip("the limit is what this process has and some more")
    coarse = Image.fromarray(np.random.default_rng(0).integers(0, 255, (60, 80, 3), dtype=np.uint8))
    coarse.resize((5600, 4200)).save(path, form, **options)
    photo().save(tmp_path / "small", form)
    one(tmp_path / "small").read(0)

    def decode(megabytes: int) -> None:
        taken = int(memory.read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (taken + megabytes * 2**20,) * 2)
        try:
            one(path).read(0)
        except MemoryError:
            os._exit(1)
        except OSError as error:
            os._exit(2 if error.errno is None else 1)
        os._exit(0)

    codes = set()
    for megabytes in (0, 40, 80, 100, 120, 140, 160, 180, 1000):
        process = multiprocessing.get_context("fork").Process(target=decode, args=(megabytes,))
        process.start()
        process.join(60)
        codes.add(process.exitcode)
    assert codes == {0, 1}


@pytest.mark.filterwarnings("error")
def test_absurd_size_is_an_os_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    photo().save(tmp_path / "bomb.png")
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", photo().width * photo().height - 1)
    assert one(tmp_path / "bomb.png").read(0).size == photo().size
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 100)
    with pytest.raises(OSError, match=r"^it has more than [\d,]+ pixels, which could be a decompression bomb$"):
        one(tmp_path / "bomb.png").read(0)

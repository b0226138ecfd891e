"""Decode pictures from bytes, in the same way for all commands: the supported formats, and the conversion to RGB."""

import errno
import hashlib
import io
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from mmap import mmap
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps, UnidentifiedImageError

with suppress(ImportError):
    from pillow_heif import register_heif_opener

    register_heif_opener()

# Part of the names of stored rows. Change it whenever `decode` returns other pixels for the same bytes.
DECODING = "upright, 8 bits, white and range as tagged"
# Formats that Pillow only identifies, decodes by an external program (EPS by Ghostscript), or whose signed numbers it
# reads as unsigned.
NOT_DECODED = {"BUFR", "EPS", "FITS", "GRIB", "HDF5", "IM", "MPEG", "WMF"}
# Largest memory of a decoder: coefficients of a progressive JPEG, the picture, and a copy of it in RGB.
BYTES_PER_PIXEL = 16
# TIFF tags: bits per sample; photometric interpretation, 0 if white is 0; sample format, 2 for signed integers.
BITS, PHOTOMETRIC, SAMPLE_FORMAT = 258, 262, 339
SIGNED = 2
# The filter of warnings that `without_warnings` puts first.
_NO_WARNINGS = ("ignore", None, Warning, None, 0)


@cache
def formats() -> tuple[str, ...]:
    """Return the formats that are read, in Pillow's names: all that the installed Pillow and its plug-ins decode."""
    Image.init()
    return tuple(name for name in Image.ID if name not in NOT_DECODED)


@cache
def suffixes() -> frozenset[str]:
    """Return the suffixes of files in these formats, in lower case, such as `.jpg`."""
    registered = Image.registered_extensions()
    # Pillow's JPEG decoder also opens MPO, which is several JPEGs in a file.
    return frozenset(suffix for suffix, name in registered.items() if name in {*formats(), "MPO"})


def decode(file: BinaryIO, check: Callable[[Image.Image], None] | None = None) -> Image.Image:
    """Decode a picture to RGB with 8 bits per channel, rotated upright by its EXIF orientation.

    Transparency is dropped, as by torchvision's ImageFolder. Of several frames or pages, the first is read. Of 12 or 16
    bits per channel, the upper eight are used. Floating-point pixels from 0 to 1 are scaled to 255.

    Args:
        file: The file.
        check: Raises an OSError to reject a picture by its header, before any pixel is decoded.

    Returns:
        The picture in RGB.

    Raises:
        OSError: It cannot be decoded or is rejected. The error has an `errno` if the system is the cause, not the file.
        MemoryError: Memory does not suffice for it.
    """
    if isinstance(file, io.BytesIO) and not file.getbuffer().nbytes:
        raise OSError("it has no bytes")
    if warnings.filters[:1] != [_NO_WARNINGS]:
        with without_warnings():
            return decode(file, check)

    try:
        photo = Image.open(file, formats=formats())
    except Exception as error:
        raise _explain(error, Image.MAX_IMAGE_PIXELS or 0) from error
    if check is not None:
        check(photo)
    try:
        photo.load()
        return in_rgb(upright(photo, in_place=True))
    except Exception as error:
        raise _explain(error, photo.width * photo.height) from error


def upright(photo: Image.Image, in_place: bool = False) -> Image.Image:
    """Return a picture rotated upright by its EXIF orientation, a copy unless it is rotated in place.

    Damaged EXIF data is ignored.
    """
    try:
        if not in_place:
            return ImageOps.exif_transpose(photo)
        ImageOps.exif_transpose(photo, in_place=True)
    except MemoryError:
        raise
    # On damaged EXIF data, Pillow raises errors of many unrelated types.
    except Exception:
        pass
    return photo


def in_rgb(photo: Image.Image) -> Image.Image:
    """Return a picture in RGB; Pillow's own conversion would clip values of more than eight bits at 255.

    Raises:
        OSError: The value of white is unknown.
    """
    # Pillow inverts pictures whose white is 0 only if they have eight bits.
    tags = getattr(photo, "tag_v2", {})
    white_is_zero = tags.get(PHOTOMETRIC) == 0
    is_signed = tags.get(SAMPLE_FORMAT, (1,))[0] == SIGNED

    if photo.mode == "L" and is_signed:
        raise OSError("its pixels are signed numbers of 8 bits, of which none is known to be white")
    if photo.mode.startswith("I;16") or (photo.mode == "I" and photo.format == "PPM"):
        upper = (np.asarray(photo) >> (tags.get(BITS, (16,))[0] - 8)).astype(np.uint8)
        return Image.fromarray(255 - upper if white_is_zero else upper).convert("RGB")
    if photo.mode == "F":
        values = np.asarray(photo)
        if not ((values >= 0) & (values <= 1)).all():
            raise OSError("its pixels are floating-point numbers outside 0 to 1, of which none is known to be white")
        scaled = ((1 - values if white_is_zero else values) * 255).round().astype(np.uint8)
        return Image.fromarray(scaled).convert("RGB")
    if photo.mode == "I":
        upper = _upper_bits(np.asarray(photo), tags.get(BITS, (32,))[0], is_signed)
        return Image.fromarray(255 - upper if white_is_zero else upper).convert("RGB")
    return photo if photo.mode == "RGB" else photo.convert("RGB")


def _upper_bits(values: NDArray[np.int32], bits: int, is_signed: bool) -> NDArray[np.uint8]:
    """Return the upper eight bits of non-negative integers, not counting the sign bit.

    Raises:
        OSError: A number is negative, or all of them are in the lowest 256th of the range, which would be black.
    """
    if is_signed and values.min() < 0:
        raise OSError("its pixels have negative numbers, of which none is known to be white")
    upper = (values.view(np.uint32) >> (bits - is_signed - 8)).astype(np.uint8)
    if values.any() and not upper.any():
        raise OSError(f"its pixels are whole numbers of {bits} bits that use less than a 256th of their range")
    return upper


@contextmanager
def without_warnings() -> Iterator[None]:
    """Silence Pillow's warnings about many pixels and damaged EXIF data, which do not change the result.

    This takes as long as decoding a tiny picture. `decode` skips it if the caller has done it for many pictures.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def read_digested(file: str | bytes, digest: str | None) -> BinaryIO:
    """Read a file and check its SHA-256, which is the key of its stored rows.

    Args:
        file: Its path, or its bytes.
        digest: SHA-256 of its bytes; None if they were never digested.

    Returns:
        Its bytes, from memory.

    Raises:
        OSError: It cannot be read, or its bytes have changed. The error has an `errno`.
    """
    content = Path(file).read_bytes() if isinstance(file, str) else file
    if digest is not None and hashlib.sha256(content).hexdigest() != digest:
        raise OSError(errno.ESTALE, "its bytes have changed since they were digested")
    return io.BytesIO(content)


def _explain(error: Exception, pixels: int) -> Exception:
    """Return a decoder's error as an OSError; raise one with an `errno` if memory for the pixels does not suffice."""
    if isinstance(error, UnidentifiedImageError):
        # Pillow's own message names the path or the object in memory, on which no result may depend.
        return OSError("no picture of a known format")
    if isinstance(error, Image.DecompressionBombError):
        most = 2 * (Image.MAX_IMAGE_PIXELS or 0)
        return OSError(f"it has more than {most:,} pixels, which could be a decompression bomb")
    if isinstance(error, MemoryError) or getattr(error, "errno", None) is not None:
        raise error
    # Decoders may report a broken picture if memory does not suffice; `mmap` then raises an error with an `errno`.
    with mmap(-1, 1 + pixels * BYTES_PER_PIXEL):
        pass
    return OSError(str(error) or type(error).__name__)

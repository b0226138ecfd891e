"""Pictures from bytes: read once, checked by their digest, and decoded."""

import errno
import hashlib
import io
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from mmap import mmap
from pathlib import Path
from typing import BinaryIO

import numpy as np
from PIL import Image, UnidentifiedImageError

from headstart.datamodules.photos.locations import read_bytes

# Most memory of any decoder: coefficients of a progressive JPEG, the picture, and a copy of it in RGB.
BYTES_PER_PIXEL = 16


def decode(
    file: Path | BinaryIO, formats: tuple[str, ...] | None = None, check: Callable[[Image.Image], None] | None = None
) -> Image.Image:
    """Decode a picture by the convention of torchvision's ImageFolder, by which most backbones were pre-trained.

    Transparency is dropped, and the orientation that a camera notes beside the pixels (EXIF) is not applied. Of 16
    bits per channel the upper eight are used.

    Args:
        file: The file.
        formats: Formats that are tried, in Pillow's names; all by default.
        check: Raises an OSError to reject a picture by its header, before any pixel is decoded.

    Returns:
        The picture in RGB.

    Raises:
        OSError: It cannot be decoded or is rejected; with an `errno` where the system's present state is the cause.
        MemoryError: Memory does not suffice for it.
    """
    if isinstance(file, io.BytesIO) and not file.getbuffer().nbytes:
        raise OSError("it has no bytes")
    with warnings.catch_warnings():
        # Pillow warns of half as many pixels as it decodes, which changes nothing.
        warnings.simplefilter("ignore", Image.DecompressionBombWarning)
        with _faults_of_decoders(Image.MAX_IMAGE_PIXELS or 0):
            opened = Image.open(file, formats=formats)
    with opened as photo:
        if check is not None:
            check(photo)
        with _faults_of_decoders(photo.width * photo.height):
            if photo.mode.startswith("I;16"):
                # Pillow's own conversion would clip everything brighter than 255 of 65,535 to white.
                return Image.fromarray((np.asarray(photo) >> 8).astype(np.uint8)).convert("RGB")
            photo.load()
            return photo if photo.mode == "RGB" else photo.convert("RGB")


def read_digested(file: str, digest: str | None) -> BinaryIO:
    """Read a file, whose bytes must be those that were digested: its rows are stored by that digest.

    Args:
        file: Its path or URL.
        digest: SHA-256 of its bytes; None if they were never digested.

    Returns:
        Its bytes, from memory.

    Raises:
        OSError: It cannot be read or has other bytes now; with an `errno`.
    """
    content = read_bytes(file)
    if digest is not None and hashlib.sha256(content).hexdigest() != digest:
        raise OSError(errno.ESTALE, "its bytes have changed since they were digested")
    return io.BytesIO(content)


@contextmanager
def _faults_of_decoders(pixels: int) -> Iterator[None]:
    """Raise a decoder's error as an OSError, with an `errno` where memory for the picture's pixels does not suffice."""
    try:
        yield
    except UnidentifiedImageError as error:
        # Pillow's own message names the path or the object in memory, on which no result may depend.
        raise OSError("no picture of a known format") from error
    except Image.DecompressionBombError as error:
        most = 2 * (Image.MAX_IMAGE_PIXELS or 0)
        raise OSError(f"it has more than {most:,} pixels, which could be a decompression bomb") from error
    except MemoryError:
        raise
    except Exception as error:
        if getattr(error, "errno", None) is not None:
            raise
        # Without enough memory, decoders may report a broken picture; this raises an error then.
        with mmap(-1, 1 + pixels * BYTES_PER_PIXEL):
            pass
        raise OSError(str(error) or type(error).__name__) from error

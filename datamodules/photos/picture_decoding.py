"""Pictures from bytes: read once, checked by their digest, and decoded."""

import errno
import hashlib
import io
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from mmap import mmap
from typing import BinaryIO

import numpy as np
from PIL import Image, UnidentifiedImageError

from headstart.datamodules.photos.locations import read_bytes

# Most memory of any decoder: coefficients of a progressive JPEG, the picture, and a copy of it in RGB.
BYTES_PER_PIXEL = 16
# The filter of warnings that `without_size_warnings` puts first.
_NO_SIZE_WARNINGS = ("ignore", None, Image.DecompressionBombWarning, None, 0)


def decode(
    file: BinaryIO, formats: tuple[str, ...] | None = None, check: Callable[[Image.Image], None] | None = None
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
    try:
        if warnings.filters[:1] == [_NO_SIZE_WARNINGS]:
            photo = Image.open(file, formats=formats)
        else:
            with without_size_warnings():
                photo = Image.open(file, formats=formats)
    except Exception as error:
        raise _explain(error, Image.MAX_IMAGE_PIXELS or 0) from error

    if check is not None:
        check(photo)
    try:
        if photo.mode.startswith("I;16"):
            # Pillow's own conversion would clip everything brighter than 255 of 65,535 to white.
            return Image.fromarray((np.asarray(photo) >> 8).astype(np.uint8)).convert("RGB")
        photo.load()
        return photo if photo.mode == "RGB" else photo.convert("RGB")
    except Exception as error:
        raise _explain(error, photo.width * photo.height) from error


@contextmanager
def without_size_warnings() -> Iterator[None]:
    """Silence Pillow's warning of half as many pixels as it decodes, which changes nothing.

    To do so takes as long as to decode a tiny picture. Done once around many pictures, `decode` need not do it for
    each.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Image.DecompressionBombWarning)
        yield


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
    # Without enough memory, decoders may report a broken picture; this raises an error then.
    with mmap(-1, 1 + pixels * BYTES_PER_PIXEL):
        pass
    return OSError(str(error) or type(error).__name__)

"""Stimuli: pictures from files that may come from strangers."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from PIL import Image

from headstart.datamodules.photos.photo_source import Pictures, decode
from headstart.output.files import digest_file
from headstart.store.file_digests import digest_files

# Formats whose decoders are part of Pillow; others hand the file to a program outside, as EPS does to Ghostscript.
FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF", "PPM")
MAX_PIXELS = 100_000_000
# Largest ratio of a picture's sides: scaling the short side up makes the long one longer by that factor.
MAX_ASPECT = 100
# Pillow's modes of 32 bits per pixel, in which no value is known to mean white.
UNSCALED_MODES = ("I", "F")


class Stimuli(Pictures):
    """Pictures in files, from any number of data sets.

    Args:
        names: Name of each stimulus, for messages.
        paths: Their files.
    """

    kind = "stimulus"

    def __init__(self, names: Sequence[str], paths: Sequence[Path]) -> None:
        self.names = names
        self.paths = paths

    def read(self, index: int) -> Image.Image:
        """Decode one stimulus.

        A picture of a common format is one, of at most 100 million pixels, of sides that are not more than 100 times
        as long as each other, and of 8 or 16 bits per channel.
        """
        return decode(self.paths[index], FORMATS, _check)

    def digest(self, index: int) -> str:
        """Digest the bytes of one file."""
        return digest_file(self.paths[index])

    def digest_some(self, indices: Iterable[int], cache: Path | None) -> list[str]:
        """Digest the bytes of some files."""
        return digest_files([self.paths[index] for index in indices], cache)


def _check(picture: Image.Image) -> None:
    size = f"{picture.width} x {picture.height} pixels"
    if picture.width * picture.height > MAX_PIXELS:
        raise OSError(f"it has {size}, more than the {MAX_PIXELS:,} that are allowed")
    if max(picture.size) > MAX_ASPECT * min(picture.size):
        raise OSError(f"it has {size}; the long side may have at most {MAX_ASPECT} times as many as the short one")
    if picture.mode in UNSCALED_MODES:
        kind = "floating-point" if picture.mode == "F" else "32-bit whole"
        raise OSError(
            f"its pixels are {kind} numbers, of which none is white; save it as PNG with 8 or 16 bits per channel"
        )

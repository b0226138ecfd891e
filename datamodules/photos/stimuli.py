"""Stimuli: pictures from files that may come from strangers."""

from collections.abc import Sequence
from pathlib import Path

from PIL import Image

from headstart.datamodules.photos.photo_source import PictureFiles
from headstart.datamodules.photos.picture_decoding import decode

MAX_PIXELS = 100_000_000
# Largest ratio of a picture's sides: scaling the short side up makes the long one longer by that factor.
MAX_ASPECT = 100


class Stimuli(PictureFiles):
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

        It has at most 100 million pixels. Its long side is at most 100 times the short one.
        """
        return decode(self.open(index), _check)

    def path(self, index: int) -> str:
        """Return the file of one stimulus."""
        return str(self.paths[index].absolute())


def _check(picture: Image.Image) -> None:
    size = f"{picture.width} x {picture.height} pixels"
    if picture.width * picture.height > MAX_PIXELS:
        raise OSError(f"it has {size}, more than the {MAX_PIXELS:,} that are allowed")
    if max(picture.size) > MAX_ASPECT * min(picture.size):
        raise OSError(f"it has {size}; the long side may have at most {MAX_ASPECT} times as many as the short one")

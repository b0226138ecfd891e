"""The embedded default: drawn cats and dogs, made on demand."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

import numpy as np
from jsonargparse.typing import NonNegativeInt, PositiveInt
from PIL import Image

from datamodules.drawings import canvas, drawn_pets
from datamodules.drawings.drawn_pets import draw_pet
from datamodules.photos.photo_source import Photos, PhotoSource

CLASSES = ("cats", "dogs")


class Drawings(Photos):
    """Drawn cats and dogs in turn.

    Args:
        first: Index of the first drawing.
        count: Number of drawings.
        seed: Seed of the drawings.
    """

    def __init__(self, first: int, count: int, seed: int) -> None:
        self.indices = range(first, first + count)
        self.seed = seed
        self.labels = np.arange(count, dtype=np.int64) % len(CLASSES)
        self.names = [f"{CLASSES[label]}/{index}" for label, index in zip(self.labels, self.indices, strict=True)]
        self.classes = CLASSES

    def read(self, index: int) -> Image.Image:
        """Draw one picture."""
        return draw_pet(int(self.labels[index]), self.indices[index], self.seed)

    def digest(self, index: int) -> str:
        """Digest what is drawn and the code that draws it."""
        return hashlib.sha256(f"{_code()} {self.labels[index]} {self.indices[index]} {self.seed}".encode()).hexdigest()


@cache
def _code() -> str:
    files = [Path(str(module.__file__)).read_bytes() for module in (canvas, drawn_pets)]
    return hashlib.sha256(b"".join(files)).hexdigest()


class DrawnPets(PhotoSource):
    """The embedded default: drawn cats and dogs, for a first look without any download.

    Args:
        train_size: Number of training drawings.
        validation_size: Number of validation drawings; none of them is a training drawing.
        drawing_seed: Seed of the drawings.
    """

    name = "drawn_pets"

    def __init__(
        self, train_size: PositiveInt = 1000, validation_size: PositiveInt = 500, drawing_seed: NonNegativeInt = 0
    ) -> None:
        self.train_size = train_size
        self.validation_size = validation_size
        self.drawing_seed = drawing_seed

    def train(self) -> Drawings:
        """Give the training drawings."""
        return Drawings(0, self.train_size, self.drawing_seed)

    def validation(self) -> Drawings:
        """Give the validation drawings."""
        # Far from the training drawings, so that another training size does not change them.
        return Drawings(1_000_000, self.validation_size, self.drawing_seed)

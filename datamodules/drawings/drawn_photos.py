"""The embedded tasks as data sets: drawn pets, the default target, and drawn objects, which its backbone comes from."""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import cache
from pathlib import Path
from types import ModuleType

import numpy as np
from jsonargparse.typing import NonNegativeFloat, NonNegativeInt, PositiveInt
from numpy.typing import NDArray
from PIL import Image

from headstart.datamodules.drawings import (
    canvas,
    drawn_animals,
    drawn_objects,
    drawn_pets,
    drawn_plants,
    drawn_signs,
    drawn_things,
)
from headstart.datamodules.drawings.canvas import USUAL, Difficulty
from headstart.datamodules.drawings.drawn_objects import SOURCE_CLASSES, draw_object
from headstart.datamodules.drawings.drawn_pets import draw_pet
from headstart.datamodules.photos.photo_source import Photos, PhotoSource

# The code that draws the pictures of each task.
PETS = (canvas, drawn_pets)
OBJECTS = (canvas, drawn_objects, drawn_animals, drawn_plants, drawn_signs, drawn_things)
# Far from the training drawings, so that another training size does not change them.
FIRST_FOR_VALIDATION = 1_000_000


class Drawings(Photos):
    """Drawings of some classes in turn, made on demand.

    Args:
        draw: Draws one picture of a class, given its label, the drawing's index and the seed.
        code: The modules that it follows from.
        classes: Names of the classes.
        indices: Index of each drawing, `[samples]`.
        seed: Seed of the drawings.
        difficulty: What makes them harder to recognise, where `draw` is to be given that.
    """

    def __init__(
        self,
        draw: Callable[..., Image.Image],
        code: tuple[ModuleType, ...],
        classes: Sequence[str],
        indices: Sequence[int] | NDArray[np.int64],
        seed: int,
        difficulty: Difficulty = USUAL,
    ) -> None:
        self.draw = draw
        self.code = digest_code(code)
        self.classes = tuple(classes)
        self.indices = [int(index) for index in indices]
        self.seed = seed
        self.options = {} if difficulty == USUAL else {"difficulty": difficulty}
        self.labels = np.arange(len(indices), dtype=np.int64) % len(classes)
        self.names = [f"{self.classes[label]}/{index}" for label, index in zip(self.labels, self.indices, strict=True)]

    def read(self, index: int) -> Image.Image:
        """Draw one picture."""
        return self.draw(int(self.labels[index]), self.indices[index], self.seed, **self.options)

    def digest(self, index: int) -> str:
        """Digest what is drawn and the code that draws it."""
        drawn = f"{self.code} {self.labels[index]} {self.indices[index]} {self.seed} {self.options}"
        return hashlib.sha256(drawn.encode()).hexdigest()


@cache
def digest_code(code: tuple[ModuleType, ...]) -> str:
    """Digest the files of the modules that drawings follow from."""
    return hashlib.sha256(b"".join(Path(str(module.__file__)).read_bytes() for module in code)).hexdigest()


class DrawnSource(PhotoSource):
    """Drawings made on demand, by their indices; none for training is one for validation.

    Attributes:
        train_size: Number of training drawings.
        validation_size: Number of validation drawings.
    """

    train_size: int
    validation_size: int

    def train(self) -> Photos:
        """Give the training drawings."""
        return self.drawings(0, self.train_size)

    def validation(self) -> Photos:
        """Give the validation drawings."""
        return self.drawings(FIRST_FOR_VALIDATION, self.validation_size)

    @abstractmethod
    def drawings(self, first: int, count: int) -> Photos:
        """Give so many drawings, from an index on."""


class DrawnPets(DrawnSource):
    """The embedded default: drawn cats and dogs, for a first look without any download.

    Args:
        train_size: Number of training drawings.
        validation_size: Number of validation drawings; none of them is a training drawing.
        drawing_seed: Seed of the drawings.
        occlusion: How much lies in front of the pets, in multiples of what does by default.
        noise: How strong the noise is, likewise.
        pose: How far the pets are turned, likewise; at 12 they stand at any angle.
    """

    name = "drawn_pets"

    def __init__(
        self,
        train_size: PositiveInt = 1000,
        validation_size: PositiveInt = 500,
        drawing_seed: NonNegativeInt = 0,
        occlusion: NonNegativeFloat = 1.0,
        noise: NonNegativeFloat = 1.0,
        pose: NonNegativeFloat = 1.0,
    ) -> None:
        self.difficulty = Difficulty(occlusion, noise, pose)
        changed = [f"{name} {value:g}" for name, value in asdict(self.difficulty).items() if value != 1]
        if changed:
            self.name = f"drawn_pets, {', '.join(changed)}"
        self.train_size = train_size
        self.validation_size = validation_size
        self.drawing_seed = drawing_seed

    def drawings(self, first: int, count: int) -> Drawings:
        """Give so many drawings, cats and dogs in turn, from an index on."""
        indices = range(first, first + count)
        return Drawings(draw_pet, PETS, ("cats", "dogs"), indices, self.drawing_seed, self.difficulty)


class DrawnObjects(DrawnSource):
    """The task that the embedded backbone was pre-trained on: drawn objects of 60 classes, none of them a pet.

    Args:
        train_size: Number of training drawings, as many of every class if 60 divides it.
        validation_size: Number of validation drawings; none of them is a training drawing.
        drawing_seed: Seed of the drawings. The backbone was pre-trained on drawings of seed 0, which are none of any
            other seed.
    """

    name = "drawn_objects"

    def __init__(
        self, train_size: PositiveInt = 1200, validation_size: PositiveInt = 600, drawing_seed: NonNegativeInt = 1
    ) -> None:
        self.train_size = train_size
        self.validation_size = validation_size
        self.drawing_seed = drawing_seed

    def drawings(self, first: int, count: int) -> Drawings:
        """Give so many drawings, the classes in turn, from an index of every class on."""
        return object_drawings(first, count, self.drawing_seed)


def object_drawings(first: int, count: int, seed: int) -> Drawings:
    """Give as many drawings of objects, the classes in turn, from an index of every class on."""
    indices = first + np.arange(count, dtype=np.int64) // len(SOURCE_CLASSES)
    return Drawings(draw_object, OBJECTS, SOURCE_CLASSES, indices, seed)

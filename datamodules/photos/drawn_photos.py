"""Data sets of drawings: pets, the default; objects, on which its backbone was pre-trained; and scenes of objects."""

import hashlib
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import cache, partial
from pathlib import Path

import numpy as np
from jsonargparse.typing import NonNegativeFloat, PositiveInt
from numpy.typing import NDArray
from PIL import Image

from headstart.datamodules.drawings import canvas
from headstart.datamodules.drawings.canvas import Difficulty
from headstart.datamodules.drawings.drawn_objects import SOURCE_CLASSES, draw_object
from headstart.datamodules.drawings.drawn_pets import draw_pet
from headstart.datamodules.drawings.drawn_scenes import draw_scene
from headstart.datamodules.photos.photo_source import Photos, PhotoSource
from headstart.output.errors import UserError, require_different
from headstart.output.seeds import Seed

# Index of the first validation drawing: far from the training indices, so that it does not depend on their number.
FIRST_FOR_VALIDATION = 1_000_000


@dataclass(eq=False)
class Drawings(Photos):
    """Drawings made on demand.

    Attributes:
        draw: The function that draws a picture, with all options that the pictures share.
        arguments: Its positional arguments for each picture.
        names: Names of the pictures.
        labels: Their classes.
        classes: Names of the classes.
    """

    draw: partial[Image.Image]
    arguments: Sequence[tuple[int, ...]]
    names: Sequence[str]
    labels: NDArray[np.int64]
    classes: tuple[str, ...]

    def read(self, index: int) -> Image.Image:
        """Draw one picture."""
        return self.draw(*self.arguments[index])

    def digest(self, index: int) -> str:
        """Digest one picture: the function that draws it, its arguments and the code."""
        picture = f"{digest_code()} {self.draw.func.__name__} {self.arguments[index]} {self.draw.keywords}"
        return hashlib.sha256(picture.encode()).hexdigest()


@cache
def digest_code() -> str:
    """Return a digest of all files that determine the drawings."""
    files = sorted(path for path in Path(canvas.__file__).parent.rglob("*") if path.suffix in {".py", ".yaml"})
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()


def draw_classes(draw: partial[Image.Image], classes: tuple[str, ...], indices: Iterable[int]) -> Drawings:
    """Return drawings that cycle through some classes.

    Args:
        draw: The function that draws a picture from its label and its index.
        classes: Names of the classes.
        indices: Index of each drawing.
    """
    arguments = [(position % len(classes), index) for position, index in enumerate(indices)]
    names = [f"{classes[label]}/{index}" for label, index in arguments]
    return Drawings(draw, arguments, names, np.arange(len(names)) % len(classes), classes)


class DrawnSource(PhotoSource):
    """Drawings made on demand from their indices; the training and validation sets are disjoint.

    Attributes:
        train_size: Number of training drawings.
        validation_size: Number of validation drawings.
    """

    train_size: int
    validation_size: int

    def train(self) -> Photos:
        """Return the training drawings."""
        return self.drawings(0, self.train_size)

    def validation(self) -> Photos:
        """Return the validation drawings."""
        return self.drawings(FIRST_FOR_VALIDATION, self.validation_size)

    @abstractmethod
    def drawings(self, first: int, count: int) -> Photos:
        """Return `count` drawings with consecutive indices, starting at `first`."""


class DrawnPets(DrawnSource):
    """The embedded default: drawn cats and dogs, for a first look without any download.

    Args:
        train_size: Number of training drawings.
        validation_size: Number of validation drawings; none of them is a training drawing.
        drawing_seed: Seed of the drawings.
        occlusion: Amount of clutter in front of the pets, as a multiple of the default.
        noise: Strength of the noise, as a multiple of the default.
        pose: Rotation of the pets, as a multiple of the default. At 12 they stand at any angle.
    """

    name = "drawn_pets"

    def __init__(
        self,
        train_size: PositiveInt = 1000,
        validation_size: PositiveInt = 500,
        drawing_seed: Seed = 0,
        occlusion: NonNegativeFloat = 1.0,
        noise: NonNegativeFloat = 1.0,
        pose: NonNegativeFloat = 1.0,
    ) -> None:
        difficulty = Difficulty(float(occlusion), float(noise), float(pose))
        changed = [f"{name} {value:g}" for name, value in asdict(difficulty).items() if value != 1]
        if changed:
            self.name = f"drawn_pets, {', '.join(changed)}"
        self.train_size, self.validation_size = train_size, validation_size
        self.draw = partial(draw_pet, seed=drawing_seed, difficulty=difficulty)

    def drawings(self, first: int, count: int) -> Drawings:
        """Return `count` drawings, cats and dogs alternately, with consecutive indices starting at `first`."""
        return draw_classes(self.draw, ("cats", "dogs"), range(first, first + count))


class DrawnObjects(DrawnSource):
    """The task that the embedded backbone was pre-trained on: drawn objects of 60 classes, none of them a pet.

    Args:
        train_size: Number of training drawings. Classes have equal sizes if it is a multiple of 60.
        validation_size: Number of validation drawings; none of them is a training drawing.
        drawing_seed: Seed of the drawings. The backbone was pre-trained on drawings of seed 0. Seeds share no drawing.
    """

    name = "drawn_objects"

    def __init__(
        self, train_size: PositiveInt = 1200, validation_size: PositiveInt = 600, drawing_seed: Seed = 1
    ) -> None:
        self.train_size, self.validation_size = train_size, validation_size
        self.draw = partial(draw_object, seed=drawing_seed)

    def drawings(self, first: int, count: int) -> Drawings:
        """Return `count` drawings that cycle through the classes; the indices in every class start at `first`."""
        indices = (first + position // len(SOURCE_CLASSES) for position in range(count))
        return draw_classes(self.draw, SOURCE_CLASSES, indices)


class DrawnScenes(DrawnSource):
    """Drawn scenes with a class for every pixel: background, and the named subjects.

    Args:
        subjects: The objects in the scenes, some of the 60 classes of drawn objects; label 0 is the background.
        most: Largest number of subjects in one scene.
        train_size: Number of training scenes.
        validation_size: Number of validation scenes; none of them is a training scene.
        drawing_seed: Seed of the scenes.
        occlusion: Amount of clutter in front of the subjects, as a multiple of the default.
        noise: Strength of the noise, as a multiple of the default.
        pose: Rotation of the subjects, as a multiple of the default. At 9 they stand at any angle.
        size: Width and height of a scene in pixels.
        name: Name of the data set in results.
    """

    def __init__(
        self,
        subjects: list[str],
        most: PositiveInt = 3,
        train_size: PositiveInt = 1000,
        validation_size: PositiveInt = 200,
        drawing_seed: Seed = 0,
        occlusion: NonNegativeFloat = 1.0,
        noise: NonNegativeFloat = 1.0,
        pose: NonNegativeFloat = 1.0,
        size: PositiveInt = 64,
        name: str = "drawn_scenes",
    ) -> None:
        self.subjects = tuple(subjects)
        self.train_size, self.validation_size = train_size, validation_size
        self.name = name
        difficulty = Difficulty(float(occlusion), float(noise), float(pose))
        self.options = {
            "subjects": self.subjects,
            "most": most,
            "seed": drawing_seed,
            "size": size,
            "difficulty": difficulty,
        }

    def drawings(self, first: int, count: int) -> Drawings:
        """Return `count` scenes with consecutive indices, starting at `first`.

        Raises:
            UserError: A subject is not a class of drawn objects, or is named twice.
        """
        require_different("subjects", self.subjects)
        unknown = [subject for subject in self.subjects if subject not in SOURCE_CLASSES]
        if unknown:
            raise UserError(f"subjects: {', '.join(unknown)} given; allowed are {', '.join(SOURCE_CLASSES)}")

        arguments = [(index,) for index in range(first, first + count)]
        names, labels = [f"scene {index}" for (index,) in arguments], np.zeros(count, dtype=np.int64)
        classes = ("background", *self.subjects)
        scenes, maps = (
            Drawings(partial(draw_scene, label_map=label_map, **self.options), arguments, names, labels, classes)
            for label_map in (False, True)
        )
        scenes.maps = maps
        return scenes

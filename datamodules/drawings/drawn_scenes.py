"""Drawn scenes with a class for every pixel: several subjects of the source task on one ground."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace

import numpy as np
from jsonargparse.typing import NonNegativeFloat, NonNegativeInt, PositiveInt
from numpy.typing import ArrayLike, NDArray
from PIL import Image

from headstart.datamodules.drawings.canvas import (
    SUPERSAMPLING,
    Canvas,
    Color,
    Difficulty,
    Warp,
    blend,
    develop,
    occlude,
    paint_background,
    sample_pose,
)
from headstart.datamodules.drawings.drawn_animals import ANIMALS
from headstart.datamodules.drawings.drawn_photos import OBJECTS, DrawnSource, digest_code
from headstart.datamodules.drawings.drawn_plants import PLANTS
from headstart.datamodules.drawings.drawn_signs import SIGNS
from headstart.datamodules.drawings.drawn_things import THINGS
from headstart.datamodules.photos.photo_source import Photos
from headstart.output.errors import UserError, require_different

PAINTERS = {**PLANTS, **ANIMALS, **THINGS, **SIGNS}
BACKGROUND = "background"
# Half-width of a subject, as a share of the picture's.
SCALE = (0.4, 0.7)
TURN = 0.35
WEAR = 0.7
# Another first word than those of the other drawn tasks, so that no seed makes two of them share a random stream.
_STREAM = 5_191_000


@dataclass(frozen=True)
class LabelledCanvas(Canvas):
    """A canvas that notes, with every shape painted, which class its pixels are of now.

    Attributes:
        labels: The label map, of the picture's size, with the label in the red channel.
        label: Label of what is painted.
    """

    labels: Image.Image
    label: int

    def polygon(self, points: ArrayLike, fill: Color) -> None:
        """Fill a polygon given in the frame's coordinates, in the picture and in the label map."""
        super().polygon(points, fill)
        # Pillow draws no outline that has the colour of what it surrounds.
        inside, outline = (self.label, 0, 0), None if self.outline is None else (self.label, 1, 0)
        Canvas(self.labels, self.pose, self.warp, outline, self.ground).polygon(points, inside)


@dataclass(frozen=True)
class Setting:
    """What scenes are of.

    Attributes:
        subjects: Names of the subjects, whose labels begin at 1; 0 is the background.
        most: The most subjects in one scene; each scene has at least one.
        difficulty: What makes them harder to recognise.
        seed: Seed of the scenes.
        size: Width and height in pixels.
    """

    subjects: tuple[str, ...]
    most: int
    difficulty: Difficulty
    seed: int
    size: int


def draw_scene(index: int, setting: Setting) -> tuple[Image.Image, Image.Image]:
    """Draw one scene; the same arguments always give the same.

    Subjects are painted one after the other, so that later ones cover earlier ones; clutter that covers them is
    background.

    Args:
        index: Which of the scenes, 0 or more.
        setting: What it is of.

    Returns:
        The picture and its label map, both in RGB and of one size; the map has the label in all three channels.
    """
    rng = np.random.default_rng((_STREAM, setting.seed, index))
    side, difficulty = SUPERSAMPLING * setting.size, setting.difficulty
    image, ground = paint_background(rng, side, WEAR)
    outline = blend(ground, (0, 0, 0), 0.8) if rng.random() < 0.6 else None
    labels = Image.new("RGB", image.size)
    canvas = LabelledCanvas(image, np.eye(2, 3), Warp.sample(rng, side), outline, ground, labels, 0)
    for _ in range(int(rng.integers(1, setting.most + 1))):
        subject = int(rng.integers(len(setting.subjects)))
        pose = sample_pose(rng, side, SCALE, TURN * difficulty.pose)
        PAINTERS[setting.subjects[subject]](replace(canvas, pose=pose, label=subject + 1), rng)
    occlude(canvas, rng, WEAR * difficulty.occlusion)
    picture = develop(image, rng, setting.size, WEAR, WEAR * difficulty.noise)
    label_map = labels.getchannel("R").resize(picture.size, Image.Resampling.NEAREST)
    return picture, Image.merge("RGB", [label_map] * 3)


class Scenes(Photos):
    """Scenes made on demand, or their label maps.

    Args:
        indices: Index of each scene.
        setting: What they are of.
        are_maps: Whether these are the label maps.
    """

    def __init__(self, indices: Sequence[int], setting: Setting, are_maps: bool = False) -> None:
        self.indices, self.setting, self.are_maps = indices, setting, are_maps
        self.names = [f"scene {index}" for index in indices]
        self.labels: NDArray[np.int64] = np.zeros(len(indices), dtype=np.int64)
        self.classes = (BACKGROUND, *setting.subjects)
        if not are_maps:
            self.maps = Scenes(indices, setting, are_maps=True)

    def read(self, index: int) -> Image.Image:
        """Draw one picture, or one label map."""
        return draw_scene(self.indices[index], self.setting)[self.are_maps]

    def digest(self, index: int) -> str:
        """Digest what is drawn and the code that draws it."""
        code = digest_code((*OBJECTS, sys.modules[__name__]))
        drawn = f"{code} {self.indices[index]} {astuple(self.setting)} {self.are_maps}"
        return hashlib.sha256(drawn.encode()).hexdigest()


class DrawnScenes(DrawnSource):
    """Drawn scenes with a class for every pixel: background, and the subjects that are asked for.

    Args:
        subjects: What is in the scenes, some of the 60 classes of drawn objects; label 0 is the background.
        most: The most subjects in one scene.
        train_size: Number of training scenes.
        validation_size: Number of validation scenes; none of them is a training scene.
        drawing_seed: Seed of the scenes.
        occlusion: How much lies in front of the subjects, in multiples of what does by default.
        noise: How strong the noise is, likewise.
        pose: How far the subjects are turned, likewise; at 9 they stand at any angle.
        size: Width and height of a scene in pixels.
        name: What the results call the data set.
    """

    def __init__(
        self,
        subjects: list[str],
        most: PositiveInt = 3,
        train_size: PositiveInt = 1000,
        validation_size: PositiveInt = 200,
        drawing_seed: NonNegativeInt = 0,
        occlusion: NonNegativeFloat = 1.0,
        noise: NonNegativeFloat = 1.0,
        pose: NonNegativeFloat = 1.0,
        size: PositiveInt = 64,
        name: str = "drawn_scenes",
    ) -> None:
        difficulty = Difficulty(occlusion, noise, pose)
        self.setting = Setting(tuple(subjects), most, difficulty, drawing_seed, size)
        self.train_size, self.validation_size = train_size, validation_size
        self.name = name

    def drawings(self, first: int, count: int) -> Scenes:
        """Give so many scenes, from an index on.

        Raises:
            UserError: A subject is none that is drawn, or comes twice.
        """
        require_different("subjects", self.setting.subjects)
        unknown = [subject for subject in self.setting.subjects if subject not in PAINTERS]
        if unknown:
            raise UserError(f"subjects: {', '.join(unknown)} given; allowed are {', '.join(PAINTERS)}")
        return Scenes(range(first, first + count), self.setting)

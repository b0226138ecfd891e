"""Drawn scenes with a class for every pixel: several subjects of the source task on one ground."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike
from PIL import Image

from headstart.datamodules.drawings.canvas import (
    SUPERSAMPLING,
    USUAL,
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
from headstart.datamodules.drawings.drawn_objects import PAINTERS

# Half-width of a subject, as a share of the picture's.
SCALE = (0.4, 0.7)
TURN = 0.35
WEAR = 0.7
# Another first word than those of the other drawn tasks, so that no seed makes two of them share a random stream.
_STREAM = 5_191_000


@dataclass(frozen=True)
class LabelledCanvas(Canvas):
    """A canvas that labels the pixels of every painted shape.

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


def draw_scene(
    index: int,
    subjects: Sequence[str],
    most: int = 3,
    seed: int = 0,
    size: int = 64,
    difficulty: Difficulty = USUAL,
    label_map: bool = False,
) -> Image.Image:
    """Draw one scene or its label map; the same arguments always return the same.

    Subjects are painted one after the other, so that later ones cover earlier ones; clutter that covers them is
    background.

    Args:
        index: Which of the scenes, 0 or more.
        subjects: Names of the subjects, whose labels begin at 1; 0 is the background.
        most: The most subjects in one scene; each scene has at least one.
        seed: Seed of the scenes.
        size: Width and height in pixels.
        difficulty: Properties that make the subjects harder to recognise.
        label_map: Whether the label map is returned, with the label in all three channels.

    Returns:
        The picture or the map, in RGB.
    """
    rng = np.random.default_rng((_STREAM, seed, index))
    side = SUPERSAMPLING * size
    image, ground = paint_background(rng, side, WEAR)
    outline = blend(ground, (0, 0, 0), 0.8) if rng.random() < 0.6 else None
    labels = Image.new("RGB", image.size)
    canvas = LabelledCanvas(image, np.eye(2, 3), Warp.sample(rng, side), outline, ground, labels, 0)

    for _ in range(int(rng.integers(1, most + 1))):
        subject = int(rng.integers(len(subjects)))
        pose = sample_pose(rng, side, SCALE, TURN * difficulty.pose)
        PAINTERS[subjects[subject]](replace(canvas, pose=pose, label=subject + 1), rng)

    occlude(canvas, rng, WEAR * difficulty.occlusion)
    if label_map:
        return Image.merge("RGB", [labels.getchannel("R").resize((size, size), Image.Resampling.NEAREST)] * 3)
    return develop(image, rng, size, WEAR, WEAR * difficulty.noise)

"""Drawing primitives shared by all drawn tasks.

A picture is painted at twice its final size in a posed unit frame, then reduced and degraded. In the frame, x is to the
right and y downwards, both about -1 to 1. All randomness comes from the one generator handed in, so a picture depends
on nothing but that generator's seed.
"""

from __future__ import annotations

import colorsys
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray
from PIL import Image, ImageDraw, ImageFilter

Color = tuple[int, int, int]
Generator = np.random.Generator
Floats = NDArray[np.float64]

SUPERSAMPLING = 2
DARK: Color = (30, 26, 28)
PALE: Color = (240, 238, 230)
_ANGLES = np.linspace(0.0, 2.0 * math.pi, 28, endpoint=False)
_CIRCLE: Floats = np.stack([np.cos(_ANGLES), np.sin(_ANGLES)], axis=1)


def hsv(hue: float, saturation: float, value: float) -> Color:
    """Convert a colour with components in [0, 1] to eight-bit RGB; the hue wraps around."""
    red, green, blue = colorsys.hsv_to_rgb(hue % 1.0, min(max(saturation, 0.0), 1.0), min(max(value, 0.0), 1.0))
    return round(red * 255), round(green * 255), round(blue * 255)


def random_color(rng: Generator) -> Color:
    """Sample any colour, vivid or dull, bright or dark."""
    return hsv(rng.random(), rng.uniform(0.0, 0.9), rng.uniform(0.15, 1.0))


def blend(first: Color, second: Color, share: float) -> Color:
    """Mix two colours; `share` is the second one's part."""
    mixed = [round(a + (b - a) * share) for a, b in zip(first, second, strict=True)]
    return mixed[0], mixed[1], mixed[2]


def contrast(first: Color, second: Color) -> float:
    """Return the Euclidean distance between two RGB colours, at most about 442."""
    return math.dist(first, second)


def curve(start: Sequence[float], bend: Sequence[float], stop: Sequence[float], steps: int = 9) -> Floats:
    """Return points on the quadratic Bezier curve through `start` and `stop` that leans towards `bend`."""
    t = np.linspace(0.0, 1.0, steps)[:, None]
    points: Floats = (1 - t) ** 2 * np.asarray(start) + 2 * t * (1 - t) * np.asarray(bend) + t**2 * np.asarray(stop)
    return points


@dataclass(frozen=True)
class Warp:
    """A gentle sine-shaped bending of the plane, so that no two outlines of one kind are congruent."""

    waves: Floats
    phases: Floats
    amplitude: float

    @staticmethod
    def sample(rng: Generator, side: int) -> Warp:
        """Sample a warp for a canvas `side` pixels wide."""
        waves = rng.uniform(-1.0, 1.0, (2, 2)) * (2.0 * math.pi * 1.4 / side)
        return Warp(waves, rng.uniform(0.0, 2.0 * math.pi, 2), rng.uniform(0.0, 0.035) * side)

    def __call__(self, points: Floats) -> Floats:
        """Return the bent positions of pixel positions of shape (n, 2)."""
        bent: Floats = points + self.amplitude * np.sin(points @ self.waves + self.phases)
        return bent


@dataclass(frozen=True)
class Canvas:
    """A picture under construction, with the frame of its shapes.

    Attributes:
        image: The supersampled picture.
        pose: The 2x3 matrix from the unit frame to pixels.
        warp: The bending that follows the pose.
        outline: The colour of every filled shape's edge, or None for no edges.
        ground: The background's main colour, from which a subject should stand out.
    """

    image: Image.Image
    pose: Floats
    warp: Warp
    outline: Color | None
    ground: Color

    def within(self, x: float, y: float, scale: float = 1.0, angle: float = 0.0) -> Canvas:
        """Return the same picture with a frame moved to (x, y), scaled, and turned clockwise by radians."""
        cos, sin = scale * math.cos(angle), scale * math.sin(angle)
        local = np.array([[cos, -sin, x], [sin, cos, y], [0.0, 0.0, 1.0]])
        return replace(self, pose=self.pose @ local)

    def mirrored(self) -> Canvas:
        """Return the same picture with left and right of the frame exchanged."""
        return replace(self, pose=self.pose @ np.diag([-1.0, 1.0, 1.0]))

    def polygon(self, points: ArrayLike, fill: Color) -> None:
        """Fill a polygon given in the frame's coordinates."""
        pixels = self.warp(np.asarray(points, dtype=np.float64) @ self.pose[:, :2].T + self.pose[:, 2])
        ImageDraw.Draw(self.image).polygon(pixels.ravel().tolist(), fill=fill, outline=self.outline)

    def ellipse(self, x: float, y: float, rx: float, ry: float, fill: Color, angle: float = 0.0) -> None:
        """Fill an ellipse, turned clockwise by `angle` radians."""
        cos, sin = math.cos(angle), math.sin(angle)
        self.polygon((_CIRCLE * (rx, ry)) @ np.array([[cos, sin], [-sin, cos]]) + (x, y), fill)

    def box(self, left: float, top: float, right: float, bottom: float, fill: Color) -> None:
        """Fill a rectangle, its edges subdivided so that the warp bends them."""
        middle = (left + right) / 2
        self.polygon(
            [(left, top), (middle, top), (right, top), (right, bottom), (middle, bottom), (left, bottom)], fill
        )

    def stroke(self, points: ArrayLike, width: float, fill: Color, end_width: float | None = None) -> None:
        """Draw a band along a smooth line, tapering to `end_width` where one is given."""
        line = np.asarray(points, dtype=np.float64)
        along = np.gradient(line, axis=0)
        across = np.stack([-along[:, 1], along[:, 0]], axis=1)
        across /= np.linalg.norm(across, axis=1, keepdims=True) + 1e-9
        across *= np.linspace(width, width if end_width is None else end_width, len(line))[:, None] / 2
        self.polygon(np.concatenate([line + across, (line - across)[::-1]]), fill)


@dataclass(frozen=True)
class Difficulty:
    """How hard subjects are to recognise, as multiples of the task's usual values.

    Attributes:
        occlusion: Pieces of clutter in front of the subject, and how often bars are.
        noise: The strongest noise beyond the least one.
        pose: The largest rotation.
    """

    occlusion: float = 1.0
    noise: float = 1.0
    pose: float = 1.0


USUAL = Difficulty()

Painter = Callable[[Canvas, Generator], None]


def ink(canvas: Canvas, rng: Generator) -> Color:
    """Sample a colour that stands out from the canvas's ground, if a few tries find one."""
    color = random_color(rng)
    for _ in range(8):
        if contrast(color, canvas.ground) > 90.0:
            break
        color = random_color(rng)
    return color


def sample_pose(rng: Generator, side: int, scale: tuple[float, float], turn: float) -> Floats:
    """Sample a pose: size, rotation, shear, stretch, flip and a shift that keeps most of the frame in view.

    Args:
        rng: The picture's generator.
        side: The supersampled width in pixels.
        scale: The range of the frame's half-width, as a share of the picture's half-width.
        turn: The largest rotation either way, in radians.
    """
    size = rng.uniform(*scale)
    angle = rng.uniform(-turn, turn)
    flip = -1.0 if rng.random() < 0.5 else 1.0
    stretch = rng.uniform(0.85, 1.15)
    rotation = np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
    shape = np.array([[flip * stretch, rng.uniform(-0.18, 0.18)], [0.0, 1.0 / stretch]])
    room = max(0.12, 1.05 - size)
    centre = (1.0 + rng.uniform(-room, room, 2)) * side / 2
    return np.column_stack([rotation @ shape * (size * side / 2), centre])


def paint_background(rng: Generator, side: int, wear: float) -> tuple[Image.Image, Color]:
    """Paint a gradient, cloudy, striped or two-part ground, often with clutter on it.

    Args:
        rng: The picture's generator.
        side: The supersampled width in pixels.
        wear: How much clutter there is: none at 0, up to six pieces at 1.

    Returns:
        The picture, and its main colour, from which the subject should stand out.
    """
    first, second = random_color(rng), random_color(rng)
    second = blend(first, second, rng.uniform(0.2, 0.7))

    kind = rng.integers(4)
    if kind == 0:
        corners = np.array([[first, blend(first, second, rng.random())], [blend(first, second, rng.random()), second]])
        image = Image.fromarray(corners.astype(np.uint8)).resize((side, side), Image.Resampling.BILINEAR)
    elif kind == 1:
        cells = rng.integers(3, 12)
        share = rng.random((cells, cells, 1))
        cloud = np.asarray(first) + share * (np.asarray(second) - np.asarray(first))
        image = Image.fromarray(cloud.astype(np.uint8)).resize((side, side), Image.Resampling.BICUBIC)
    else:
        image = Image.new("RGB", (side, side), first)

        pen = ImageDraw.Draw(image)
        if kind == 2:
            level, tilt = rng.uniform(0.35, 0.85) * side, rng.uniform(-0.15, 0.15) * side
            pen.polygon([0, level - tilt, side, level + tilt, side, side, 0, side], fill=second)
        else:
            step, lean = rng.uniform(0.1, 0.35) * side, rng.uniform(-1.0, 1.0) * side
            for left in np.arange(-1.0 * side, 2.0 * side, step):
                middle = left + step / 2
                pen.polygon([left, 0, middle, 0, middle + lean, side, left + lean, side], fill=second)

    canvas = Canvas(image, np.array([[side, 0.0, 0.0], [0.0, side, 0.0]]), Warp.sample(rng, side), None, first)
    for _ in range(int(rng.integers(0, 1 + round(6 * wear)))):
        paint_clutter(canvas, rng, blend(first, random_color(rng), rng.uniform(0.2, 0.6)), rng.uniform(0.05, 0.2))
    return image, blend(first, second, 0.5)


def paint_clutter(canvas: Canvas, rng: Generator, fill: Color, size: float) -> None:
    """Paint one meaningless blob, shard or twig somewhere in a frame that runs from 0 to 1."""
    x, y = rng.random(2)
    spot = canvas.within(float(x), float(y), size, rng.uniform(0.0, 2.0 * math.pi))
    kind = rng.integers(3)
    if kind == 0:
        spot.ellipse(0.0, 0.0, 1.0, rng.uniform(0.4, 1.0), fill)
    elif kind == 1:
        spot.polygon(rng.uniform(-1.0, 1.0, (int(rng.integers(3, 6)), 2)), fill)
    else:
        spot.stroke(curve((-1.6, 0.0), (0.0, rng.uniform(-1.0, 1.0)), (1.6, 0.0)), rng.uniform(0.15, 0.5), fill)


def occlude(canvas: Canvas, rng: Generator, wear: float) -> None:
    """Cover parts of the subject with bars or with pieces of clutter, up to three of them at a wear of 1."""
    front = replace(canvas, pose=np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]) * canvas.image.width)
    if rng.random() < 0.15 * wear:
        bar, lean, width = random_color(rng), rng.uniform(-0.4, 0.4), rng.uniform(0.02, 0.05)
        for x in np.arange(rng.uniform(-0.2, 0.0), 1.2, rng.uniform(0.2, 0.35)):
            front.stroke([(x, -0.1), (x + lean / 2, 0.5), (x + lean, 1.1)], width, bar)
        return
    for _ in range(int(rng.integers(0, 1 + round(3 * wear)))):
        paint_clutter(front, rng, random_color(rng), rng.uniform(0.06, 0.17))


def develop(image: Image.Image, rng: Generator, size: int, wear: float, noise: float) -> Image.Image:
    """Reduce a supersampled picture to `size` pixels, and degrade it by blur, light and noise."""
    small = image.reduce(SUPERSAMPLING) if image.width == SUPERSAMPLING * size else image.resize((size, size))
    if rng.random() < 0.35 * wear:
        small = small.filter(ImageFilter.GaussianBlur(rng.uniform(0.3, 0.9) * size / 64))
    pixels = np.asarray(small, dtype=np.float32)
    pixels = (pixels - 128.0) * np.float32(rng.uniform(1.0 - 0.45 * wear, 1.1))
    pixels += np.float32(128.0 + rng.uniform(-30.0, 30.0) * wear)
    pixels += rng.standard_normal(pixels.shape, dtype=np.float32) * np.float32(rng.uniform(2.0, 2.0 + 20.0 * noise))
    return Image.fromarray(np.clip(pixels, 0.0, 255.0).astype(np.uint8))


def render(
    painter: Painter,
    rng: Generator,
    size: int,
    scale: tuple[float, float] = (0.6, 0.95),
    turn: float = 0.35,
    wear: float = 1.0,
    difficulty: Difficulty = USUAL,
) -> Image.Image:
    """Draw one complete picture: ground, posed subject, occlusion, degradation.

    Args:
        painter: Paints the subject into the unit frame.
        rng: The picture's generator, the only source of randomness.
        size: The picture's width and height in pixels.
        scale: The range of the subject's size as a share of the picture's.
        turn: The largest rotation either way, in radians.
        wear: How far clutter, occlusion, blur, light and noise spoil the picture, from 0 to 1.
        difficulty: Properties that make the subject harder to recognise.

    Returns:
        An RGB picture.
    """
    side = SUPERSAMPLING * size
    image, ground = paint_background(rng, side, wear)
    outline = blend(ground, (0, 0, 0), 0.8) if rng.random() < 0.6 else None
    canvas = Canvas(
        image, sample_pose(rng, side, scale, turn * difficulty.pose), Warp.sample(rng, side), outline, ground
    )
    painter(canvas, rng)
    occlude(canvas, rng, wear * difficulty.occlusion)
    return develop(image, rng, size, wear, wear * difficulty.noise)

"""The embedded default's target task: procedurally drawn cats (label 0) and dogs (label 1).

Species differ in shape alone: ears, muzzle, nose, eyes, whiskers, tail and build. Coat, markings, eye colour,
pose, size, background, occlusion and noise come from the same distributions for both, so they carry no label.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from PIL import Image

from headstart.datamodules.drawings.canvas import (
    USUAL,
    Canvas,
    Color,
    Difficulty,
    Generator,
    blend,
    contrast,
    curve,
    hsv,
    render,
)

_DARK: Color = (28, 24, 26)
_PINK: Color = (222, 130, 140)
_COATS = (
    (0.07, 0.75, 0.85),
    (0.0, 0.05, 0.15),
    (0.1, 0.06, 0.93),
    (0.6, 0.08, 0.5),
    (0.06, 0.6, 0.4),
    (0.1, 0.35, 0.8),
)


@dataclass(frozen=True)
class _Coat:
    main: Color
    shade: Color
    light: Color
    eye: Color
    marking: str


def _sample_coat(rng: Generator, ground: Color) -> _Coat:
    for _ in range(8):
        hue, saturation, value = _COATS[rng.integers(len(_COATS))]
        main = hsv(hue + rng.uniform(-0.04, 0.04), saturation + rng.uniform(-0.1, 0.1), value + rng.uniform(-0.1, 0.1))
        if contrast(main, ground) > 70.0:
            break
    light = blend(main, (245, 238, 228), rng.uniform(0.3, 0.8))
    eye = hsv(rng.uniform(0.05, 0.6), rng.uniform(0.3, 0.8), rng.uniform(0.6, 0.95))
    marking = ("plain", "striped", "patched", "bib")[rng.integers(4)]
    return _Coat(main, blend(main, _DARK, rng.uniform(0.25, 0.6)), light, eye, marking)


def _mark(canvas: Canvas, rng: Generator, coat: _Coat, x: float, y: float, rx: float, ry: float) -> None:
    """Paint the coat's markings on a body part, an ellipse."""
    bare = replace(canvas, outline=None)
    if coat.marking == "striped":
        for offset in np.linspace(-0.6, 0.6, 4) + rng.uniform(-0.1, 0.1):
            reach = ry * float(np.sqrt(1.0 - offset**2))
            stripe = curve(
                (x + offset * rx, y - 0.95 * reach), (x + offset * rx, y), (x + offset * rx, y + reach * 0.1)
            )
            bare.stroke(stripe, 0.16 * rx, coat.shade, 0.05 * rx)
    elif coat.marking == "patched":
        for _ in range(int(rng.integers(1, 4))):
            spot_x, spot_y = rng.uniform(-0.5, 0.5, 2)
            bare.ellipse(x + spot_x * rx, y + spot_y * ry, rng.uniform(0.2, 0.4) * rx, 0.35 * ry, coat.shade, 0.4)


def _cat_front(head: Canvas, rng: Generator, coat: _Coat) -> None:
    tip, lean = rng.uniform(1.25, 1.6), rng.uniform(0.6, 0.95)
    for side in (head, head.mirrored()):
        side.polygon([(-0.95, -0.3), (-lean, -tip), (-0.12, -0.8)], coat.main)
        side.polygon([(-0.8, -0.55), (-lean + 0.05, -tip + 0.25), (-0.35, -0.78)], _PINK)
    head.ellipse(0.0, 0.0, rng.uniform(0.95, 1.1), rng.uniform(0.8, 0.92), coat.main)
    _mark(head, rng, coat, 0.0, -0.45, 0.5, 0.35)
    slit, open_eye = rng.uniform(0.04, 0.11), rng.uniform(0.12, 0.22)
    whisker = blend(coat.light, (255, 255, 255), 0.5) if rng.random() < 0.5 else _DARK
    for side in (head, head.mirrored()):
        side.ellipse(-0.42, -0.08, 0.26, open_eye, coat.eye, 0.3)
        side.ellipse(-0.42, -0.08, slit, open_eye * 0.9, _DARK)
        side.ellipse(-0.17, 0.42, 0.24, 0.18, coat.light)
        for rise in (-0.12, 0.05, 0.22):
            side.stroke([(-0.3, 0.38 + rise / 3), (-1.35, 0.3 + rise * 1.6)], 0.05, whisker)
    head.polygon([(-0.13, 0.2), (0.13, 0.2), (0.0, 0.36)], _PINK if rng.random() < 0.5 else _DARK)


def _dog_front(head: Canvas, rng: Generator, coat: _Coat) -> None:
    ear = coat.shade if rng.random() < 0.6 else coat.main
    long_ear, splay, folded = rng.uniform(0.55, 0.9), rng.uniform(0.0, 0.45), rng.random() < 0.25
    head.ellipse(0.0, 0.0, rng.uniform(0.76, 0.92), rng.uniform(0.88, 1.02), coat.main)
    _mark(head, rng, coat, 0.0, -0.5, 0.45, 0.35)
    for side in (head, head.mirrored()):
        if folded:
            side.polygon([(-0.8, -0.3), (-0.75, -1.0), (-0.25, -0.85), (-0.7, -0.55), (-1.2, -0.2)], ear)
        else:
            side.ellipse(-0.88 - splay / 3, -0.35 + 0.6 * long_ear, 0.27, long_ear, ear, splay)
    muzzle = coat.light if coat.marking != "plain" else blend(coat.main, coat.light, 0.6)
    if rng.random() < 0.45:
        head.ellipse(0.05, 1.0, 0.17, 0.32, _PINK)
    head.ellipse(0.0, 0.5, rng.uniform(0.42, 0.55), rng.uniform(0.4, 0.5), muzzle)
    for side in (head, head.mirrored()):
        side.ellipse(-0.36, -0.15, 0.16, 0.16, coat.eye)
        side.ellipse(-0.36, -0.14, 0.11, 0.12, _DARK)
        side.stroke(curve((0.0, 0.45), (-0.02, 0.75), (-0.3, 0.68)), 0.05, _DARK)
    head.ellipse(0.0, 0.3, 0.24, 0.17, _DARK)


def _cat_profile(head: Canvas, rng: Generator, coat: _Coat) -> None:
    tip = rng.uniform(1.2, 1.55)
    head.polygon([(0.1, -0.6), (0.4, -tip), (0.65, -0.45)], coat.shade)
    head.ellipse(0.62, 0.28, 0.38, 0.3, coat.light)
    head.ellipse(0.0, 0.0, 0.9, 0.8, coat.main)
    head.polygon([(-0.75, -0.3), (-0.5, -tip), (0.15, -0.65)], coat.main)
    head.polygon([(-0.55, -0.5), (-0.42, -tip + 0.25), (-0.05, -0.65)], _PINK)
    head.ellipse(0.42, -0.1, 0.2, 0.17, coat.eye)
    head.ellipse(0.46, -0.1, 0.06, 0.15, _DARK)
    head.polygon([(0.85, 0.08), (1.02, 0.18), (0.88, 0.28)], _PINK)
    for rise in (-0.1, 0.08, 0.26):
        head.stroke([(0.6, 0.35), (1.45, 0.35 + rise * 1.4)], 0.05, coat.light)


def _dog_profile(head: Canvas, rng: Generator, coat: _Coat) -> None:
    reach, drop = rng.uniform(1.3, 1.7), rng.uniform(0.2, 0.45)
    ear = coat.shade if rng.random() < 0.6 else coat.main
    if rng.random() < 0.4:
        head.ellipse(reach - 0.45, drop + 0.4, 0.13, 0.3, _PINK, -0.2)
    head.stroke([(0.2, 0.12), (reach, drop)], 0.85, coat.main if coat.marking == "plain" else coat.light, 0.5)
    head.ellipse(0.0, 0.0, 0.82, 0.75, coat.main)
    head.ellipse(reach - 0.02, drop - 0.15, 0.19, 0.16, _DARK)
    head.stroke([(0.65, drop + 0.2), (reach - 0.1, drop + 0.12)], 0.05, _DARK)
    head.ellipse(0.38, -0.22, 0.14, 0.14, coat.eye)
    head.ellipse(0.4, -0.22, 0.1, 0.1, _DARK)
    head.ellipse(-0.42, 0.25, 0.3, rng.uniform(0.6, 0.85), ear, rng.uniform(-0.1, 0.4))


@dataclass(frozen=True)
class _Build:
    front: Callable[[Canvas, Generator, _Coat], None]
    profile: Callable[[Canvas, Generator, _Coat], None]
    girth: float
    leg: float
    tail_reach: float
    tail_widths: tuple[float, float]


_BUILDS = (
    _Build(_cat_front, _cat_profile, 0.9, 0.14, 1.0, (0.13, 0.1)),
    _Build(_dog_front, _dog_profile, 1.08, 0.19, 0.6, (0.19, 0.05)),
)


def _tail(canvas: Canvas, rng: Generator, coat: _Coat, build: _Build, x: float, y: float) -> None:
    """Draw a tail from (x, y) to the left: cats' are long and even, dogs' short and tapered."""
    reach = build.tail_reach * rng.uniform(0.8, 1.15)
    rise = rng.uniform(-0.95, 0.15)
    line = curve((x, y), (x - 0.75 * reach, y + 0.15), (x - 0.45 * reach, y + rise * reach))
    canvas.stroke(line, build.tail_widths[0], coat.main if rng.random() < 0.6 else coat.shade, build.tail_widths[1])


def _leg(canvas: Canvas, coat: _Coat, build: _Build, top: tuple[float, float], foot: tuple[float, float]) -> None:
    canvas.stroke([top, foot], build.leg * 1.15, coat.main, build.leg)
    canvas.ellipse(foot[0] + 0.03, foot[1], build.leg * 0.75, build.leg * 0.5, coat.light)


def _head_only(canvas: Canvas, rng: Generator, coat: _Coat, build: _Build) -> None:
    face = build.front if rng.random() < 0.7 else build.profile
    face(canvas.within(0.0, 0.1, rng.uniform(0.55, 0.8)), rng, coat)


def _sitting(canvas: Canvas, rng: Generator, coat: _Coat, build: _Build) -> None:
    _tail(canvas, rng, coat, build, -0.3, 0.8)
    girth = build.girth * rng.uniform(0.36, 0.44)
    canvas.ellipse(0.0, 0.35, girth, 0.6, coat.main)
    _mark(canvas, rng, coat, 0.0, 0.45, girth, 0.5)
    for side in (canvas, canvas.mirrored()):
        side.ellipse(-girth, 0.72, 0.22, 0.24, coat.main)
    if coat.marking == "bib":
        canvas.ellipse(0.0, 0.25, girth * 0.5, 0.35, coat.light)
    for x in (-0.16, 0.16):
        _leg(canvas, coat, build, (x, 0.3), (x * rng.uniform(0.9, 1.3), 0.92))
    face = build.front if rng.random() < 0.75 else build.profile
    face(canvas.within(rng.uniform(-0.08, 0.08), -0.42, rng.uniform(0.4, 0.5), rng.uniform(-0.25, 0.25)), rng, coat)


def _standing(canvas: Canvas, rng: Generator, coat: _Coat, build: _Build) -> None:
    _tail(canvas, rng, coat, build, -0.55, 0.02)
    height, swing = rng.uniform(0.72, 0.9), rng.uniform(-0.12, 0.12)
    dim = replace(coat, main=coat.shade)
    for x in (-0.4, 0.36):
        _leg(canvas, dim, build, (x, 0.2), (x - swing + 0.08, height))
    canvas.stroke([(0.4, 0.05), (0.62, -0.3)], 0.34, coat.main)
    canvas.ellipse(-0.03, 0.1, 0.62, build.girth * rng.uniform(0.23, 0.29), coat.main, rng.uniform(-0.08, 0.08))
    _mark(canvas, rng, coat, -0.03, 0.1, 0.6, 0.24)
    for x in (-0.5, 0.45):
        _leg(canvas, coat, build, (x, 0.2), (x + swing, height))
    face = build.front if rng.random() < 0.5 else build.profile
    face(canvas.within(0.62, -0.38, rng.uniform(0.33, 0.42), rng.uniform(-0.3, 0.3)), rng, coat)


def _lying(canvas: Canvas, rng: Generator, coat: _Coat, build: _Build) -> None:
    _tail(canvas, rng, coat, build, -0.65, 0.5)
    canvas.ellipse(-0.1, 0.42, 0.72, build.girth * rng.uniform(0.28, 0.34), coat.main)
    _mark(canvas, rng, coat, -0.1, 0.4, 0.68, 0.28)
    canvas.ellipse(-0.48, 0.52, 0.27, 0.24, coat.main)
    for y in (0.62, 0.7):
        _leg(canvas, coat, build, (0.3, y), (rng.uniform(0.75, 0.95), y))
    face = build.front if rng.random() < 0.6 else build.profile
    face(canvas.within(0.5, rng.uniform(-0.1, 0.15), rng.uniform(0.36, 0.46), rng.uniform(-0.35, 0.35)), rng, coat)


_POSES = (_head_only, _sitting, _standing, _lying)
_POSE_SHARES = (0.42, 0.3, 0.14, 0.14)
_SCALE = (0.75, 1.0)
_TURN = 0.25
_WEAR = 0.7

# Another first word than the source task's, so that no seed makes the two tasks share a random stream.
_STREAM = 1_264_000


def draw_pet(label: int, index: int, seed: int = 0, size: int = 64, difficulty: Difficulty = USUAL) -> Image.Image:
    """Draw one cat or dog; the same arguments always return the same picture.

    Args:
        label: 0 for a cat, 1 for a dog.
        index: Which of the label's drawings, 0 or more.
        seed: Selects a family of drawings; families share no picture.
        size: The picture's width and height in pixels.
        difficulty: Properties that make the pets harder to recognise.

    Returns:
        An RGB picture.
    """
    build = _BUILDS[label]
    rng = np.random.default_rng((_STREAM, seed, index, label))

    def paint(canvas: Canvas, rng: Generator) -> None:
        coat = _sample_coat(rng, canvas.ground)
        _POSES[rng.choice(len(_POSES), p=_POSE_SHARES)](canvas, rng, coat, build)

    return render(paint, rng, size, _SCALE, _TURN, _WEAR, difficulty)

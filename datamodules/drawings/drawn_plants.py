"""Source-task subjects that grow: trees, flowers and fruit."""

from __future__ import annotations

import math

import numpy as np

from headstart.datamodules.drawings.canvas import DARK, PALE, Canvas, Color, Generator, blend, by_name, curve, hsv, ink


def _leafy(rng: Generator) -> Color:
    return hsv(rng.uniform(0.2, 0.45), rng.uniform(0.3, 0.9), rng.uniform(0.3, 0.8))


def _round_tree(canvas: Canvas, rng: Generator) -> None:
    canvas.stroke([(0.0, 0.2), (0.0, 0.95)], 0.22, ink(canvas, rng), 0.3)
    crown = _leafy(rng)
    for x, y in np.array([(-0.35, 0.0), (0.35, 0.0), (0.0, -0.4)]) + rng.uniform(-0.1, 0.1, (3, 2)):
        canvas.ellipse(x, y, rng.uniform(0.35, 0.5), rng.uniform(0.35, 0.45), crown)


def _pine(canvas: Canvas, rng: Generator) -> None:
    canvas.box(-0.1, 0.6, 0.1, 0.98, ink(canvas, rng))
    needles, tiers = _leafy(rng), int(rng.integers(2, 5))
    for top in np.linspace(0.2, -0.95, tiers):
        half = 0.3 + 0.35 * (top + 0.95)
        canvas.polygon([(0.0, top - 0.05), (half, top + 0.55), (-half, top + 0.55)], needles)


def _palm(canvas: Canvas, rng: Generator) -> None:
    lean = rng.uniform(-0.4, 0.4)
    canvas.stroke(curve((0.0, 0.95), (-lean / 2, 0.2), (lean, -0.4)), 0.18, ink(canvas, rng), 0.1)
    frond = _leafy(rng)
    for reach in np.linspace(-0.85, 0.85, int(rng.integers(5, 8))):
        canvas.stroke(
            curve((lean, -0.4), (lean + reach * 0.6, -0.95), (lean + reach, -0.25 + 0.2 * abs(reach))),
            0.16,
            frond,
            0.02,
        )


def _cactus(canvas: Canvas, rng: Generator) -> None:
    green = _leafy(rng)
    canvas.stroke([(0.0, 0.9), (0.0, -0.8)], 0.38, green, 0.32)
    for side in (canvas, canvas.mirrored()):
        height = rng.uniform(-0.2, 0.3)
        side.stroke(curve((0.1, height), (0.7, height), (0.62, height - 0.6)), 0.2, green)
    canvas.box(-0.4, 0.75, 0.4, 1.0, ink(canvas, rng))


def _flower(canvas: Canvas, rng: Generator) -> None:
    green, petal, count = _leafy(rng), ink(canvas, rng), int(rng.integers(5, 9))
    canvas.stroke(curve((0.0, -0.3), (rng.uniform(-0.3, 0.3), 0.4), (0.0, 1.0)), 0.1, green)
    canvas.ellipse(0.25, 0.6, 0.28, 0.1, green, -0.5)
    for turn in np.arange(count) * 2 * math.pi / count:
        canvas.ellipse(0.34 * math.cos(turn), -0.35 + 0.34 * math.sin(turn), 0.28, 0.15, petal, turn)
    canvas.ellipse(0.0, -0.35, 0.18, 0.18, ink(canvas, rng))


def _mushroom(canvas: Canvas, rng: Generator) -> None:
    cap, stem = ink(canvas, rng), blend(PALE, ink(canvas, rng), 0.2)
    canvas.stroke([(0.0, -0.1), (0.0, 0.85)], 0.35, stem, 0.5)
    canvas.polygon(curve((-0.85, 0.05), (0.0, rng.uniform(-2.0, -1.5)), (0.85, 0.05), 13), cap)
    for x, y in rng.uniform((-0.4, -0.5), (0.4, -0.15), (4, 2)):
        canvas.ellipse(x, y, 0.1, 0.09, PALE)


def _leaf(canvas: Canvas, rng: Generator) -> None:
    body, width = ink(canvas, rng), rng.uniform(0.7, 1.1)
    rim = np.concatenate([curve((-0.9, 0), (0, -width), (0.9, 0)), curve((0.9, 0), (0, width), (-0.9, 0))])
    canvas.polygon(rim, body)
    vein = blend(body, DARK, 0.5)
    canvas.stroke([(-1.1, 0.0), (0.8, 0.0)], 0.07, vein)
    for x in (-0.45, -0.1, 0.25):
        for y in (-0.3, 0.3):
            canvas.stroke([(x, 0.0), (x + 0.25, y)], 0.05, vein)


def _apple(canvas: Canvas, rng: Generator) -> None:
    skin = ink(canvas, rng)
    for x in (-0.25, 0.25):
        canvas.ellipse(x, 0.15, 0.52, rng.uniform(0.6, 0.72), skin)
    canvas.stroke(curve((0.0, -0.4), (0.02, -0.6), (0.15, -0.85)), 0.09, DARK)
    canvas.ellipse(0.35, -0.7, 0.26, 0.12, _leafy(rng), -0.4)


def _grapes(canvas: Canvas, rng: Generator) -> None:
    fruit = ink(canvas, rng)
    for row, count in enumerate((4, 3, 2, 1)):
        for column in range(count):
            canvas.ellipse((column - (count - 1) / 2) * 0.42, -0.45 + 0.38 * row, 0.24, 0.24, fruit)
    canvas.stroke([(0.0, -0.6), (0.1, -1.0)], 0.1, _leafy(rng))


def _carrot(canvas: Canvas, rng: Generator) -> None:
    root, green = ink(canvas, rng), _leafy(rng)
    for x in (-0.3, 0.0, 0.3):
        canvas.stroke(curve((0.0, -0.4), (x / 2, -0.7), (x, -1.0)), 0.12, green)
    canvas.stroke([(0.0, -0.5), (0.0, 0.2), (rng.uniform(-0.1, 0.1), 0.98)], rng.uniform(0.4, 0.6), root, 0.03)


def _pineapple(canvas: Canvas, rng: Generator) -> None:
    skin, green = ink(canvas, rng), _leafy(rng)
    for x in (-0.4, -0.2, 0.0, 0.2, 0.4):
        canvas.polygon([(x - 0.14, -0.2), (x * 1.5, -1.0 + abs(x) / 2), (x + 0.14, -0.2)], green)
    canvas.ellipse(0.0, 0.35, 0.48, 0.63, skin)
    for y in (0.0, 0.3, 0.6):
        canvas.stroke([(-0.4, y), (0.4, y + 0.2)], 0.05, blend(skin, DARK, 0.5))
        canvas.stroke([(-0.4, y + 0.2), (0.4, y)], 0.05, blend(skin, DARK, 0.5))


PLANTS = by_name(_round_tree, _pine, _palm, _cactus, _flower, _mushroom, _leaf, _apple, _grapes, _carrot, _pineapple)

"""Source-task figures and signs: faces, wearables, symbols, patterns and letters."""

from __future__ import annotations

import math

import numpy as np

from headstart.datamodules.drawings.canvas import DARK, PALE, Canvas, Generator, Painter, blend, by_name, curve, ink


def _letter(*strokes: tuple[tuple[float, float], ...]) -> Painter:
    def paint(canvas: Canvas, rng: Generator) -> None:
        color, width = ink(canvas, rng), rng.uniform(0.15, 0.32)
        for line in strokes:
            canvas.stroke(line, width, color)

    return paint


def _clock(canvas: Canvas, rng: Generator) -> None:
    canvas.ellipse(0.0, 0.0, 0.85, 0.85, ink(canvas, rng))
    canvas.ellipse(0.0, 0.0, 0.7, 0.7, PALE)
    for turn in np.arange(12) * math.pi / 6:
        canvas.ellipse(0.58 * math.cos(turn), 0.58 * math.sin(turn), 0.05, 0.05, DARK)
    for turn, reach in zip(rng.uniform(0.0, 2.0 * math.pi, 2), (0.5, 0.33), strict=True):
        canvas.stroke([(0.0, 0.0), (reach * math.cos(turn), reach * math.sin(turn))], 0.08, DARK)


def _glasses(canvas: Canvas, rng: Generator) -> None:
    frame, height = ink(canvas, rng), rng.uniform(0.26, 0.38)
    canvas.stroke(curve((-0.2, 0.0), (0.0, -0.2), (0.2, 0.0)), 0.09, frame)
    for side in (canvas, canvas.mirrored()):
        side.stroke([(-0.8, -0.1), (-1.0, -0.35)], 0.09, frame)
        side.ellipse(-0.5, 0.0, 0.4, height, frame)
        side.ellipse(-0.5, 0.0, 0.3, height - 0.09, blend(canvas.ground, PALE, 0.4))


def _crown(canvas: Canvas, rng: Generator) -> None:
    gold, dip = ink(canvas, rng), rng.uniform(-0.1, 0.2)
    canvas.polygon([(-0.75, 0.6), (-0.9, -0.4), (-0.42, dip), (0.0, -0.6), (0.42, dip), (0.9, -0.4), (0.75, 0.6)], gold)
    for x, y in ((-0.9, -0.45), (0.0, -0.65), (0.9, -0.45), (-0.4, 0.4), (0.0, 0.4), (0.4, 0.4)):
        canvas.ellipse(x, y, 0.1, 0.1, ink(canvas, rng))


def _face(canvas: Canvas, rng: Generator) -> None:
    canvas.ellipse(0.0, 0.0, rng.uniform(0.7, 0.85), 0.85, ink(canvas, rng))
    mood, eye = rng.uniform(-0.3, 0.9), rng.uniform(0.07, 0.16)
    for x in (-0.3, 0.3):
        canvas.ellipse(x, -0.22, eye, eye * 1.4, DARK)
    canvas.stroke(curve((-0.45, 0.3), (0.0, 0.3 + mood * 0.6), (0.45, 0.3)), 0.09, DARK)


def _robot(canvas: Canvas, rng: Generator) -> None:
    metal, lamp = ink(canvas, rng), ink(canvas, rng)
    canvas.stroke([(0.0, -0.6), (0.0, -0.95)], 0.06, metal)
    canvas.ellipse(0.0, -0.95, 0.09, 0.09, lamp)
    for x in (-0.22, 0.22):
        canvas.box(x - 0.1, 0.5, x + 0.1, 0.98, metal)
    for side in (canvas, canvas.mirrored()):
        side.stroke([(-0.4, 0.05), (-0.78, rng.uniform(-0.3, 0.5))], 0.15, metal)
    canvas.box(-0.42, -0.05, 0.42, 0.6, metal)
    canvas.box(-0.36, -0.65, 0.36, -0.12, metal)
    for x in (-0.16, 0.16):
        canvas.box(x - 0.08, -0.5, x + 0.08, -0.36, lamp)
    canvas.box(-0.2, -0.28, 0.2, -0.2, DARK)


def _snowman(canvas: Canvas, rng: Generator) -> None:
    snow = blend(PALE, ink(canvas, rng), 0.25)
    for y, radius in ((0.55, 0.45), (-0.05, 0.34), (-0.52, 0.25)):
        canvas.ellipse(0.0, y, radius * rng.uniform(0.9, 1.1), radius, snow)
    for x, y in ((-0.1, -0.58), (0.1, -0.58), (0.0, -0.05), (0.0, 0.15), (0.0, 0.5)):
        canvas.ellipse(x, y, 0.05, 0.05, DARK)
    canvas.polygon([(0.0, -0.5), (0.35, -0.42), (0.0, -0.42)], (240, 130, 30))
    canvas.box(-0.22, -1.0, 0.22, -0.72, DARK)


def _ghost(canvas: Canvas, rng: Generator) -> None:
    sheet, sway = ink(canvas, rng), rng.uniform(-0.15, 0.15)
    hem = [(0.6, 0.9), (0.35, 0.65), (0.12 + sway, 0.9), (-0.12 + sway, 0.65), (-0.38, 0.9), (-0.6, 0.65)]
    canvas.polygon(
        np.concatenate(
            [curve((-0.6, 0.65), (-0.55, -1.0), (0.0, -0.9)), curve((0.0, -0.9), (0.55, -1.0), (0.6, 0.9)), hem]
        ),
        sheet,
    )
    for x in (-0.2, 0.22):
        canvas.ellipse(x, -0.3, 0.11, 0.17, DARK)
    canvas.ellipse(0.0, 0.1, 0.12, 0.14, DARK)


def _star(canvas: Canvas, rng: Generator) -> None:
    points, inner = int(rng.integers(5, 8)), rng.uniform(0.35, 0.5)
    turn = np.arange(2 * points) * math.pi / points - math.pi / 2
    radius = np.where(np.arange(2 * points) % 2 == 0, 0.95, inner)
    canvas.polygon(np.stack([np.cos(turn) * radius, np.sin(turn) * radius], axis=1), ink(canvas, rng))


def _heart(canvas: Canvas, rng: Generator) -> None:
    tip, notch = (0.0, 0.9), (0.0, rng.uniform(-0.5, -0.2))
    left = np.concatenate([curve(tip, (-1.0, 0.2), (-0.85, -0.35)), curve((-0.85, -0.35), (-0.5, -1.1), notch)])
    canvas.polygon(np.concatenate([left, left[::-1] * (-1.0, 1.0)]), ink(canvas, rng))


def _arrow(canvas: Canvas, rng: Generator) -> None:
    shaft, head = rng.uniform(0.12, 0.25), rng.uniform(0.45, 0.7)
    canvas.polygon(
        [(-0.95, -shaft), (0.25, -shaft), (0.25, -head), (0.95, 0.0), (0.25, head), (0.25, shaft), (-0.95, shaft)],
        ink(canvas, rng),
    )


def _spiral(canvas: Canvas, rng: Generator) -> None:
    turn = np.linspace(0.5, rng.uniform(4.0, 6.5) * math.pi, 60)
    line = np.stack([np.cos(turn), np.sin(turn)], axis=1) * (0.9 * turn / turn[-1])[:, None]
    canvas.stroke(line, 0.1, ink(canvas, rng))


def _moon(canvas: Canvas, rng: Generator) -> None:
    turn, hollow = np.linspace(0.8, 2.0 * math.pi - 0.8, 24), rng.uniform(-0.5, 0.1)
    rim = np.stack([np.cos(turn), np.sin(turn)], axis=1) * 0.9
    canvas.polygon(np.concatenate([rim, curve(rim[-1], (hollow * 2 - 0.3, 0.0), rim[0])]), ink(canvas, rng))


def _target(canvas: Canvas, rng: Generator) -> None:
    first, second, rings = ink(canvas, rng), ink(canvas, rng), int(rng.integers(3, 6))
    for ring in range(rings):
        radius = 0.9 * (rings - ring) / rings
        canvas.ellipse(0.0, 0.0, radius, radius, first if ring % 2 == 0 else second)


SIGNS = {
    **by_name(
        _clock, _glasses, _crown, _face, _robot, _snowman, _ghost, _star, _heart, _arrow, _spiral, _moon, _target
    ),
    "letter A": _letter(((-0.6, 0.9), (0.0, -0.9)), ((0.6, 0.9), (0.0, -0.9)), ((-0.35, 0.3), (0.35, 0.3))),
    "letter E": _letter(
        ((-0.4, -0.9), (-0.4, 0.9)), ((-0.4, -0.8), (0.5, -0.8)), ((-0.4, 0.0), (0.4, 0.0)), ((-0.4, 0.8), (0.5, 0.8))
    ),
    "letter K": _letter(((-0.4, -0.9), (-0.4, 0.9)), ((-0.4, 0.1), (0.5, -0.85)), ((-0.2, -0.05), (0.55, 0.9))),
}

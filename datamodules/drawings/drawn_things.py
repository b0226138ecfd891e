"""Source-task subjects made by people: vehicles, buildings and tools."""

from __future__ import annotations

import numpy as np

from headstart.datamodules.drawings.canvas import DARK, PALE, Canvas, Generator, blend, by_name, curve, ink


def _wheels(canvas: Canvas, places: tuple[float, ...], y: float, radius: float) -> None:
    for x in places:
        canvas.ellipse(x, y, radius, radius, DARK)
        canvas.ellipse(x, y, radius * 0.45, radius * 0.45, PALE)


def _car(canvas: Canvas, rng: Generator) -> None:
    paint, roof = ink(canvas, rng), rng.uniform(-0.55, -0.35)
    canvas.polygon([(-0.6, 0.05), (-0.4, roof), (0.3, roof), (0.6, 0.05)], paint)
    canvas.polygon([(-0.42, 0.02), (-0.3, roof + 0.1), (0.22, roof + 0.1), (0.42, 0.02)], PALE)
    canvas.box(-0.95, 0.0, 0.95, 0.42, paint)
    _wheels(canvas, (-0.52, 0.52), 0.42, rng.uniform(0.2, 0.27))


def _bus(canvas: Canvas, rng: Generator) -> None:
    canvas.box(-0.98, -0.55, 0.98, 0.45, ink(canvas, rng))
    for x in (-0.8, -0.4, 0.0, 0.4):
        canvas.box(x, -0.4, x + 0.28, 0.0, PALE)
    canvas.box(0.72, -0.4, 0.9, 0.4, PALE)
    _wheels(canvas, (-0.55, 0.5), 0.45, 0.2)


def _bicycle(canvas: Canvas, rng: Generator) -> None:
    frame = ink(canvas, rng)
    for x in (-0.55, 0.55):
        canvas.ellipse(x, 0.35, 0.42, 0.42, frame)
        canvas.ellipse(x, 0.35, 0.33, 0.33, canvas.ground)
    seat, crank, bar = (-0.25, -0.35), (0.0, 0.35), (0.42, -0.5)
    for start, stop in (
        ((-0.55, 0.35), seat),
        (seat, crank),
        (crank, (-0.55, 0.35)),
        (seat, bar),
        (crank, bar),
        (bar, (0.55, 0.35)),
    ):
        canvas.stroke([start, stop], 0.08, frame)
    canvas.box(-0.42, -0.45, -0.1, -0.36, DARK)


def _sailboat(canvas: Canvas, rng: Generator) -> None:
    canvas.stroke([(0.0, 0.4), (0.0, -0.95)], 0.07, DARK)
    canvas.polygon([(0.07, -0.9), (0.07, 0.25), (rng.uniform(0.5, 0.85), 0.25)], ink(canvas, rng))
    canvas.polygon([(-0.07, -0.7), (-0.07, 0.25), (-rng.uniform(0.4, 0.7), 0.25)], ink(canvas, rng))
    canvas.polygon([(-0.9, 0.4), (0.9, 0.4), (0.6, 0.85), (-0.6, 0.85)], ink(canvas, rng))


def _airplane(canvas: Canvas, rng: Generator) -> None:
    body, wing = ink(canvas, rng), ink(canvas, rng)
    canvas.polygon([(-0.7, 0.0), (-1.0, -0.5), (-0.75, -0.5), (-0.4, 0.0)], wing)
    canvas.ellipse(0.0, 0.0, 0.95, rng.uniform(0.15, 0.24), body)
    canvas.polygon([(0.25, 0.02), (-0.15, 0.02), (-0.5, 0.75), (-0.25, 0.75)], wing)
    canvas.polygon([(0.2, -0.1), (-0.1, -0.1), (-0.3, -0.5), (-0.15, -0.5)], wing)
    for x in (0.1, 0.35, 0.6):
        canvas.ellipse(x, -0.05, 0.06, 0.05, PALE)


def _rocket(canvas: Canvas, rng: Generator) -> None:
    hull, fin = ink(canvas, rng), ink(canvas, rng)
    canvas.polygon([(-0.2, 0.6), (0.0, rng.uniform(0.85, 1.05)), (0.2, 0.6)], (250, 170, 40))
    for side in (canvas, canvas.mirrored()):
        side.polygon([(-0.25, 0.1), (-0.6, 0.75), (-0.2, 0.6)], fin)
    canvas.polygon([(-0.3, 0.6), (-0.32, -0.3), (0.0, -1.0), (0.32, -0.3), (0.3, 0.6)], hull)
    canvas.ellipse(0.0, -0.15, 0.16, 0.16, PALE)


def _house(canvas: Canvas, rng: Generator) -> None:
    canvas.box(-0.65, -0.15, 0.65, 0.85, ink(canvas, rng))
    canvas.polygon([(-0.85, -0.1), (0.0, rng.uniform(-0.95, -0.6)), (0.85, -0.1)], ink(canvas, rng))
    canvas.box(-0.15, 0.3, 0.15, 0.85, DARK)
    for x in (-0.5, 0.28):
        canvas.box(x, 0.05, x + 0.24, 0.3, PALE)


def _castle(canvas: Canvas, rng: Generator) -> None:
    stone, height = ink(canvas, rng), rng.uniform(-0.8, -0.5)
    canvas.box(-0.6, -0.1, 0.6, 0.85, stone)
    for x in (-0.85, 0.45):
        canvas.box(x, height, x + 0.4, 0.85, stone)
    for x in (-0.85, -0.55, 0.45, 0.75, -0.3, 0.0):
        top = height if abs(x + 0.05) > 0.4 else -0.1
        canvas.box(x, top - 0.17, x + 0.14, top, stone)
    canvas.ellipse(0.0, 0.65, 0.2, 0.35, DARK)


def _tent(canvas: Canvas, rng: Generator) -> None:
    top = rng.uniform(-0.8, -0.5)
    canvas.polygon([(-0.2, top), (0.45, top), (0.98, 0.7), (-0.9, 0.7)], ink(canvas, rng))
    canvas.polygon([(-0.2, top), (-0.9, 0.7), (0.4, 0.7)], ink(canvas, rng))
    canvas.polygon([(-0.2, top + 0.5), (-0.4, 0.7), (0.05, 0.7)], DARK)


def _hammer(canvas: Canvas, rng: Generator) -> None:
    canvas.stroke([(0.0, -0.5), (0.0, 0.95)], rng.uniform(0.14, 0.24), ink(canvas, rng))
    canvas.polygon([(-0.5, -0.85), (0.3, -0.85), (0.7, -0.5), (0.3, -0.5), (-0.5, -0.45)], ink(canvas, rng))


def _scissors(canvas: Canvas, rng: Generator) -> None:
    blade, grip, spread = ink(canvas, rng), ink(canvas, rng), rng.uniform(0.15, 0.45)
    for side in (canvas, canvas.mirrored()):
        side.stroke([(-spread, -0.95), (0.05, 0.05), (spread, 0.5)], 0.1, blade, 0.18)
        side.ellipse(spread + 0.08, 0.68, 0.26, 0.28, grip)
        side.ellipse(spread + 0.08, 0.68, 0.13, 0.15, canvas.ground)


def _key(canvas: Canvas, rng: Generator) -> None:
    metal = ink(canvas, rng)
    canvas.stroke([(-0.3, 0.0), (0.95, 0.0)], 0.15, metal)
    for x in (0.55, 0.8)[: int(rng.integers(1, 3))]:
        canvas.box(x, 0.0, x + 0.12, 0.35, metal)
    canvas.ellipse(-0.55, 0.0, 0.4, 0.38, metal)
    canvas.ellipse(-0.6, 0.0, 0.17, 0.17, canvas.ground)


def _umbrella(canvas: Canvas, rng: Generator) -> None:
    cloth = ink(canvas, rng)
    canvas.stroke([(0.0, -0.5), (0.0, 0.3), (0.0, 0.75), (0.2, 0.9), (0.35, 0.7)], 0.09, DARK)
    canvas.polygon(
        np.concatenate(
            [
                curve((-0.95, 0.1), (0.0, rng.uniform(-2.0, -1.5)), (0.95, 0.1), 13),
                [(0.6, -0.05), (0.32, 0.1), (0.0, -0.05), (-0.32, 0.1), (-0.6, -0.05)],
            ]
        ),
        cloth,
    )


def _mug(canvas: Canvas, rng: Generator) -> None:
    glaze, height = ink(canvas, rng), rng.uniform(0.5, 0.75)
    canvas.ellipse(0.5, 0.1, 0.4, 0.38, glaze)
    canvas.ellipse(0.5, 0.1, 0.24, 0.22, canvas.ground)
    canvas.box(-0.6, -height, 0.5, 0.75, glaze)
    canvas.ellipse(-0.05, -height, 0.55, 0.14, blend(glaze, DARK, 0.5))


def _teapot(canvas: Canvas, rng: Generator) -> None:
    glaze = ink(canvas, rng)
    canvas.stroke(curve((-0.4, 0.3), (-0.75, 0.3), (-0.95, -0.35)), 0.28, glaze, 0.12)
    canvas.stroke(curve((0.4, -0.2), (1.25, -0.1), (0.4, 0.5)), 0.12, glaze)
    canvas.ellipse(0.0, 0.15, rng.uniform(0.52, 0.65), 0.52, glaze)
    canvas.ellipse(0.0, -0.35, 0.3, 0.12, blend(glaze, DARK, 0.4))
    canvas.ellipse(0.0, -0.52, 0.1, 0.1, DARK)


def _bottle(canvas: Canvas, rng: Generator) -> None:
    glass, shoulder = ink(canvas, rng), rng.uniform(-0.3, 0.0)
    canvas.polygon(
        [
            (-0.12, -0.9),
            (0.12, -0.9),
            (0.13, shoulder - 0.2),
            (0.35, shoulder),
            (0.35, 0.95),
            (-0.35, 0.95),
            (-0.35, shoulder),
            (-0.13, shoulder - 0.2),
        ],
        glass,
    )
    canvas.box(-0.34, 0.2, 0.34, 0.65, PALE)
    canvas.box(-0.14, -1.0, 0.14, -0.85, DARK)


def _chair(canvas: Canvas, rng: Generator) -> None:
    wood, lean = ink(canvas, rng), rng.uniform(0.0, 0.15)
    for x in (-0.45, 0.4):
        canvas.stroke([(x, 0.2), (x, 0.95)], 0.12, wood)
    canvas.stroke([(-0.45, 0.2), (-0.5 - lean, -0.95)], 0.14, wood)
    canvas.box(-0.5, 0.08, 0.5, 0.25, wood)
    canvas.stroke([(-0.2, 0.2), (-0.2, 0.8)], 0.08, blend(wood, DARK, 0.4))


def _guitar(canvas: Canvas, rng: Generator) -> None:
    wood = ink(canvas, rng)
    canvas.stroke([(0.0, 0.2), (0.0, -0.85)], 0.13, DARK)
    canvas.box(-0.13, -1.0, 0.13, -0.78, wood)
    canvas.ellipse(0.0, 0.1, rng.uniform(0.3, 0.38), 0.3, wood)
    canvas.ellipse(0.0, 0.58, rng.uniform(0.42, 0.52), 0.4, wood)
    canvas.ellipse(0.0, 0.3, 0.14, 0.14, DARK)


def _anchor(canvas: Canvas, rng: Generator) -> None:
    iron = ink(canvas, rng)
    canvas.ellipse(0.0, -0.78, 0.18, 0.18, iron)
    canvas.ellipse(0.0, -0.78, 0.08, 0.08, canvas.ground)
    canvas.stroke([(0.0, -0.6), (0.0, 0.8)], 0.13, iron)
    canvas.stroke([(-0.35, -0.4), (0.35, -0.4)], 0.12, iron)
    canvas.stroke(curve((-0.75, 0.2), (0.0, rng.uniform(1.3, 1.6)), (0.75, 0.2), 13), 0.14, iron)


_VEHICLES = (_car, _bus, _bicycle, _sailboat, _airplane, _rocket)
_BUILDINGS = (_house, _castle, _tent)
_TOOLS = (_hammer, _scissors, _key, _umbrella, _mug, _teapot, _bottle, _chair, _guitar, _anchor)

THINGS = by_name(*_VEHICLES, *_BUILDINGS, *_TOOLS)

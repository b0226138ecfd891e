"""Source-task animals, all of them without fur."""

from __future__ import annotations

import math

import numpy as np

from headstart.datamodules.drawings.canvas import DARK, PALE, Canvas, Generator, blend, by_name, curve, ink


def _eye(canvas: Canvas, x: float, y: float, radius: float) -> None:
    canvas.ellipse(x, y, radius, radius, PALE)
    canvas.ellipse(x, y, radius * 0.55, radius * 0.6, DARK)


def _fish(canvas: Canvas, rng: Generator) -> None:
    scales, fin = ink(canvas, rng), ink(canvas, rng)
    height = rng.uniform(0.28, 0.5)
    canvas.polygon([(-0.45, 0.0), (-0.98, -0.42), (-0.85, 0.0), (-0.98, 0.42)], fin)
    canvas.polygon([(-0.2, -height * 0.8), (0.05, -height - 0.3), (0.3, -height * 0.7)], fin)
    canvas.ellipse(0.1, 0.0, 0.68, height, scales)
    canvas.polygon([(0.1, 0.05), (-0.2, 0.25), (-0.05, -0.05)], fin)
    _eye(canvas, 0.5, -0.1, 0.1)


def _whale(canvas: Canvas, rng: Generator) -> None:
    skin = ink(canvas, rng)
    canvas.stroke(curve((-0.2, 0.3), (-0.8, 0.4), (-0.85, -0.3)), 0.35, skin, 0.12)
    canvas.polygon([(-0.85, -0.2), (-1.05, -0.6), (-0.82, -0.45), (-0.6, -0.6)], skin)
    canvas.ellipse(0.2, 0.25, 0.75, rng.uniform(0.4, 0.5), skin)
    canvas.polygon(curve((-0.3, 0.4), (0.4, 1.0), (0.92, 0.35)), PALE)
    for x in (-0.15, 0.15):
        canvas.stroke(curve((0.3, -0.2), (0.3, -0.7), (0.3 + x * 2, -0.75)), 0.06, PALE)
    _eye(canvas, 0.6, 0.15, 0.08)


def _bird(canvas: Canvas, rng: Generator) -> None:
    plumage, beak = ink(canvas, rng), ink(canvas, rng)
    for x in (-0.05, 0.12):
        canvas.stroke([(x, 0.4), (x + 0.05, 0.9)], 0.06, beak)
    canvas.polygon([(-0.3, 0.0), (-1.0, rng.uniform(-0.3, 0.3)), (-0.85, 0.35), (-0.2, 0.35)], plumage)
    canvas.ellipse(0.0, 0.15, 0.5, 0.38, plumage, -0.2)
    canvas.polygon([(0.65, -0.5), (1.0, -0.35), (0.65, -0.25)], beak)
    canvas.ellipse(0.45, -0.38, 0.3, 0.28, plumage)
    canvas.ellipse(-0.1, 0.15, 0.34, 0.18, blend(plumage, DARK, 0.4), 0.3)
    _eye(canvas, 0.52, -0.42, 0.09)


def _owl(canvas: Canvas, rng: Generator) -> None:
    plumage, disc = ink(canvas, rng), ink(canvas, rng)
    canvas.ellipse(0.0, 0.1, 0.58, 0.8, plumage)
    for side in (canvas, canvas.mirrored()):
        side.polygon([(-0.5, -0.3), (-0.5, -0.85), (-0.1, -0.62)], plumage)
        side.ellipse(-0.52, 0.25, 0.16, 0.48, blend(plumage, DARK, 0.4), 0.15)
        side.ellipse(-0.23, -0.28, 0.24, 0.24, disc)
        _eye(side, -0.23, -0.28, rng.uniform(0.13, 0.18))
        side.stroke([(-0.2, 0.8), (-0.2, 0.98)], 0.1, disc)
    canvas.polygon([(-0.08, -0.18), (0.08, -0.18), (0.0, 0.05)], disc)


def _penguin(canvas: Canvas, rng: Generator) -> None:
    coat, beak = blend(ink(canvas, rng), DARK, 0.5), ink(canvas, rng)
    for side in (canvas, canvas.mirrored()):
        side.stroke([(-0.35, -0.1), (-rng.uniform(0.55, 0.8), 0.5)], 0.2, coat, 0.08)
        side.ellipse(-0.2, 0.92, 0.2, 0.08, beak)
    canvas.ellipse(0.0, 0.3, 0.48, 0.62, coat)
    canvas.ellipse(0.0, -0.5, 0.32, 0.34, coat)
    canvas.ellipse(0.0, 0.38, 0.32, 0.5, PALE)
    canvas.polygon([(-0.1, -0.5), (0.1, -0.5), (0.0, -0.3)], beak)
    for x in (-0.13, 0.13):
        _eye(canvas, x, -0.6, 0.08)


def _snake(canvas: Canvas, rng: Generator) -> None:
    skin, x = ink(canvas, rng), np.linspace(-0.95, 0.7, 24)
    wave = rng.uniform(0.2, 0.4) * np.sin(x * rng.uniform(4.0, 7.0) + rng.uniform(0.0, 6.0))
    canvas.stroke(np.stack([x, wave], axis=1), 0.06, skin, 0.24)
    canvas.ellipse(0.8, float(wave[-1]), 0.2, 0.15, skin)
    canvas.stroke([(0.98, wave[-1]), (1.15, wave[-1] + 0.05)], 0.04, (200, 40, 50))
    _eye(canvas, 0.84, float(wave[-1]) - 0.05, 0.06)


def _butterfly(canvas: Canvas, rng: Generator) -> None:
    wing, spot = ink(canvas, rng), ink(canvas, rng)
    upper, lower = rng.uniform(0.4, 0.55), rng.uniform(0.28, 0.4)
    for side in (canvas, canvas.mirrored()):
        side.ellipse(-0.38, 0.38, lower, 0.28, wing, -0.6)
        side.ellipse(-0.46, -0.28, upper, 0.34, wing, 0.6)
        side.ellipse(-0.5, -0.3, 0.16, 0.14, spot)
        side.stroke(curve((0.0, -0.5), (-0.1, -0.8), (-0.3, -0.9)), 0.05, DARK)
    canvas.ellipse(0.0, 0.0, 0.09, 0.6, DARK)


def _beetle(canvas: Canvas, rng: Generator) -> None:
    shell = ink(canvas, rng)
    for side in (canvas, canvas.mirrored()):
        for y in (-0.3, 0.1, 0.5):
            side.stroke([(-0.3, y), (-0.85, y + rng.uniform(-0.25, 0.25))], 0.07, DARK)
    canvas.ellipse(0.0, -0.55, 0.3, 0.25, DARK)
    canvas.ellipse(0.0, 0.1, 0.55, 0.62, shell)
    canvas.stroke([(0.0, -0.5), (0.0, 0.72)], 0.05, DARK)
    for x, y in ((-0.28, -0.1), (0.28, -0.1), (-0.25, 0.35), (0.25, 0.35)):
        canvas.ellipse(x, y, 0.11, 0.11, DARK)


def _spider(canvas: Canvas, rng: Generator) -> None:
    body = ink(canvas, rng)
    for side in (canvas, canvas.mirrored()):
        for y in (-0.7, -0.3, 0.2, 0.7):
            side.stroke(curve((-0.1, 0.0), (-0.5, y - 0.4), (-0.95, y)), 0.07, body)
    canvas.ellipse(0.0, 0.2, rng.uniform(0.28, 0.4), 0.4, body)
    canvas.ellipse(0.0, -0.25, 0.22, 0.2, body)


def _snail(canvas: Canvas, rng: Generator) -> None:
    shell, flesh = ink(canvas, rng), ink(canvas, rng)
    canvas.stroke(curve((-0.85, 0.75), (0.6, 0.85), (0.75, 0.0), 12), 0.28, flesh, 0.22)
    for x in (0.65, 0.9):
        canvas.stroke([(0.75, 0.0), (x, -0.4)], 0.06, flesh)
    turn = np.linspace(0.0, 4.0 * math.pi, 36)
    canvas.ellipse(-0.1, 0.1, 0.56, 0.54, shell)
    spiral = np.stack([np.cos(turn), np.sin(turn)], axis=1) * (turn / turn[-1] * 0.48)[:, None] + (-0.1, 0.1)
    canvas.stroke(spiral[3:], 0.06, blend(shell, DARK, 0.6))


def _turtle(canvas: Canvas, rng: Generator) -> None:
    skin, shell = ink(canvas, rng), ink(canvas, rng)
    for x in (-0.45, 0.4):
        canvas.stroke([(x, 0.3), (x + rng.uniform(-0.15, 0.15), 0.75)], 0.2, skin)
    canvas.ellipse(0.82, rng.uniform(-0.05, 0.2), 0.22, 0.17, skin)
    canvas.polygon(curve((-0.8, 0.4), (0.0, rng.uniform(-1.4, -0.9)), (0.75, 0.4), 13), shell)
    for x in (-0.35, 0.0, 0.35):
        canvas.ellipse(x, 0.1, 0.13, 0.14, blend(shell, DARK, 0.4))


def _crab(canvas: Canvas, rng: Generator) -> None:
    shell = ink(canvas, rng)
    for side in (canvas, canvas.mirrored()):
        for y in (0.3, 0.5, 0.7):
            side.stroke(curve((-0.4, 0.2), (-0.75, y - 0.2), (-0.85, y)), 0.08, shell)
        side.stroke(curve((-0.4, 0.0), (-0.8, -0.1), (-0.75, -0.5)), 0.12, shell)
        side.polygon([(-0.75, -0.4), (-1.0, -0.75), (-0.8, -0.65), (-0.6, -0.9), (-0.5, -0.55)], shell)
        side.stroke([(-0.15, 0.0), (-0.18, -0.3)], 0.06, shell)
        _eye(side, -0.18, -0.32, 0.1)
    canvas.ellipse(0.0, 0.15, 0.55, rng.uniform(0.28, 0.4), shell)


def _octopus(canvas: Canvas, rng: Generator) -> None:
    skin = ink(canvas, rng)
    for x in np.linspace(-0.8, 0.8, 6):
        canvas.stroke(curve((x * 0.4, 0.0), (x * 1.3, 0.3), (x + rng.uniform(-0.2, 0.2), 0.95)), 0.2, skin, 0.06)
    canvas.ellipse(0.0, -0.3, rng.uniform(0.45, 0.6), 0.55, skin)
    for x in (-0.2, 0.2):
        _eye(canvas, x, -0.2, 0.13)


def _frog(canvas: Canvas, rng: Generator) -> None:
    skin = ink(canvas, rng)
    for side in (canvas, canvas.mirrored()):
        side.ellipse(-0.6, 0.55, 0.35, 0.25, skin, -0.5)
        side.ellipse(-0.6, 0.82, 0.3, 0.08, skin)
        side.ellipse(-0.35, -0.45, 0.24, 0.24, skin)
        _eye(side, -0.35, -0.47, 0.17)
    canvas.ellipse(0.0, 0.4, 0.55, 0.45, skin)
    canvas.ellipse(0.0, -0.1, rng.uniform(0.6, 0.72), 0.4, skin)
    canvas.stroke(curve((-0.45, -0.02), (0.0, rng.uniform(0.1, 0.4)), (0.45, -0.02)), 0.06, DARK)


ANIMALS = by_name(
    _fish, _whale, _bird, _owl, _penguin, _snake, _butterfly, _beetle, _spider, _snail, _turtle, _crab, _octopus, _frog
)

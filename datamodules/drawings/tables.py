"""Painters that follow tables of shapes, such as those in `objects/*.yaml`.

A table is a list of steps, painted in order:

- `{name: value, ...}` computes values for later steps.
- `[shape, fill, ...]` paints an `ellipse` (centre, half-width, half-height, perhaps angle), a `box` (left, top, right,
  bottom), a `polygon` (points and lines) or a `stroke` (width, or first and last width; points and lines).
- `[eye, x, y, radius]`, `[wheels, centres, y, radius]` and `[snake, fill]` paint what their names say.
- `{both sides: steps}` paints steps twice, the second time mirrored.
- `{for: {name: values, ...}, draw: steps}` repeats steps; the values of several names go side by side.

A value is a colour (`ink`, `leafy`, `ground`, `dark`, `pale`, `[red, green, blue]`, `[blend, first, second, share]`), a
point `[x, y]`, a number, `[integers, low, end]`, `[range, count]`, `[linspace, first, last, count]`, or arithmetic on
these and on names. `0.2..0.5` samples a number from that range. A line, such as `{curve: [[0, 0], [1, 0], [1, 1]]}`, is
a function of `LINES`.
"""

import ast
import math
import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from headstart.datamodules.drawings.canvas import DARK, PALE, Canvas, Color, Floats, Generator, blend, curve, hsv, ink

RANGE = re.compile(r"(-?\d+\.\d+)\.\.(-?\d+\.\d+)")
OPERATORS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv}


def paint_table(steps: Sequence[Any], canvas: Canvas, rng: Generator) -> None:
    """Paint the subject of a table into the canvas's frame."""
    functions = {"uniform": rng.uniform, "abs": abs, "cos": math.cos, "sin": math.sin}
    names = {"ground": canvas.ground, "dark": DARK, "pale": PALE, "pi": math.pi}
    Brush(canvas, rng, {**functions, **names}).paint(steps)


@dataclass(frozen=True)
class Brush:
    """Paints the steps of a table.

    Attributes:
        canvas: The canvas.
        rng: The picture's generator.
        values: Colours, points, numbers and functions by name.
    """

    canvas: Canvas
    rng: Generator
    values: dict[str, Any]

    def paint(self, steps: Sequence[Any]) -> None:
        """Paint steps in order."""
        for step in steps:
            match step:
                case {"both sides": repeated}:
                    for side in (self.canvas, self.canvas.mirrored()):
                        replace(self, canvas=side).paint(repeated)
                case {"for": columns, "draw": repeated}:
                    for row in self._rows(columns):
                        replace(self, values=self.values | row).paint(repeated)
                case dict():
                    for name, value in step.items():
                        self.values[name] = self._compute(value)
                case [shape, *arguments]:
                    self._paint_shape(shape, arguments)

    def _rows(self, columns: dict[str, Any]) -> list[dict[str, Any]]:
        """Compute the values of every round of a loop, before the first is painted."""
        lists = [self._compute(values) if values[0] in ("range", "linspace") else values for values in columns.values()]
        rows = zip(*lists, strict=False)
        return [{name: self._compute(value) for name, value in zip(columns, row, strict=True)} for row in rows]

    def _paint_shape(self, shape: str, arguments: Sequence[Any]) -> None:
        """Paint one shape; the order in which its values are computed is that of the canvas's arguments."""
        match shape, arguments:
            case "polygon", [fill, *line]:
                self.canvas.polygon(self._points(line), self._compute(fill))
            case "stroke", [fill, width, *line]:
                points = self._points(line)
                first, *last = width if isinstance(width, list) else [width]
                self.canvas.stroke(points, self._compute(first), self._compute(fill), *map(self._compute, last))
            case "ellipse" | "box", [fill, left, top, right, bottom, *angle]:
                numbers = [self._compute(number) for number in (left, top, right, bottom)]
                getattr(self.canvas, shape)(*numbers, self._compute(fill), *map(self._compute, angle))
            case _:
                SHAPES[shape](self.canvas, self.rng, *map(self._compute, arguments))

    def _points(self, line: Sequence[Any]) -> Floats:
        """Compute points `[points, 2]` from points and lines one after the other."""
        parts = []
        for item in line:
            if isinstance(item, dict):
                [(name, arguments)] = item.items()
                parts.append(LINES[name](*map(self._compute, arguments)))
            else:
                parts.append(np.array([self._compute(item)], dtype=np.float64))
        return np.concatenate(parts)

    def _compute(self, value: Any) -> Any:  # noqa: ANN401 - a colour, point or number
        match value:
            case "ink":
                return ink(self.canvas, self.rng)
            case "leafy":
                return hsv(self.rng.uniform(0.2, 0.45), self.rng.uniform(0.3, 0.9), self.rng.uniform(0.3, 0.8))
            case ["blend", *arguments]:
                return blend(*map(self._compute, arguments))
            case ["integers", low, end]:
                return int(self.rng.integers(low, end))
            case ["range", count]:
                return range(self._compute(count))
            case ["linspace", *arguments]:
                return np.linspace(*map(self._compute, arguments))
            case list():
                return tuple(map(self._compute, value))
            case str():
                return self._evaluate(_parse(value))
        return value

    def _evaluate(self, node: ast.expr) -> Any:  # noqa: ANN401 - a colour, point or number
        match node:
            case ast.Constant(value=value):
                return value
            case ast.Name(id=name):
                return self.values[name]
            case ast.UnaryOp(operand=operand):
                return -self._evaluate(operand)
            case ast.BinOp(left=left, op=op, right=right):
                return OPERATORS[type(op)](self._evaluate(left), self._evaluate(right))
            case ast.Call(func=function, args=arguments):
                return self._evaluate(function)(*map(self._evaluate, arguments))
        raise ValueError(f"{ast.unparse(node)} is no arithmetic")


@cache
def _parse(text: str) -> ast.expr:
    return ast.parse(RANGE.sub(r"uniform(\1, \2)", text), mode="eval").body


def _eye(canvas: Canvas, rng: Generator, x: float, y: float, radius: float) -> None:
    canvas.ellipse(x, y, radius, radius, PALE)
    canvas.ellipse(x, y, radius * 0.55, radius * 0.6, DARK)


def _wheels(canvas: Canvas, rng: Generator, centres: Sequence[float], y: float, radius: float) -> None:
    for x in centres:
        canvas.ellipse(x, y, radius, radius, DARK)
        canvas.ellipse(x, y, radius * 0.45, radius * 0.45, PALE)


def _snake(canvas: Canvas, rng: Generator, skin: Color) -> None:
    x = np.linspace(-0.95, 0.7, 24)
    wave = rng.uniform(0.2, 0.4) * np.sin(x * rng.uniform(4.0, 7.0) + rng.uniform(0.0, 6.0))
    canvas.stroke(np.stack([x, wave], axis=1), 0.06, skin, 0.24)
    canvas.ellipse(0.8, float(wave[-1]), 0.2, 0.15, skin)
    canvas.stroke([(0.98, wave[-1]), (1.15, wave[-1] + 0.05)], 0.04, (200, 40, 50))
    _eye(canvas, rng, 0.84, float(wave[-1]) - 0.05, 0.06)


def _circular(turn: Floats) -> Floats:
    return np.stack([np.cos(turn), np.sin(turn)], axis=1)


def _star(points: int, inner: float) -> Floats:
    corner = np.arange(2 * points)
    rim: Floats = _circular(corner * math.pi / points - math.pi / 2)
    return rim * np.where(corner % 2 == 0, 0.95, inner)[:, None]


def _heart(notch: float) -> Floats:
    side = curve((0.0, 0.9), (-1.0, 0.2), (-0.85, -0.35))
    left = np.concatenate([side, curve((-0.85, -0.35), (-0.5, -1.1), (0.0, notch))])
    return np.concatenate([left, left[::-1] * (-1.0, 1.0)])


def _spiral(half_turns: float) -> Floats:
    turn = np.linspace(0.5, half_turns * math.pi, 60)
    points: Floats = _circular(turn) * (0.9 * turn / turn[-1])[:, None]
    return points


def _shell() -> Floats:
    turn = np.linspace(0.0, 4.0 * math.pi, 36)
    points: Floats = _circular(turn) * (turn / turn[-1] * 0.48)[:, None] + (-0.1, 0.1)
    return points[3:]


def _moon(hollow: float) -> Floats:
    rim = _circular(np.linspace(0.8, 2.0 * math.pi - 0.8, 24)) * 0.9
    return np.concatenate([rim, curve(rim[-1], (hollow * 2 - 0.3, 0.0), rim[0])])


SHAPES: dict[str, Callable[..., None]] = {"eye": _eye, "wheels": _wheels, "snake": _snake}
LINES: dict[str, Callable[..., Floats]] = {
    "curve": curve,
    "star": _star,
    "heart": _heart,
    "spiral": _spiral,
    "shell": _shell,
    "moon": _moon,
}

"""Difficulties make drawings harder to recognise, or leave them as they are."""

import numpy as np
import pytest
from numpy.typing import NDArray

from headstart.datamodules.drawings.canvas import Canvas, Difficulty, Generator, render


def draw(difficulty: Difficulty, seed: int) -> NDArray[np.float64]:
    def paint(canvas: Canvas, rng: Generator) -> None:
        canvas.box(-0.6, -0.1, 0.6, 0.1, (255, 0, 0))
        rng.random(3)

    return np.asarray(render(paint, np.random.default_rng(seed), 64, wear=0.7, difficulty=difficulty), dtype=np.float64)


def mean_difference(difficulty: Difficulty) -> float:
    return float(np.mean([np.abs(draw(difficulty, seed) - draw(Difficulty(), seed)).mean() for seed in range(20)]))


@pytest.mark.parametrize("part", ["occlusion", "noise", "pose"])
def test_pictures_move_further_away_the_harder_they_are(part: str) -> None:
    differences = [mean_difference(Difficulty(**{part: value})) for value in (1.0, 2.0, 5.0)]
    assert differences[0] == 0
    assert 0 < differences[1] < differences[2]

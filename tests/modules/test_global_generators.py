"""Every method has its own state of the global generators."""

import random
from collections.abc import Callable

import numpy as np
import torch

from headstart.modules.global_generators import GlobalGenerators


def draw() -> list[float]:
    return [random.random(), float(np.random.rand()), float(torch.rand(()))]


def test_generators_go_on_where_they_were_whatever_is_drawn_between() -> None:
    together, apart = GlobalGenerators(3, "cpu"), GlobalGenerators(3, "cpu")
    with together.in_use():
        expected = [draw() for _ in range(3)]
    results = []
    for _ in range(3):
        draw()
        with apart.in_use():
            results.append(draw())
    assert results == expected
    assert len({value for values in expected for value in values}) == 9


def test_others_find_the_generators_as_they_left_them() -> None:
    def begin() -> list[float]:
        torch.manual_seed(1)
        random.seed(1)
        np.random.seed(1)
        return draw()

    expected = [begin(), draw()]
    results = [begin()]
    with GlobalGenerators(3, "cpu").in_use():
        draw()
    assert [*results, draw()] == expected


def test_a_draw_from_any_of_them_is_seen() -> None:
    draws: list[Callable[[], object]] = [random.random, np.random.rand, lambda: torch.rand(())]
    for draw_one in draws:
        generators = GlobalGenerators(3, "cpu")
        before = generators.fingerprint()
        with generators.in_use():
            np.zeros(3).sum()
        assert generators.fingerprint() == before
        with generators.in_use():
            draw_one()
        assert generators.fingerprint() != before

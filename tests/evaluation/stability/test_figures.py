"""The pictures of a study: ties are written as ties, and names stay within the picture."""

from math import comb
from typing import Any

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text

from headstart.evaluation.stability.experiment_graph import rank_in_words
from headstart.evaluation.stability.figure_choice import FigureChoice
from headstart.evaluation.stability.figures import plot_study
from headstart.evaluation.stability.pools import Pools
from headstart.evaluation.stability.study import run_study
from headstart.evaluation.stability.table import TransferTable


@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        ([0.1, 0.5, 0.3], "b > c > a"),
        ([0.5, 0.5 + 1e-15, 0.3], "b = a > c"),
        ([0.2, 0.2, 0.2], "a = b = c"),
        ([0.6, 0.6, 0.9, 0.1, 0.1, 0.1, 0.2], "c > a = b > g > d = e = f"),
    ],
)
def test_ties_are_written_as_ties(outcome: list[float], words: str) -> None:
    result = rank_in_words("abcdefg"[: len(outcome)], np.array(outcome), 1e-12)
    assert result.replace("\N{NO-BREAK SPACE}", " ") == words


def large_table() -> TransferTable:
    """24 sources, 3 targets and 2 metrics with names of 40 characters and more."""
    generator = np.random.default_rng(0)
    shape = 2, 24, 3
    metrics, sources, targets = (
        [f"{what} with a name that is long {'and longer ' * 3}{index}" for index in range(count)]
        for what, count in zip(("metric", "source", "target"), shape, strict=True)
    )
    scores, performances = generator.normal(size=shape), generator.uniform(size=shape[1:])
    return TransferTable.complete(metrics, sources, targets, scores, performances)


def test_long_names_stay_within_the_pictures() -> None:
    study = run_study(large_table(), Pools(24, 22), 1e-12)
    assert len(study.shown) == comb(24, 2)
    plots = plot_study(study, FigureChoice(), "kendall")
    pools = run_study(large_table(), Pools(24, 2), 1e-12)
    assert set(plots) == {"scatter", "components", "experiments"}
    require_within(plots["experiments"])
    plots = plot_study(pools, FigureChoice(), "kendall")
    require_within(plots["experiments"])
    [described] = [
        text.get_text() for text in plots["experiments"].findobj(Text) if "all 24 sources" in text.get_text()
    ]
    assert described.count(" and 10 more") == 2


def require_within(figure: Figure) -> None:
    canvas: Any = FigureCanvasAgg(figure)
    canvas.draw()
    for text in figure.findobj(Text):
        if text.get_visible() and text.get_text().strip():
            box = text.get_window_extent(canvas.get_renderer())
            assert -1 <= box.x0 <= box.x1 <= figure.bbox.width + 1, text
            assert -1 <= box.y0 <= box.y1 <= figure.bbox.height + 1, text

"""The pictures of a study: names stay within the picture, and correlations are those of SciPy."""

import warnings
from itertools import combinations
from math import comb
from typing import Any

import numpy as np
import pytest
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text
from scipy import stats

from headstart.contract.tables.table import TransferTable
from headstart.evaluation.stability.figures import plot_agreement, plot_study, score_correlations
from headstart.evaluation.stability.study import run_study
from headstart.metrics.ranking.pools import Pools
from headstart.output.figures import DPI, make_legible


def drawn_table(name: str, metrics: int, sources: int, targets: int) -> TransferTable:
    """Return a table of random numbers with names that begin with `name`, of 40 characters if that is a letter."""
    generator = np.random.default_rng(0)
    shape = metrics, sources, targets
    named, sources_named, targets_named = (
        [f"{name * 38 if len(name) == 1 else f'{name} {what}'}{index:02}" for index in range(count)]
        for what, count in zip(("metric", "source", "target"), shape, strict=True)
    )
    scores, performances = generator.normal(size=shape), generator.uniform(size=shape[1:])
    return TransferTable.complete(named, sources_named, targets_named, scores, performances)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "metrics", "sources", "targets"),
    [("W", 2, 24, 3), ("n", 6, 6, 3), ("a_$b_1$_c ü Ω", 3, 6, 36), ("W", 16, 6, 3)],
)
def test_every_name_is_drawn_within_the_picture_and_beside_the_others(
    name: str, metrics: int, sources: int, targets: int
) -> None:
    study = run_study(drawn_table(name, metrics, sources, targets), Pools(sources, sources - 2))
    assert len(study.shown) == comb(sources, 2)
    plots = plot_study(study)
    assert set(plots) == {"scatter" if metrics <= 6 else "agreement"}
    for figure in plots.values():
        require_legible(figure)


def test_correlations_of_scores_are_those_of_scipy() -> None:
    table = drawn_table("short", 4, 7, 3)
    table.known[2, 1] = False
    table.scores[3, :, 0] = 1.5
    table.scores[1, :4, 2] = 0
    expected = np.full((4, 4), np.nan)
    for one, other in np.ndindex(4, 4):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", stats.ConstantInputWarning)
            values = [
                stats.spearmanr(table.scores[one, known, t], table.scores[other, known, t]).statistic
                for t, known in enumerate(table.known.T)
            ]
        expected[one, other] = np.nanmean(values)
    np.testing.assert_allclose(score_correlations(table), expected, atol=1e-12)
    drawn = [text.get_text().replace("−", "-") for text in plot_agreement(table).axes[0].texts]
    assert drawn == [f"{value:.2f}" for value in expected.ravel()]


def require_legible(figure: Figure) -> None:
    """Require that all texts are within the figure, beside each other and without escapes, as they are rendered."""
    figure.set_dpi(DPI)
    make_legible(figure)
    canvas: Any = FigureCanvasAgg(figure)
    canvas.draw()
    boxes = []
    for text in texts_of(figure):
        box = (text.get_bbox_patch() or text).get_window_extent(canvas.get_renderer())
        assert -1 <= box.x0 <= box.x1 <= figure.bbox.width + 1, text
        assert -1 <= box.y0 <= box.y1 <= figure.bbox.height + 1, text
        assert "\\" not in text.get_text()
        boxes.append((text, box.x0 + 1, box.y0 + 1, box.x1 - 1, box.y1 - 1))
    for (one, *first), (other, *second) in combinations(boxes, 2):
        apart = first[0] > second[2] or second[0] > first[2] or first[1] > second[3] or second[1] > first[3]
        assert apart, (one, other)


def texts_of(figure: Figure) -> list[Text]:
    """Return the texts that are drawn, which labels of ticks beyond the axes are not."""
    beyond = set()
    for axis in figure.findobj(Axis):
        low, high = sorted(axis.get_view_interval())
        ticks = [tick for tick in axis.get_major_ticks() if not low - 1e-9 <= tick.get_loc() <= high + 1e-9]
        beyond |= {label for tick in ticks for label in (tick.label1, tick.label2)}
    return [
        text for text in figure.findobj(Text) if text not in beyond and text.get_visible() and text.get_text().strip()
    ]

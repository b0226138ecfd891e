"""Pictures show the traces, by the figures before they are drawn."""

from collections.abc import Callable
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Text
from numpy.typing import NDArray

from headstart.callbacks.plots import plot_criterion_reached, plot_learning_curves
from headstart.metrics.sample_efficiency.curves import Curves
from headstart.output.figures import GREY, LINE_STYLES, save

CORRECT = np.array(
    [
        [[10, 80, 80, 80], [10, 20, 80, 90], [30, 40, 50, 60]],
        [[80, 80, 80, 80], [10, 70, 70, 70], [30, 40, 50, 60]],
    ]
)
DRAW = [plot_learning_curves, plot_criterion_reached]
Draw = Callable[[Curves, str, bool], Figure]


def describe(correct: NDArray[np.int64] = CORRECT, names: list[str] | None = None) -> Curves:
    methods, orderings, evaluations = correct.shape
    return Curves(
        methods=names or ["baseline", *(f"method_{i}" for i in range(1, methods))],
        orderings=np.arange(orderings),
        samples_seen=8 * np.arange(1, evaluations + 1),
        correct=correct,
        validation_size=100,
        all_correct=100,
        measure="accuracy",
        limit=8 * evaluations,
        threshold=0.8,
        consecutive=2,
    )


def repeat(methods: int) -> Curves:
    return describe(np.tile(CORRECT[:1], (methods, 1, 1)))


def only_axes(figure: Figure) -> Axes:
    (axes,) = figure.axes
    return axes


def line(axes: Axes, colour: str) -> Line2D:
    """Return the curve of a colour, which is longer than a mark."""
    (curves,) = [
        each
        for each in axes.get_lines()
        if to_hex(each.get_color()) == colour and len(np.asarray(each.get_xdata())) > 1
    ]
    return curves


def marks(axes: Axes) -> list[Line2D]:
    """Return the marks of medians."""
    return [each for each in axes.get_lines() if each.get_linestyle() == "None"]


def labels(figure: Figure) -> list[str]:
    """Return the labels at the ends of the lines of a single panel, from the highest one down."""
    return [text.get_text() for text in only_axes(figure).texts]


def legend(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.legends[0].get_texts()]


def test_learning_curves() -> None:
    figure = plot_learning_curves(describe(), "pets, resnet50", True)
    axes = only_axes(figure)
    for style, correct in zip(LINE_STYLES, CORRECT, strict=False):
        drawn = line(axes, style.colour)
        assert drawn.get_xdata() == pytest.approx([8, 16, 24, 32])
        assert drawn.get_ydata() == pytest.approx(correct.mean(0))
    # The baseline meets the criterion at 24 and 32 samples, and once not at all; the other method once only.
    assert sorted(labels(figure)) == ["Baseline (32)", "Method 1 (not reached)"]
    assert [(mark.get_xdata(), mark.get_ydata()) for mark in marks(axes)] == [([32], [80])]
    assert line(axes, GREY).get_ydata() == [80, 80]
    assert figure.get_suptitle() == "pets, resnet50"


def test_band_over_orderings() -> None:
    bands = only_axes(plot_learning_curves(describe(), "", True)).collections
    of = {to_hex(np.asarray(band.get_facecolor())[0]): band for band in bands}
    for style, correct in zip(LINE_STYLES, CORRECT, strict=False):
        corners = np.asarray(of[style.colour].get_paths()[0].vertices)
        low, high = np.percentile(correct, [10, 90], axis=0)
        for x, ends in zip((8, 16, 24, 32), zip(low, high, strict=True), strict=True):
            heights = corners[corners[:, 0] == x, 1]
            assert (heights.min(), heights.max()) == pytest.approx(ends)


def test_one_ordering_has_no_band() -> None:
    figure = plot_learning_curves(describe(CORRECT[:, :1]), "", True)
    assert not only_axes(figure).collections
    assert any(text.get_text().startswith("One ordering.") for text in figure.texts)


def test_share_of_orderings_that_met_the_criterion() -> None:
    curves = describe()
    axes = only_axes(plot_criterion_reached(curves, "", True))
    samples, _ = curves.samples_to_criterion()
    for style, reached in zip(LINE_STYLES, samples, strict=False):
        x, y = (np.asarray(values, dtype=float) for values in line(axes, style.colour).get_data())
        for at in (0, 8, 15, 16, 23, 24, 31, 32):
            # The line steps up at the samples of each ordering and stays there.
            assert y[np.flatnonzero(x <= at)[-1]] == pytest.approx(100 * np.mean(reached <= at))


def centre(figure: Figure, mark: Line2D) -> tuple[float, float]:
    x, y = mark.get_transform().transform(np.column_stack([mark.get_xdata(), mark.get_ydata()]))[0]
    return float(x), float(y) * 72 / figure.dpi


def test_medians_that_are_close_are_marked_below_each_other() -> None:
    # Medians after 16, 16, 16 and 800 samples.
    correct = np.full((4, 1, 100), 90)
    correct[3, :, :98] = 10
    figure = plot_learning_curves(describe(correct), "", True)
    centres = [centre(figure, mark) for mark in marks(only_axes(figure))]
    assert len({x for x, _ in centres}) == 2
    heights = [y for _, y in centres]
    assert np.diff(heights)[:2] == pytest.approx([-7, -7])
    assert heights[3] == pytest.approx(heights[0])
    assert len({mark.get_marker() for mark in marks(only_axes(figure))}) == 4


@pytest.mark.parametrize("draw", DRAW)
@pytest.mark.parametrize(("methods", "panels"), [(1, 1), (6, 1), (7, 6), (9, 8), (14, 13), (20, 19)])
def test_beyond_six_methods_each_has_a_panel_beside_the_baseline(draw: Draw, methods: int, panels: int) -> None:
    figure = draw(repeat(methods), "", True)
    shown = [axes for axes in figure.axes if axes.axison]
    assert len(shown) == panels
    if panels > 1:
        assert [axes.get_title() for axes in shown] == [f"Method {i}\nmedian 32" for i in range(1, methods)]
        colours = [{to_hex(each.get_color()) for each in axes.get_lines()} for axes in shown]
        assert all(panel_colours == {GREY, LINE_STYLES[-1].colour} for panel_colours in colours)
        assert legend(figure) == ["Baseline, median 32", "Method named above the panel"]
        # Every column has the numbers of its axis below its lowest panel.
        labelled = [axes for axes in shown if axes.get_xlabel()]
        assert len(labelled) == len({round(axes.get_position().x0, 3) for axes in shown})


@pytest.mark.parametrize("draw", DRAW)
@pytest.mark.parametrize("methods", [2, 6, 9])
def test_legend_title_and_panels_do_not_overlap(draw: Draw, methods: int, tmp_path: Path) -> None:
    figure = draw(repeat(methods), "a long title of several lines " * 8, True)
    save(figure, tmp_path / "picture.png")
    texts = [each for each in figure.texts if each.get_text() != figure.get_supylabel()]
    boxes = [each.get_window_extent() for each in (*figure.legends, *texts)]
    tight = [axes.get_tightbbox() for axes in figure.axes if axes.axison]
    # That of an annotation would hold its line.
    beside = [Text.get_window_extent(each) for each in figure.axes[0].texts]
    assert not any(one.overlaps(other) for one, other in combinations([*boxes, *beside], 2))
    assert not any(box.overlaps(panel) for box in boxes for panel in tight if panel is not None)
    whole = figure.bbox
    assert all(whole.x0 <= box.x0 and box.x1 <= whole.x1 and whole.y0 <= box.y0 and box.y1 <= whole.y1 for box in boxes)


@pytest.mark.parametrize("draw", DRAW)
def test_figures_of_incomplete_runs_are_stamped(draw: Draw) -> None:
    for complete in (True, False):
        texts = [text.get_text() for text in draw(describe(), "", complete).texts]
        assert ("INCOMPLETE" in texts) is not complete

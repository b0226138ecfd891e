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
    lines = [each for each in axes.get_lines() if to_hex(each.get_color()) == colour]
    (curve,) = [each for each in lines if len(np.asarray(each.get_xdata())) > 1]
    return curve


def marks(axes: Axes) -> list[Line2D]:
    """Return the marks of medians."""
    return [each for each in axes.get_lines() if each.get_linestyle() == "None"]


def labels(figure: Figure) -> list[str]:
    """Return the labels at the ends of the lines of a single panel, from the highest one down."""
    return [text.get_text() for text in only_axes(figure).texts]


def test_learning_curves() -> None:
    figure = plot_learning_curves(describe(), "pets, resnet50", True)
    axes = only_axes(figure)
    for style, correct in zip(LINE_STYLES, CORRECT, strict=False):
        drawn = line(axes, style.colour)
        assert drawn.get_xdata() == pytest.approx([8, 16, 24, 32])
        assert drawn.get_ydata() == pytest.approx(correct.mean(0))
    # The baseline meets the criterion at 24 and 32 samples, and once not at all; the other method once only.
    assert sorted(labels(figure)) == ["Baseline (32)", "Method 1 (not reached)"]
    (mark,) = marks(axes)
    assert (mark.get_xdata(), mark.get_ydata()) == ([32], [80])
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

    assert not only_axes(plot_learning_curves(describe(CORRECT[:, :1]), "", True)).collections


def test_of_several_methods_the_best_by_samples_to_criterion_has_a_band() -> None:
    never = [20] * 10
    first = [[80] * 10, never, never]
    # Its samples to criterion are 61 on average, and those of the first 59; its streaks begin earlier on average.
    second = [[20] * 5 + [80] * 5, *[[20] * 6 + [80] * 4] * 2]
    curves = describe(np.array([[never] * 3, first, second]))
    bands = only_axes(plot_learning_curves(curves, "", True)).collections
    colours = {to_hex(np.asarray(band.get_facecolor())[0]) for band in bands}
    assert colours == {style.colour for style in LINE_STYLES[:2]}


def test_share_of_orderings_that_met_the_criterion() -> None:
    curves = describe()
    axes = only_axes(plot_criterion_reached(curves, "", True))
    samples, _ = curves.samples_to_criterion()
    for style, reached in zip(LINE_STYLES, samples, strict=False):
        x, y = (np.asarray(values, dtype=float) for values in line(axes, style.colour).get_data())
        for at in (0, 8, 15, 16, 23, 24, 31, 32):
            # The line steps up at the samples of each ordering and stays there.
            assert y[np.flatnonzero(x <= at)[-1]] == pytest.approx(100 * np.mean(reached <= at))


@pytest.mark.parametrize("draw", DRAW)
def test_beyond_six_methods_each_has_a_panel_beside_the_baseline(draw: Draw) -> None:
    assert len(draw(repeat(6), "", True).axes) == 1
    for methods in (7, 9, 11):
        figure = draw(repeat(methods), "", True)
        shown = [axes for axes in figure.axes if axes.axison]
        assert [axes.get_title() for axes in shown] == [f"Method {i}\n(32)" for i in range(1, methods)]
        colours = [{to_hex(each.get_color()) for each in axes.get_lines()} for axes in shown]
        assert all(panel_colours == {GREY, LINE_STYLES[-1].colour} for panel_colours in colours)
        assert figure.get_supxlabel().startswith("In grey: Baseline (32). ")
        # Every column has the numbers of its axis below its lowest panel.
        labelled = [axes for axes in shown if axes.get_xlabel()]
        assert len(labelled) == len({round(axes.get_position().x0, 3) for axes in shown})


@pytest.mark.parametrize("draw", DRAW)
@pytest.mark.parametrize("methods", [6, 9])
def test_texts_and_panels_do_not_overlap(draw: Draw, methods: int, tmp_path: Path) -> None:
    figure = draw(repeat(methods), "a long title of several lines " * 8, True)
    save(figure, tmp_path / "picture.png")
    boxes = [each.get_window_extent() for each in figure.texts]
    # That of an annotation would hold its line.
    boxes += [Text.get_window_extent(each) for each in figure.axes[0].texts]
    tight = [axes.get_tightbbox() for axes in figure.axes if axes.axison]
    outside = [each.get_window_extent() for each in figure.texts]
    assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))
    assert not any(text.overlaps(panel) for text in outside for panel in tight if panel is not None)
    whole = figure.bbox
    assert all(whole.x0 <= box.x0 and box.x1 <= whole.x1 and whole.y0 <= box.y0 and box.y1 <= whole.y1 for box in boxes)


@pytest.mark.parametrize("draw", DRAW)
def test_figures_of_incomplete_runs_are_stamped(draw: Draw) -> None:
    for complete in (True, False):
        texts = [text.get_text() for text in draw(describe(), "", complete).texts]
        assert ("INCOMPLETE" in texts) is not complete

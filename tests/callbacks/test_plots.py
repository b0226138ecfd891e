"""What the pictures show, taken from the figures before they are drawn."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from callbacks.plots import plot_criterion_reached, plot_learning_curves
from metrics.sample_efficiency.curves import Curves

CORRECT = np.array(
    [
        [[10, 80, 80, 80], [10, 20, 80, 90], [30, 40, 50, 60]],
        [[80, 80, 80, 80], [10, 70, 70, 70], [30, 40, 50, 60]],
    ]
)


def describe(orderings: int = 3) -> Curves:
    return Curves(
        methods=["baseline", "mine"],
        orderings=np.arange(orderings),
        samples_seen=np.array([8, 16, 24, 32]),
        correct=CORRECT[:, :orderings],
        validation_size=100,
        limit=32,
        threshold=0.8,
        consecutive=2,
    )


@pytest.fixture
def figures(monkeypatch: pytest.MonkeyPatch) -> list[Figure]:
    """Collect the figures that are saved, drawing none."""
    saved: list[Figure] = []
    monkeypatch.setattr(Figure, "savefig", lambda self, *args, **kwargs: saved.append(self))
    return saved


def only_axes(figures: list[Figure]) -> Axes:
    (figure,) = figures
    (axes,) = figure.axes
    return axes


def test_learning_curves(figures: list[Figure]) -> None:
    plot_learning_curves(describe(), "pets, resnet50", Path("picture.png"))
    axes = only_axes(figures)
    lines = {str(line.get_label()): line for line in axes.get_lines()}
    # The baseline meets the criterion at 24 and 32 samples, and once not at all; the other method once only.
    for label, correct in zip(("baseline (median 32)", "mine (median not reached)"), CORRECT, strict=True):
        assert lines[label].get_xdata() == pytest.approx([8, 16, 24, 32])
        assert lines[label].get_ydata() == pytest.approx(correct.mean(0))
    marks = [np.asarray(line.get_xdata()).tolist() for line in axes.get_lines() if line.get_linestyle() == ":"]
    assert marks == [[32, 32]]
    thresholds = [np.asarray(line.get_ydata()).tolist() for line in axes.get_lines() if line.get_linestyle() == "--"]
    assert thresholds == [[80, 80]]
    assert axes.get_title() == "pets, resnet50"


def test_band_over_orderings(figures: list[Figure]) -> None:
    plot_learning_curves(describe(), "", Path("picture.png"))
    bands = only_axes(figures).collections
    assert len(bands) == 2
    for band, correct in zip(bands, CORRECT, strict=True):
        corners = band.get_paths()[0].vertices
        low, high = np.percentile(correct, [10, 90], axis=0)
        for x, ends in zip((8, 16, 24, 32), zip(low, high, strict=True), strict=True):
            heights = np.asarray(corners)[np.asarray(corners)[:, 0] == x, 1]
            assert (heights.min(), heights.max()) == pytest.approx(ends)


def test_one_ordering_has_no_band(figures: list[Figure]) -> None:
    plot_learning_curves(describe(orderings=1), "", Path("picture.png"))
    assert not only_axes(figures).collections


def test_share_of_orderings_that_met_the_criterion(figures: list[Figure]) -> None:
    curves = describe()
    plot_criterion_reached(curves, "", Path("picture.png"))
    samples, _ = curves.samples_to_criterion()
    lines = only_axes(figures).get_lines()
    for line, name, reached in zip(lines, curves.methods, samples, strict=True):
        assert line.get_label() == name
        x, y = (np.asarray(values, dtype=float) for values in line.get_data())
        for at in (0, 8, 15, 16, 23, 24, 31, 32):
            # The line steps up at the samples of each ordering and stays there.
            assert y[np.flatnonzero(x <= at)[-1]] == pytest.approx(100 * np.mean(reached <= at))

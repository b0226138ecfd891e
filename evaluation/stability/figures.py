"""The figure of a study: metrics against each other in all experiments."""

import math
from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from headstart.evaluation.stability.study import Study
from headstart.metrics.arrays import Floats
from headstart.metrics.ranking.pools import in_words
from headstart.metrics.ranking.ranking_measures import MEASURES
from headstart.output.figures import INK, LINE_STYLES, LineStyle, drawing, fold, shorten

# Inches of the panels of all pairs, and of a single pair.
PANEL, SINGLE_PANEL = 2.5, 5.0
PANELS_ACROSS = 5
# Metrics of which all pairs are plotted, at most.
MOST_METRICS = 6
# Inches of a line in the legend of the targets.
LEGEND_LINE = 0.19
MEASURE = MEASURES.index("weighted_kendall")


@drawing()
def plot_study(study: Study) -> dict[str, Figure]:
    """Plot `scatter`, a panel for each pair of metrics by weighted Kendall, a point for each pool and target.

    After figures 2 and 4 of Agostinelli et al., How stable are transferability metrics evaluations?, ECCV 2022. Of more
    than six metrics, it has the six that win most.

    Args:
        study: A complete study.
    """
    most_wins = np.argsort(-study.wins.percent("split")[:, -1], kind="stable")[:MOST_METRICS]
    pairs = list(combinations(sorted(most_wins.tolist()), 2))
    side = SINGLE_PANEL if len(pairs) == 1 else PANEL
    across = min(len(pairs), PANELS_ACROSS)
    down = -(-len(pairs) // across)
    figure = Figure(figsize=(across * side, down * side + 0.6), layout="constrained")
    grid = figure.subplots(down, across, squeeze=False)

    styles = _styles(len(study.table.targets))
    values = study.shown[:, :, MEASURE]
    points = values.reshape(-1, values.shape[-1])
    targets = np.tile(np.arange(len(styles)), len(values))
    colours = np.array([to_rgb(style.colour) for style in styles])[targets]
    markers = np.array([style.marker for style in styles])[targets]
    # Points are plotted in random order, so that no target hides others with the same marker.
    order = np.random.default_rng(0).permutation(len(points))
    limits = _limits(values[..., most_wins])
    for (first, second), axes in zip(pairs, grid.flat, strict=False):
        for marker in np.unique(markers):
            rows = order[markers[order] == marker]
            style: dict[str, Any] = {"c": colours[rows], "marker": str(marker), "s": 6, "alpha": 0.5, "linewidths": 0}
            axes.scatter(points[rows, first], points[rows, second], **style)
        _finish(axes, study, (first, second), limits, side)
    for axes in grid.flat[len(pairs) :]:
        axes.set_axis_off()

    target = f"one of {len(styles)} targets"
    if len(set(styles)) == len(styles):
        target = "a target"
        _add_targets(figure, study.table.targets, styles)
    title = f"Two metrics by weighted Kendall; a point is a source pool with {target}{_shown(study)}"
    figure.suptitle(title, x=0.01, ha="left", fontsize=11)
    return {"scatter": figure}


def _add_targets(figure: Figure, targets: Sequence[str], styles: Sequence[LineStyle]) -> None:
    """Widen a figure by a legend of the targets, in as many columns as its height needs."""
    handles = [
        Line2D([], [], marker=style.marker, linestyle="", markersize=5, color=style.colour, label=name)
        for name, style in zip(shorten(targets), styles, strict=True)
    ]
    columns = math.ceil(len(handles) * LEGEND_LINE / (figure.get_figheight() - 1))
    where: dict[str, Any] = {"loc": "outside right center", "alignment": "left", "ncols": columns}
    legend = figure.legend(handles=handles, title="target", fontsize=8, **where)
    figure.set_figwidth(figure.get_figwidth() + legend.get_window_extent().width / figure.dpi)


def _shown(study: Study) -> str:
    """Return which pools the figures show, if these are not all."""
    shown, total = len(study.shown), study.pools.all
    return f"\n{shown:,} pools drawn at random of {in_words(total)}" if shown < total else ""


def _finish(axes: Axes, study: Study, pair: tuple[int, int], limits: tuple[float, float], side: float) -> None:
    """Set the frame: both axes alike, the line of equality, the names of the metrics."""
    axes.axline((0, 0), slope=1, color=INK, linestyle=(0, (2, 2)), linewidth=1)
    axes.set(xlim=limits, ylim=limits, aspect="equal")
    titles = shorten(study.table.titles)
    axes.set_xlabel(fold(titles[pair[0]], 0.7 * side, 8), fontsize=8, labelpad=2)
    axes.set_ylabel(fold(titles[pair[1]], 0.7 * side, 8), fontsize=8, labelpad=2)
    axes.tick_params(labelsize=7, length=2)
    axes.locator_params(nbins=5)


def _limits(values: Floats) -> tuple[float, float]:
    finite_values = values[np.isfinite(values)]
    if not len(finite_values):
        return -1.0, 1.0
    low, high = float(finite_values.min()), float(finite_values.max())
    margin = max(0.04 * (high - low), 0.02)
    return low - margin, high + margin


def _styles(count: int) -> list[LineStyle]:
    """Return a colour and a marker for each target, no two alike; the same for all if there are too few of both."""
    size = len(LINE_STYLES)
    if count > size**2:
        return [LINE_STYLES[0]] * count
    markers = [style.marker for style in LINE_STYLES]
    return [LINE_STYLES[i % size]._replace(marker=markers[(i // size + i % size) % size]) for i in range(count)]

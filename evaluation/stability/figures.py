"""The figure of a study: metrics against each other in all experiments, or how alike they rank the sources."""

import math
from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from headstart.contract.tables.table import TransferTable
from headstart.evaluation.estimates import mean_over_targets
from headstart.evaluation.stability.study import Study
from headstart.metrics.arrays import Floats
from headstart.metrics.ranking.pools import in_words
from headstart.metrics.ranking.ranking_measures import MEASURES
from headstart.output.figures import INK, LINE_STYLES, LineStyle, drawing, fold, shorten, width_of_names

# Inches of the panels of all pairs, and of a single pair.
PANEL, SINGLE_PANEL = 2.5, 5.0
PANELS_ACROSS = 5
# Metrics of which all pairs are plotted.
MOST_METRICS = 6
# Inches of a line in the legend of the targets.
LEGEND_LINE = 0.19
# Inches of a cell of the agreement of metrics.
CELL = 0.45
# Correlations further from 0 are dark cells, with white numbers.
DARK = 0.6
MEASURE = MEASURES.index("weighted_kendall")


@drawing()
def plot_study(study: Study) -> dict[str, Figure]:
    """Plot the metrics of a study, by weighted Kendall.

    After figures 2 and 4 of Agostinelli et al., How stable are transferability metrics evaluations?, ECCV 2022.

    Args:
        study: A complete study.

    Returns:
        `scatter`, every pair of metrics against each other; or `agreement` for more than six metrics.
    """
    if len(study.table.metrics) > MOST_METRICS:
        return {"agreement": plot_agreement(study.table)}
    return {"scatter": _plot_scatter(study)}


def _plot_scatter(study: Study) -> Figure:
    """Plot a panel for each pair of metrics, every point an experiment, coloured by its target."""
    pairs = list(combinations(range(len(study.table.metrics)), 2))
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
    for (first, second), axes in zip(pairs, grid.flat, strict=False):
        for marker in np.unique(markers):
            rows = order[markers[order] == marker]
            style: dict[str, Any] = {"c": colours[rows], "marker": str(marker), "s": 6, "alpha": 0.5, "linewidths": 0}
            axes.scatter(points[rows, first], points[rows, second], **style)
        _finish(axes, study, (first, second), _limits(values), side)
    for axes in grid.flat[len(pairs) :]:
        axes.set_axis_off()

    target = f"one of {len(styles)} targets"
    if len(set(styles)) == len(styles):
        target = "a target"
        _add_targets(figure, study.table.targets, styles)
    title = f"Two metrics by weighted Kendall; a point is a source pool with {target}{_shown(study)}"
    figure.suptitle(title, x=0.01, ha="left", fontsize=11)
    return figure


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


def score_correlations(table: TransferTable) -> Floats:
    """Correlate the scores of the sources by two metrics, by Spearman's rho, as the mean over targets.

    Args:
        table: Scores and performances.

    Returns:
        Correlations `[m, m]`. Targets on which a metric gives all sources the same score do not count for it; NaN if no
        target counts.
    """
    from scipy import stats

    per_target = []
    for scores, known in zip(table.scores.transpose(2, 0, 1), table.known.T, strict=True):
        ranks = stats.rankdata(scores[:, known], axis=1)
        centred = ranks - ranks.mean(axis=1, keepdims=True)
        norms = np.sqrt((centred**2).sum(axis=1, keepdims=True))
        units = np.divide(centred, norms, out=np.full_like(centred, np.nan), where=norms > 0)
        per_target.append(units @ units.T)
    return mean_over_targets(np.stack(per_target, axis=-1))


def plot_agreement(table: TransferTable) -> Figure:
    """Plot a cell for each pair of metrics, with the correlation of their scores."""
    correlations, names = score_correlations(table), shorten(table.titles)
    figure = Figure(figsize=(1, 1), layout="constrained")
    axes = figure.subplots()
    axes.imshow(correlations, cmap="RdBu_r", vmin=-1, vmax=1)
    for (row, column), value in np.ndenumerate(correlations):
        text = "–" if np.isnan(value) else f"{value:z.2f}".replace("-", "−")
        colour = "white" if abs(value) > DARK else INK
        axes.text(column, row, text, color=colour, fontsize=8, ha="center", va="center")

    axes.set_xticks(range(len(names)), names, rotation=90, fontsize=8)
    axes.set_yticks(range(len(names)), names, fontsize=8)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    title = "Do metrics rank the sources alike?\nMean Spearman correlation over targets"
    axes.set_title(title, loc="left", fontsize=10)

    side = CELL * len(names) + width_of_names(axes)
    figure.set_size_inches(side + 0.4, side + 0.9)
    return figure

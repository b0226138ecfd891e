"""The figures of a study: all targets together, one component varying at a time, and the graph of a few experiments."""

import math
from collections.abc import Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from headstart.contract.tables.table import TransferTable
from headstart.evaluation.estimates import mean_over_targets
from headstart.evaluation.stability.experiment_graph import plot_graph
from headstart.evaluation.stability.figure_choice import (
    Examples,
    FigureChoice,
    Panel,
    varying_measure,
    varying_pool,
    varying_target,
)
from headstart.evaluation.stability.study import TIED, Study
from headstart.metrics.arrays import Floats
from headstart.metrics.ranking.pools import in_words
from headstart.metrics.ranking.ranking_measures import EVALUATION_MEASURES, MEASURES, Measure
from headstart.output.figures import INK, LINE_STYLES, LineStyle, drawing, fold, shorten, width_of_names

# Inches of the panels of all pairs, of a single pair, and of two experiments that differ in one component.
PANEL, SINGLE_PANEL, COMPONENT_PANEL = 2.5, 5.0, 3.1
PANELS_ACROSS = 5
# Metrics of which all pairs are plotted.
MOST_METRICS = 6
# Inches of a line in the legend of the targets.
LEGEND_LINE = 0.19
# Inches of a cell of the agreement of metrics.
CELL = 0.45
# Correlations further from 0 are dark cells, with white numbers.
DARK = 0.6
HEADLINES = {
    "target": "Another target, another winner",
    "measure": "Another measure, another winner",
    "pool": "Another pool, another winner: points on both sides",
}


@drawing()
def plot_study(
    study: Study, choice: FigureChoice, measure: Measure, examples: Examples = MappingProxyType({})
) -> dict[str, Figure]:
    """Plot the scatter of outcomes, the effect of single components, and the graph of a few experiments.

    After figures 2 and 4, 3 and 5, and 1 of Agostinelli et al., How stable are transferability metrics evaluations?,
    ECCV 2022.

    Args:
        study: A complete study.
        choice: Content of the figures.
        measure: Measure where it does not vary, and neither the choice nor an example has one.
        examples: Examples of the paper that parts show where the choice has no other.

    Returns:
        `scatter`, or `agreement` for more than six metrics of which no two are chosen. Then `components` and, if the
        study has two targets with two common pools, `experiments`.
    """
    parts = choice.of_parts(examples)
    measures = {part: MEASURES.index(its.measure or measure) for part, its in parts.items()}
    panels = {
        "target": varying_target(study, parts["target"], measures["target"]),
        "measure": varying_measure(study, parts["measure"]),
        "pool": varying_pool(study, parts["pool"], measures["pool"]),
    }
    if choice.metrics is None and len(study.table.metrics) > MOST_METRICS:
        metrics = {"agreement": plot_agreement(study.table)}
    else:
        metrics = {"scatter": _plot_scatter(study, choice, MEASURES.index(choice.measure or measure))}
    figures = {
        **metrics,
        "components": _plot_components(study, panels),
        "experiments": plot_graph(study, parts["graph"], measures["graph"]),
    }
    return {name: figure for name, figure in figures.items() if figure is not None}


def _plot_scatter(study: Study, choice: FigureChoice, measure: int) -> Figure:
    """Plot a panel for each pair of metrics, every point an experiment, coloured by its target."""
    pairs = choice.pairs(study.table)
    side = SINGLE_PANEL if len(pairs) == 1 else PANEL
    across = min(len(pairs), PANELS_ACROSS)
    down = -(-len(pairs) // across)
    figure = Figure(figsize=(across * side, down * side + 0.6), layout="constrained")
    grid = figure.subplots(down, across, squeeze=False)

    styles = _styles(len(study.table.targets))
    values = study.shown[:, :, measure]
    points = values.reshape(-1, values.shape[-1])
    targets = np.tile(np.arange(len(styles)), len(values))
    colours = np.array([to_rgb(style.colour) for style in styles])[targets]
    markers = np.array([style.marker for style in styles])[targets]
    # Points are plotted in random order, so that no target hides others with the same marker.
    order = np.random.default_rng(0).permutation(len(points))
    for (first, second), axes in zip(pairs, grid.flat, strict=False):
        for marker in np.unique(markers):
            chosen = order[markers[order] == marker]
            style: dict[str, Any] = {"c": colours[chosen], "marker": str(marker), "s": 6, "alpha": 0.5, "linewidths": 0}
            axes.scatter(points[chosen, first], points[chosen, second], **style)
        _finish(axes, study, (first, second), _limits(values), side)
    for axes in grid.flat[len(pairs) :]:
        axes.set_axis_off()

    target = f"one of {len(styles)} targets"
    if len(set(styles)) == len(styles):
        target = "a target"
        _add_targets(figure, study.table.targets, styles)
    title = f"Two metrics by {_title(measure)}; a point is a source pool with {target}{_shown(study)}"
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


def _plot_components(study: Study, panels_of: dict[str, list[Panel]]) -> Figure:
    """Plot a row for each component, in which only that component and the pool vary."""
    figure = Figure(figsize=(2 * COMPONENT_PANEL + 0.6, 3 * 3.35), layout="constrained")
    styles, targets = _styles(len(study.table.targets)), shorten(study.table.targets)
    rows = figure.subfigures(3, 1, squeeze=False, hspace=0.04)[:, 0]
    for letter, row, (component, panels) in zip("abc", rows, panels_of.items(), strict=True):
        row.suptitle(f"({letter}) {HEADLINES[component]}{_shown(study)}", x=0.02, ha="left", fontsize=11)
        limits = _limits(np.concatenate([panel.points(study) for panel in panels]))
        for axes, panel in zip(row.subplots(1, 2), panels, strict=False):
            points, style = panel.points(study), styles[panel.target]
            axes.scatter(*points.T, s=9, alpha=0.45, linewidths=0, color=style.colour, marker=style.marker)
            _finish(axes, study, (panel.across, panel.up), limits, COMPONENT_PANEL)
            _write_shares(axes, points)
            axes.set_title(
                fold(f"{targets[panel.target]}, {_title(panel.measure)}", 0.8 * COMPONENT_PANEL, 9), fontsize=9
            )
        for axes in row.axes[len(panels) :]:
            axes.set_axis_off()
    return figure


def _shown(study: Study) -> str:
    """Return which pools the figures show, if these are not all."""
    shown, total = len(study.shown_pools), study.pools.all
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


def _write_shares(axes: Axes, points: Floats) -> None:
    """Write how many of the points lie above and below the line."""
    if not len(points):
        return
    difference = points[:, 1] - points[:, 0]
    above, below = float((difference > TIED).mean()), float((difference < -TIED).mean())
    text: dict[str, Any] = {"transform": axes.transAxes, "fontsize": 9}
    axes.text(0.04, 0.96, f"{100 * above:.0f} % above", ha="left", va="top", **text)
    axes.text(0.96, 0.04, f"{100 * below:.0f} % below", ha="right", va="bottom", **text)


def _limits(values: Floats) -> tuple[float, float]:
    known = values[np.isfinite(values)]
    if not len(known):
        return -1.0, 1.0
    low, high = float(known.min()), float(known.max())
    margin = max(0.04 * (high - low), 0.02)
    return low - margin, high + margin


def _title(measure: int) -> str:
    return EVALUATION_MEASURES[MEASURES[measure]].title


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

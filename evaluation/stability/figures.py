"""The figures of a study: all targets at once, one component varying at a time, the graph of a few experiments."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from itertools import combinations, product
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from headstart.evaluation.stability.examples import FigureChoice, Panel, varying_measure, varying_pool, varying_target
from headstart.evaluation.stability.paper_examples import Example
from headstart.evaluation.stability.study import Study, pool_outcomes
from headstart.evaluation.stability.table import TransferTable
from headstart.metrics.ranking.outcome_agreement import agreement_vectors
from headstart.metrics.ranking.ranking_measures import EVALUATION_MEASURES, MEASURES, Measure
from headstart.output.figures import INK, LINE_STYLES, LineStyle, drawing, shorten

PANEL, PANELS_ACROSS = 2.5, 5
# Components in the order of the coordinates of an experiment: target, measure, pool.
COMPONENTS = {"target": "#2a9d5c", "measure": "#3b6fd1", "pool": "#d9822b"}
HEADLINES = {
    "target": "Another target, another winner",
    "measure": "Another measure, another winner",
    "pool": "Another pool, another winner: points on both sides",
}
# Where an experiment stands, by its coordinates of 0 or 1: a cube seen from the side, in inches.
STEP = {"target": (5.6, 0.0), "measure": (0.0, 4.0), "pool": (2.5, 1.75)}
# Where on an edge its label stands: not where edges cross.
LABEL = {"target": 0.67, "measure": 0.3, "pool": 0.5}
# How the two pools are called.
POOLS = ("S₁", "S₂")
CENTRED: dict[str, Any] = {"ha": "center", "va": "center"}
# Characters in a line of an experiment's box, and across the figure; sources that a pool is said to lack.
IN_BOX, IN_LINE, MOST_NAMED = 40, 150, 12

Experiment = tuple[int, ...]


@drawing()
def plot_study(
    study: Study, choice: FigureChoice, measure: Measure, examples: Sequence[Example] = ()
) -> dict[str, Figure]:
    """Plot the scatter of outcomes, the effect of single components, and the graph of a few experiments.

    After figures 2 and 4, 3 and 5, and 1 of Agostinelli et al., How stable are transferability metrics evaluations?,
    ECCV 2022.

    Args:
        study: A complete study.
        choice: What they show.
        measure: Measure where it does not vary, and neither the choice nor an example has one.
        examples: Examples of the paper that are shown where the choice has no other.

    Returns:
        `scatter`, `components` and, if the study has two targets with two common pools, `experiments`.
    """
    parts = choice.of_parts(examples)
    places = {part: MEASURES.index(its.measure or measure) for part, its in parts.items()}
    panels = {
        "target": varying_target(study, parts["target"], places["target"]),
        "measure": varying_measure(study, parts["measure"]),
        "pool": varying_pool(study, parts["pool"], places["pool"]),
    }
    figures = {
        "scatter": _draw_scatter(study, choice, MEASURES.index(choice.measure or measure)),
        "components": _draw_components(study, panels),
        "experiments": _draw_graph(study, parts["graph"], places["graph"]),
    }
    return {name: figure for name, figure in figures.items() if figure is not None}


def _draw_scatter(study: Study, choice: FigureChoice, measure: int) -> Figure:
    """Draw a panel for each pair of metrics, every point an experiment, coloured by its target."""
    pairs = choice.pairs(study.table)
    side = 5.0 if len(pairs) == 1 else PANEL
    across = min(len(pairs), PANELS_ACROSS)
    down = -(-len(pairs) // across)
    figure = Figure(figsize=(across * side + 1.6, down * side + 0.6), layout="constrained")
    grid = figure.subplots(down, across, squeeze=False)
    styles = _styles(len(study.table.targets))
    values = study.shown[:, :, measure]
    low, high = _limits(values)
    shown = values.reshape(-1, values.shape[-1])
    targets = np.tile(np.arange(len(styles)), len(values))
    colours = np.array([to_rgb(style.colour) for style in styles])[targets]
    marks = np.array([style.marker for style in styles])[targets]
    # In random order, so that no target hides those of the same mark before it.
    order = np.random.default_rng(0).permutation(len(shown))
    for (first, second), axes in zip(pairs, grid.flat, strict=False):
        for marker in np.unique(marks):
            drawn = order[marks[order] == marker]
            look: dict[str, Any] = {"c": colours[drawn], "marker": str(marker), "s": 6, "alpha": 0.5, "linewidths": 0}
            axes.scatter(shown[drawn, first], shown[drawn, second], **look)
        _finish(axes, study, (first, second), (low, high))
    for axes in grid.flat[len(pairs) :]:
        axes.set_axis_off()
    handles = [
        Line2D([], [], marker=style.marker, linestyle="", markersize=5, color=style.colour, label=name)
        for name, style in zip(shorten(study.table.targets), styles, strict=True)
    ]
    figure.legend(handles=handles, title="target", loc="outside right center", fontsize=8, alignment="left")
    title = f"Two metrics by {_title(measure)}; a point is a source pool with a target"
    figure.suptitle(title, x=0.01, ha="left", fontsize=11)
    return figure


def _draw_components(study: Study, shown: dict[str, list[Panel]]) -> Figure:
    """Draw a row for each component, in which nothing but that component and the pool varies."""
    figure = Figure(figsize=(2 * 3.1 + 0.6, 3 * 3.35), layout="constrained")
    styles = _styles(len(study.table.targets))
    rows = figure.subfigures(3, 1, squeeze=False, hspace=0.04)[:, 0]
    for letter, row, (component, panels) in zip("abc", rows, shown.items(), strict=True):
        row.suptitle(f"({letter}) {HEADLINES[component]}", x=0.02, ha="left", fontsize=11)
        for axes, panel in zip(row.subplots(1, 2), panels, strict=False):
            points = panel.points(study)
            style = styles[panel.target]
            look: dict[str, Any] = {"color": style.colour, "marker": style.marker}
            axes.scatter(points[:, 0], points[:, 1], s=9, alpha=0.45, linewidths=0, **look)
            limits = _limits(np.concatenate([other.points(study) for other in panels]))
            _finish(axes, study, (panel.across, panel.up), limits)
            _write_shares(axes, points)
            title = f"{shorten(study.table.targets)[panel.target]}, {_title(panel.measure)}"
            axes.set_title(title, fontsize=9)
        for axes in row.axes[len(panels) :]:
            axes.set_axis_off()
    return figure


def _finish(axes: Axes, study: Study, pair: tuple[int, int], limits: tuple[float, float]) -> None:
    """Set the frame: both axes alike, the line of equality, the names of the metrics."""
    axes.axline((0, 0), slope=1, color=INK, linestyle=(0, (2, 2)), linewidth=1)
    axes.set(xlim=limits, ylim=limits, aspect="equal")
    titles = shorten(study.table.titles)
    first, second = (titles[metric] for metric in pair)
    axes.set_xlabel(first, fontsize=9, labelpad=2)
    axes.set_ylabel(second, fontsize=9, labelpad=2)
    axes.tick_params(labelsize=7, length=2)
    axes.locator_params(nbins=5)


def _write_shares(axes: Axes, points: NDArray[np.float64]) -> None:
    """Write how many of the points lie above and below the line."""
    if not len(points):
        return
    above, below = float((points[:, 1] > points[:, 0]).mean()), float((points[:, 1] < points[:, 0]).mean())
    text: dict[str, Any] = {"transform": axes.transAxes, "fontsize": 9}
    axes.text(0.04, 0.96, f"{100 * above:.0f} % above", ha="left", va="top", **text)
    axes.text(0.96, 0.04, f"{100 * below:.0f} % below", ha="right", va="bottom", **text)


def _limits(values: NDArray[np.float64]) -> tuple[float, float]:
    known = values[np.isfinite(values)]
    if not len(known):
        return -1.0, 1.0
    low, high = float(known.min()), float(known.max())
    margin = max(0.04 * (high - low), 0.02)
    return low - margin, high + margin


def _title(measure: int) -> str:
    return EVALUATION_MEASURES[MEASURES[measure]].title


def _styles(count: int) -> list[LineStyle]:
    """Give each target a colour and a mark, which no other has as long as there are enough of both."""
    size = len(LINE_STYLES)
    marks = [style.marker for style in LINE_STYLES]
    return [LINE_STYLES[i % size]._replace(marker=marks[(i // size + i % size) % size]) for i in range(count)]


def _draw_graph(study: Study, choice: FigureChoice, measure: int) -> Figure | None:
    """Draw eight experiments: two targets, two measures, two pools; None where no two targets have two pools in common.

    Every edge carries the agreement of two outcomes that differ in one component; the mean over the edges of a colour
    is the setup stability of this small study.
    """
    targets = [panel.target for panel in varying_target(study, choice, measure)]
    pools = _two_pools(study, choice, targets)
    if len(set(targets)) < 2 or len(pools) < 2:
        return None
    other = MEASURES.index("pearson" if MEASURES[measure] != "pearson" else "weighted_kendall")
    measures = [MEASURES.index(name) for name in choice.measures] if choice.measures else [measure, other]
    outcomes = pool_outcomes(study.table, pools)[0][:, targets][:, :, measures].transpose(1, 2, 0, 3)
    described = _describe_pools(study.table, pools)
    bottom = -1.5 - 0.2 * max(0, described.count("\n") - 1)
    figure = Figure(figsize=(11.0, 7.2 - bottom))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(-1.5, 9.5), ylim=(bottom, 7.2), aspect="equal")
    axes.set_axis_off()
    means = _draw_edges(axes, outcomes, study.tie_tolerance)
    box = {"boxstyle": "round,pad=0.5", "facecolor": "#f6f6f6", "edgecolor": "#bbbbbb"}
    titles, targets_shown = shorten(study.table.titles), shorten(study.table.targets)
    for experiment in product((0, 1), repeat=3):
        target, place, pool = experiment
        title = f"{targets_shown[targets[target]]}, {_title(measures[place])}, {POOLS[pool]}"
        text = f"{_wrap(title, IN_BOX)}\n{rank_in_words(titles, outcomes[experiment], study.tie_tolerance)}"
        across, up = _place(experiment)
        axes.text(across, up, text, fontsize=8, bbox=box, zorder=3, linespacing=1.5, **CENTRED)
    _draw_legend(axes, means)
    axes.text(-1.3, bottom + 0.2, described, fontsize=8.5, va="bottom", linespacing=1.5)
    return figure


def _two_pools(study: Study, choice: FigureChoice, targets: list[int]) -> NDArray[np.intp]:
    """Give the pools that are chosen, or one that both targets have and the one with the fewest sources in common."""
    if choice.pools:
        places = {name: place for place, name in enumerate(study.table.sources)}
        return np.sort([[places[name] for name in pool] for pool in choice.pools])
    usable = np.flatnonzero(np.isfinite(study.shown[:, targets]).all(axis=(1, 2, 3)))
    if len(usable) < 2:
        return np.empty((0, study.pool_size), dtype=np.intp)
    common = [len(np.intersect1d(study.shown_pools[usable[0]], study.shown_pools[pool])) for pool in usable]
    return study.shown_pools[[usable[0], usable[int(np.argmin(common))]]]


def _place(experiment: Experiment) -> NDArray[np.float64]:
    place: NDArray[np.float64] = np.array(experiment, dtype=np.float64) @ np.array(list(STEP.values()))
    return place


def _draw_edges(axes: Axes, outcomes: NDArray[np.float64], tie_tolerance: float) -> dict[str, float]:
    """Connect experiments that differ in one component, and give the mean agreement for each component."""
    vectors, defined = agreement_vectors(outcomes, tie_tolerance)
    found: dict[str, list[float]] = {component: [] for component in COMPONENTS}
    for first, second in combinations(product((0, 1), repeat=3), 2):
        differing = [name for name, one, other in zip(COMPONENTS, first, second, strict=True) if one != other]
        if len(differing) != 1:
            continue
        [component] = differing
        start, end = _place(first), _place(second)
        axes.plot(*zip(start, end, strict=True), color=COMPONENTS[component], linewidth=2, zorder=1)
        agreement = float(vectors[first] @ vectors[second]) if defined[first] and defined[second] else np.nan
        if np.isfinite(agreement):
            found[component].append(agreement)
        across, up = start + LABEL[component] * (end - start)
        label = f"{agreement:z.1f}".replace("-", "−") if np.isfinite(agreement) else "–"
        box = {"boxstyle": "round,pad=0.22", "facecolor": "white", "edgecolor": "none"}
        axes.text(across, up, label, color=COMPONENTS[component], fontsize=11, bbox=box, zorder=2, **CENTRED)
    return {component: float(np.mean(values)) if values else np.nan for component, values in found.items()}


def rank_in_words(titles: Sequence[str], outcome: NDArray[np.float64], tie_tolerance: float) -> str:
    """List metrics from the best to the worst, with an equals sign between two that are tied; none without a value."""
    order = np.argsort(-outcome, kind="stable")[: np.isfinite(outcome).sum()]
    signs = [" =" if gap <= tie_tolerance else " >" for gap in -np.diff(outcome[order])]
    # Blanks that break no line: a sign at the end of a line tells that it goes on.
    words = [
        f"{titles[metric]}{sign}".replace(" ", "\N{NO-BREAK SPACE}")
        for metric, sign in zip(order, [*signs, ""], strict=True)
    ]
    return _wrap(" ".join(words), IN_BOX)


def _draw_legend(axes: Axes, means: dict[str, float]) -> None:
    handles = []
    for component, colour in COMPONENTS.items():
        mean = f"{means[component]:z.2f}".replace("-", "−") if np.isfinite(means[component]) else "undefined"
        handles.append(Line2D([], [], color=colour, linewidth=2, label=f"{component} varies: mean agreement {mean}"))
    axes.legend(handles=handles, loc="upper left", fontsize=10, borderaxespad=1.2)


def _describe_pools(table: TransferTable, pools: NDArray[np.intp]) -> str:
    sources = shorten(table.sources)
    lines = []
    for name, pool in zip(POOLS, pools, strict=True):
        outside = [source for place, source in enumerate(sources) if place not in pool]
        more = f" and {len(outside) - MOST_NAMED} more" if len(outside) > MOST_NAMED else ""
        listed = f"{name}: all {len(sources)} sources but {', '.join(outside[:MOST_NAMED])}{more}"
        lines.append(_wrap(listed, IN_LINE))
    return "\n".join(lines)


def _wrap(text: str, characters: int) -> str:
    return textwrap.fill(text, characters, break_long_words=False, break_on_hyphens=False)

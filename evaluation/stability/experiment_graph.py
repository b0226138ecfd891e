"""The graph of eight experiments, whose edges connect two that differ in one component."""

import textwrap
from collections.abc import Sequence
from itertools import combinations, product
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from headstart.evaluation.stability.figure_choice import FigureChoice, varying_target
from headstart.evaluation.stability.study import Study, pool_outcomes
from headstart.evaluation.stability.table import TransferTable
from headstart.metrics.arrays import Floats, Indices
from headstart.metrics.ranking.outcomes import agreement_vectors
from headstart.metrics.ranking.ranking_measures import EVALUATION_MEASURES, MEASURES
from headstart.output.figures import shorten

# Colours of the components, in the order of the coordinates of an experiment.
COLOURS = {"target": "#2a9d5c", "measure": "#3b6fd1", "pool": "#d9822b"}
# Position of an experiment by its coordinates of 0 or 1: a cube seen from the side, in inches.
STEP = {"target": (5.6, 0.0), "measure": (0.0, 4.0), "pool": (2.5, 1.75)}
# Relative position of the label on an edge, away from crossings.
LABEL = {"target": 0.67, "measure": 0.3, "pool": 0.5}
POOLS = ("S₁", "S₂")
CENTRED: dict[str, Any] = {"ha": "center", "va": "center"}
# Characters in a line of an experiment's box, and across the figure; sources that a pool is listed to lack.
IN_BOX, IN_LINE, MOST_NAMED = 40, 150, 12

Experiment = tuple[int, ...]


def plot_graph(study: Study, choice: FigureChoice, measure: int) -> Figure | None:
    """Plot eight experiments: two targets, two measures, two pools; None if no two targets have two pools in common.

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

    description = _describe_pools(study.table, pools)
    bottom = -1.5 - 0.2 * max(0, description.count("\n") - 1)
    figure = Figure(figsize=(11.0, 7.2 - bottom))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(-1.5, 9.5), ylim=(bottom, 7.2), aspect="equal")
    axes.set_axis_off()

    means = _plot_edges(axes, outcomes, study.tie_tolerance)
    box = {"boxstyle": "round,pad=0.5", "facecolor": "#f6f6f6", "edgecolor": "#bbbbbb"}
    titles, target_names = shorten(study.table.titles), shorten(study.table.targets)
    for experiment in product((0, 1), repeat=3):
        t, e, pool = experiment
        title = f"{target_names[targets[t]]}, {EVALUATION_MEASURES[MEASURES[measures[e]]].title}, {POOLS[pool]}"
        text = f"{_wrap(title, IN_BOX)}\n{rank_in_words(titles, outcomes[experiment], study.tie_tolerance)}"
        axes.text(*_position(experiment), text, fontsize=8, bbox=box, zorder=3, linespacing=1.5, **CENTRED)

    handles = []
    for component, colour in COLOURS.items():
        mean = f"{means[component]:z.2f}".replace("-", "−") if np.isfinite(means[component]) else "undefined"
        handles.append(Line2D([], [], color=colour, linewidth=2, label=f"{component} varies: mean agreement {mean}"))
    axes.legend(handles=handles, loc="upper left", fontsize=10, borderaxespad=1.2)
    axes.text(-1.3, bottom + 0.2, description, fontsize=8.5, va="bottom", linespacing=1.5)
    return figure


def _two_pools(study: Study, choice: FigureChoice, targets: list[int]) -> Indices:
    """Return the chosen pools, or one that both targets have and the one with the fewest sources in common."""
    if choice.pools:
        return np.sort([[study.table.sources.index(name) for name in pool] for pool in choice.pools])
    usable = np.flatnonzero(np.isfinite(study.shown[:, targets]).all(axis=(1, 2, 3)))
    if len(usable) < 2:
        return np.empty((0, study.pools.size), dtype=np.intp)
    common = [len(np.intersect1d(study.shown_pools[usable[0]], study.shown_pools[pool])) for pool in usable]
    return study.shown_pools[[usable[0], usable[int(np.argmin(common))]]]


def _position(experiment: Experiment) -> tuple[float, float]:
    x, y = np.array(experiment, dtype=np.float64) @ np.array(list(STEP.values()))
    return float(x), float(y)


def _plot_edges(axes: Axes, outcomes: Floats, tie_tolerance: float) -> dict[str, float]:
    """Connect experiments that differ in one component; return the mean agreement for each component."""
    vectors, defined = agreement_vectors(outcomes, tie_tolerance)
    agreements: dict[str, list[float]] = {component: [] for component in COLOURS}
    for first, second in combinations(product((0, 1), repeat=3), 2):
        differing = [name for name, one, other in zip(COLOURS, first, second, strict=True) if one != other]
        if len(differing) != 1:
            continue
        [component] = differing
        start, end = np.array(_position(first)), np.array(_position(second))
        axes.plot(*zip(start, end, strict=True), color=COLOURS[component], linewidth=2, zorder=1)

        label = "–"
        if defined[first] and defined[second]:
            agreement = float(vectors[first] @ vectors[second])
            agreements[component].append(agreement)
            label = f"{agreement:z.1f}".replace("-", "−")
        x, y = start + LABEL[component] * (end - start)
        box = {"boxstyle": "round,pad=0.22", "facecolor": "white", "edgecolor": "none"}
        axes.text(x, y, label, color=COLOURS[component], fontsize=11, bbox=box, zorder=2, **CENTRED)
    return {component: float(np.mean(values)) if values else np.nan for component, values in agreements.items()}


def rank_in_words(titles: Sequence[str], outcome: Floats, tie_tolerance: float) -> str:
    """List metrics from the best to the worst, with an equals sign between two that are tied; none without a value."""
    order = np.argsort(-outcome, kind="stable")[: np.isfinite(outcome).sum()]
    signs = [" =" if gap <= tie_tolerance else " >" for gap in -np.diff(outcome[order])]
    # No-break spaces keep a sign at the end of its line, which shows that the list continues.
    words = [
        f"{titles[metric]}{sign}".replace(" ", "\N{NO-BREAK SPACE}")
        for metric, sign in zip(order, [*signs, ""], strict=True)
    ]
    return _wrap(" ".join(words), IN_BOX)


def _describe_pools(table: TransferTable, pools: Indices) -> str:
    sources = shorten(table.sources)
    lines = []
    for name, pool in zip(POOLS, pools, strict=True):
        outside = [source for i, source in enumerate(sources) if i not in pool]
        more = f" and {len(outside) - MOST_NAMED} more" if len(outside) > MOST_NAMED else ""
        text = f"{name}: all {len(sources)} sources but {', '.join(outside[:MOST_NAMED])}{more}"
        lines.append(_wrap(text, IN_LINE))
    return "\n".join(lines)


def _wrap(text: str, characters: int) -> str:
    return textwrap.fill(text, characters, break_long_words=False, break_on_hyphens=False)

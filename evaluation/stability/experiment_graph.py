"""The graph of a few experiments, connected where they differ in one component."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from evaluation.stability.examples import Panel
from evaluation.stability.report import TITLES
from evaluation.stability.study import Study
from evaluation.stability.table import metric_title
from metrics.ranking.outcome_agreement import agreement_vectors
from metrics.ranking.ranking_measures import MEASURES

INK = "#333333"
# Components in the order of the coordinates of an experiment: target, measure, pool.
COLOURS = {"target": "#2a9d5c", "measure": "#3b6fd1", "pool": "#d9822b"}
# Where an experiment stands, by its coordinates of 0 or 1: a cube seen from the side, in inches.
STEP = {"target": (5.6, 0.0), "measure": (0.0, 4.0), "pool": (2.5, 1.75)}
# Where on an edge its label stands: not where edges cross.
LABEL = {"target": 0.67, "measure": 0.3, "pool": 0.5}

# How the two pools are called.
POOLS = ("S₁", "S₂")
# Metrics in one line of an experiment.
LINE = 5

Experiment = tuple[int, ...]


def draw_graph(study: Study, contrast: list[Panel], measure: int) -> Figure | None:
    """Draw eight experiments: two targets, two measures, two pools.

    Every edge carries the agreement of two outcomes that differ in one component; the mean over the edges of a colour
    is the setup stability of this small study, as in figure 1 of Agostinelli et al., How stable are transferability
    metrics evaluations?, ECCV 2022.

    Args:
        study: A complete study.
        contrast: Two panels whose targets are shown.
        measure: Index of one measure; the other is Pearson, or weighted Kendall where it is Pearson itself.

    Returns:
        The figure; None where there are no two targets with two pools in common.
    """
    targets = [panel.target for panel in contrast]
    pools = _two_pools(study, targets)
    if len(set(targets)) < 2 or len(pools) < 2:
        return None
    other = MEASURES.index("pearson" if MEASURES[measure] != "pearson" else "weighted_kendall")
    outcomes = study.shown[np.ix_(pools, targets, [measure, other])].transpose(1, 2, 0, 3)
    figure = Figure(figsize=(11.0, 8.7))
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(-1.5, 9.5), ylim=(-1.5, 7.2), aspect="equal")
    axes.set_axis_off()
    means = _draw_edges(axes, outcomes, study.tie_tolerance)
    for experiment in product((0, 1), repeat=3):
        target, place, pool = experiment
        title = f"{study.table.targets[targets[target]]}, {TITLES[MEASURES[(measure, other)[place]]]}, {POOLS[pool]}"
        _draw_experiment(axes, experiment, title, _ranking(study, outcomes[experiment]))
    _draw_legend(axes, means)
    axes.text(
        -1.3,
        -1.3,
        _describe_pools(study, pools),
        fontsize=8.5,
        color=INK,
        va="bottom",
        linespacing=1.5,
        parse_math=False,
    )
    return figure


def _two_pools(study: Study, targets: list[int]) -> list[int]:
    """Choose a pool that both targets have, and the one that has the fewest sources in common with it."""
    usable = np.flatnonzero(np.isfinite(study.shown[:, targets]).all(axis=(1, 2, 3)))
    if len(usable) < 2:
        return []
    common = [len(np.intersect1d(study.shown_pools[usable[0]], study.shown_pools[pool])) for pool in usable]
    return [int(usable[0]), int(usable[int(np.argmin(common))])]


def _place(experiment: Experiment) -> NDArray[np.float64]:
    place: NDArray[np.float64] = np.array(experiment, dtype=np.float64) @ np.array(list(STEP.values()))
    return place


def _draw_edges(axes: Axes, outcomes: NDArray[np.float64], tie_tolerance: float) -> dict[str, float]:
    """Connect experiments that differ in one component, and give the mean agreement for each component."""
    vectors, defined = agreement_vectors(outcomes, tie_tolerance)
    found: dict[str, list[float]] = {component: [] for component in COLOURS}
    for first, second in combinations(product((0, 1), repeat=3), 2):
        differing = [name for name, one, other in zip(COLOURS, first, second, strict=True) if one != other]
        if len(differing) != 1:
            continue
        [component] = differing
        start, end = _place(first), _place(second)
        axes.plot(*zip(start, end, strict=True), color=COLOURS[component], linewidth=2, zorder=1)
        agreement = float(vectors[first] @ vectors[second]) if defined[first] and defined[second] else np.nan
        if np.isfinite(agreement):
            found[component].append(agreement)
        across, up = start + LABEL[component] * (end - start)
        label = f"{agreement:.1f}".replace("-", "−") if np.isfinite(agreement) else "–"
        box = {"boxstyle": "round,pad=0.22", "facecolor": "white", "edgecolor": "none"}
        axes.text(
            across, up, label, color=COLOURS[component], fontsize=11, ha="center", va="center", bbox=box, zorder=2
        )
    return {component: float(np.mean(values)) if values else np.nan for component, values in found.items()}


def _draw_experiment(axes: Axes, experiment: Experiment, title: str, ranking: str) -> None:
    box = {"boxstyle": "round,pad=0.5", "facecolor": "#f6f6f6", "edgecolor": "#bbbbbb"}
    across, up = _place(experiment)
    axes.text(
        across,
        up,
        f"{title}\n{ranking}",
        fontsize=8,
        color=INK,
        ha="center",
        va="center",
        bbox=box,
        zorder=3,
        linespacing=1.5,
        parse_math=False,
    )


def _ranking(study: Study, outcome: NDArray[np.float64]) -> str:
    """List the metrics from the best to the worst."""
    names = [metric_title(study.table.metrics[metric]) for metric in np.argsort(-outcome, kind="stable")]
    return " >\n".join(" > ".join(names[start : start + LINE]) for start in range(0, len(names), LINE))


def _draw_legend(axes: Axes, means: dict[str, float]) -> None:
    handles = []
    for component, colour in COLOURS.items():
        mean = f"{means[component]:.2f}".replace("-", "−") if np.isfinite(means[component]) else "undefined"
        handles.append(Line2D([], [], color=colour, linewidth=2, label=f"{component} varies: mean agreement {mean}"))
    axes.legend(handles=handles, loc="upper left", frameon=False, fontsize=10, labelcolor=INK, borderaxespad=1.2)


def _describe_pools(study: Study, pools: list[int]) -> str:
    sources = study.table.sources
    lines = []
    for name, pool in zip(POOLS, pools, strict=True):
        outside = [source for place, source in enumerate(sources) if place not in study.shown_pools[pool]]
        lines.append(f"{name}: all sources but {', '.join(outside)}")
    return "\n".join(lines)

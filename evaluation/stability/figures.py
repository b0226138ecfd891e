"""Scatter plots of outcomes: all targets at once, and one component varying at a time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from evaluation.stability.examples import FigureChoice, Panel, varying_measure, varying_pool, varying_target
from evaluation.stability.experiment_graph import draw_graph
from evaluation.stability.report import TITLES
from evaluation.stability.study import Study
from evaluation.stability.table import metric_title
from metrics.ranking.ranking_measures import MEASURES, Measure
from output.files import replacing

INK, PALE, EQUAL = "#333333", "#999999", "#d62728"
DPI = 120
PANEL, COLUMNS = 2.5, 5
# Told apart on white, also when small; in the order of use.
DISTINCT = (
    "#e6194b", "#3cb44b", "#4363d8", "#f58231", "#911eb4", "#35c4e0", "#f032e6", "#9a6324", "#2f8f86", "#8a8a00",
    "#000075", "#800000", "#c9a500", "#86c232", "#ff8fab", "#7f7f7f", "#b07aff", "#3d2b1f", "#00c896", "#ff5f1f",
)  # fmt: skip


def draw_figures(study: Study, choice: FigureChoice, measure: Measure, folder: Path) -> list[Path]:
    """Draw the scatter of outcomes, the effect of single components, and the graph of a few experiments.

    After figures 2 and 4, 3 and 5, and 1 of Agostinelli et al., How stable are transferability metrics evaluations?,
    ECCV 2022.

    Args:
        study: A complete study.
        choice: What they show.
        measure: Measure where it does not vary.
        folder: Folder to write `scatter.png`, `components.png` and, where the study has two targets with two common
            pools, `experiments.png` to.

    Returns:
        The files.
    """
    place = MEASURES.index(measure)
    examples = {
        "target": varying_target(study, choice, place),
        "measure": varying_measure(study, choice),
        "pool": varying_pool(study, choice, place),
    }
    figures = {
        "scatter": _draw_scatter(study, choice, place),
        "components": _draw_components(study, examples),
        "experiments": draw_graph(study, examples["target"], place),
    }
    return [_write(figure, folder / f"{name}.png") for name, figure in figures.items() if figure is not None]


def _draw_scatter(study: Study, choice: FigureChoice, measure: int) -> Figure:
    """Draw a panel for each pair of metrics, every point an experiment, coloured by its target."""
    pairs = choice.pairs(study.table)
    side = 5.0 if len(pairs) == 1 else PANEL
    across = min(len(pairs), COLUMNS)
    down = -(-len(pairs) // across)
    figure = Figure(figsize=(across * side + 1.6, down * side + 0.6), layout="constrained")
    FigureCanvasAgg(figure)
    grid = figure.subplots(down, across, squeeze=False)
    colours = _colours(len(study.table.targets))
    values = study.shown[:, :, measure]
    low, high = _limits(values)
    shown = values.reshape(-1, values.shape[-1])
    targets = np.tile(np.arange(len(colours)), len(values))
    # In random order, so that no target hides those before it.
    order = np.random.default_rng(0).permutation(len(shown))
    for (first, second), axes in zip(pairs, grid.flat, strict=False):
        axes.scatter(shown[order, first], shown[order, second], c=colours[targets[order]], s=3, alpha=0.5, linewidths=0)
        _finish(axes, study, (first, second), (low, high))
    for axes in grid.flat[len(pairs) :]:
        axes.set_axis_off()
    handles = [
        Line2D([], [], marker="o", linestyle="", markersize=5, color=colour, label=name)
        for name, colour in zip(study.table.targets, colours, strict=True)
    ]
    legend = figure.legend(
        handles=handles,
        title="target",
        loc="outside right center",
        frameon=False,
        fontsize=8,
        labelcolor=INK,
        alignment="left",
    )
    for text in legend.get_texts():
        text.set_parse_math(False)
    title = f"Two metrics by {TITLES[MEASURES[measure]]}; a point is a source pool with a target"
    figure.suptitle(title, x=0.01, ha="left", fontsize=11, color=INK)
    return figure


def _draw_components(study: Study, examples: dict[str, list[Panel]]) -> Figure:
    """Draw a row for each component, in which nothing but that component and the pool varies."""
    figure = Figure(figsize=(2 * 3.1 + 0.6, 3 * 3.35), layout="constrained")
    FigureCanvasAgg(figure)
    colours = _colours(len(study.table.targets))
    rows = figure.subfigures(3, 1, squeeze=False, hspace=0.04)[:, 0]
    for letter, row, (component, panels) in zip("abc", rows, examples.items(), strict=True):
        row.suptitle(f"({letter}) {_headline(component)}", x=0.02, ha="left", fontsize=11, color=INK)
        for axes, panel in zip(row.subplots(1, 2), panels, strict=False):
            points = panel.points(study)
            axes.scatter(points[:, 0], points[:, 1], color=colours[panel.target], s=7, alpha=0.45, linewidths=0)
            limits = _limits(np.concatenate([other.points(study) for other in panels]))
            _finish(axes, study, (panel.across, panel.up), limits)
            _write_shares(axes, points)
            title = f"{study.table.targets[panel.target]}, {TITLES[MEASURES[panel.measure]]}"
            axes.set_title(title, fontsize=9, color=INK, parse_math=False)
        for axes in row.axes[len(panels) :]:
            axes.set_axis_off()
    return figure


def _headline(component: str) -> str:
    return {
        "target": "Another target, another winner",
        "measure": "Another measure, another winner",
        "pool": "Another pool, another winner: points on both sides",
    }[component]


def _finish(axes: Axes, study: Study, pair: tuple[int, int], limits: tuple[float, float]) -> None:
    """Set the frame: both axes alike, the line of equality, the names of the metrics."""
    axes.axline((0, 0), slope=1, color=EQUAL, linestyle=(0, (2, 2)), linewidth=1)
    axes.set(xlim=limits, ylim=limits, aspect="equal")
    first, second = (metric_title(study.table.metrics[metric]) for metric in pair)
    axes.set_xlabel(first, fontsize=9, color=INK, labelpad=2, parse_math=False)
    axes.set_ylabel(second, fontsize=9, color=INK, labelpad=2, parse_math=False)
    axes.tick_params(labelsize=7, length=2, color=PALE, labelcolor=INK)
    axes.locator_params(nbins=5)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(PALE)


def _write_shares(axes: Axes, points: NDArray[np.float64]) -> None:
    """Write how many of the points lie above and below the line."""
    if not len(points):
        return
    above, below = float((points[:, 1] > points[:, 0]).mean()), float((points[:, 1] < points[:, 0]).mean())
    text: dict[str, Any] = {"transform": axes.transAxes, "fontsize": 9, "color": INK}
    axes.text(0.04, 0.96, f"{100 * above:.0f} % above", ha="left", va="top", **text)
    axes.text(0.96, 0.04, f"{100 * below:.0f} % below", ha="right", va="bottom", **text)


def _limits(values: NDArray[np.float64]) -> tuple[float, float]:
    known = values[np.isfinite(values)]
    if not len(known):
        return -1.0, 1.0
    low, high = float(known.min()), float(known.max())
    margin = max(0.04 * (high - low), 0.02)
    return low - margin, high + margin


def _colours(count: int) -> NDArray[np.float64]:
    """Give as many colours as there are targets."""
    if count <= len(DISTINCT):
        return np.array([to_rgb(colour) for colour in DISTINCT[:count]])
    return np.asarray(matplotlib.colormaps["turbo"](np.linspace(0.03, 0.97, count)))[:, :3]


def _write(figure: Figure, path: Path) -> Path:
    with replacing(path) as partial:
        figure.savefig(partial, dpi=DPI, format="png")
    return path

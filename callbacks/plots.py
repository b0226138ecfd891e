"""The figures of a comparison."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from headstart.callbacks.sample_efficiency import BAND
from headstart.metrics.sample_efficiency.curves import Curves
from headstart.output.figures import (
    ALARM,
    GREY,
    LINE_STYLES,
    LineStyle,
    drawing,
    fold,
    label_lines,
    room_for_labels,
    titles,
)

# With more methods than this, each one has a panel of its own, in which the baseline is grey.
MOST_IN_ONE_PANEL = len(LINE_STYLES)
ALONE, BESIDE = LINE_STYLES[-1]._replace(dashes=(), marker="^"), LineStyle(GREY, (), "o")
# Inches: a single panel with the texts around it, one of several, and the margin beside texts.
ONE_PANEL, PANEL, MARGIN = (5.4, 4.5), (2.4, 2.0), 0.1
# Columns of up to nine panels and of more.
COLUMNS = (3, 4)
# Font size of notes in points.
SMALL = 8.3
# Methods by index with their styles, drawn in one panel.
Panels = list[tuple[Axes, list[tuple[int, LineStyle]]]]


def plot_learning_curves(curves: Curves, title: str, complete: bool) -> Figure:
    """Plot accuracy against samples seen: mean, band over orderings, threshold, median samples to criterion.

    A line goes as far as every ordering of its method was evaluated. The baseline and the best method have bands.

    Args:
        curves: The traces.
        title: Title of the figure.
        complete: Whether every trace was measured; otherwise the figure is stamped as incomplete.

    Returns:
        The figure: one panel for up to six methods, else one for each custom method and the baseline in grey.
    """
    with drawing():
        figure, panels = _begin(curves, title, complete)
        medians, threshold = _medians(curves), 100 * curves.threshold
        banded = _banded(curves)
        ends = dict[int, tuple[float, float]]()
        for axes, methods in panels:
            for zorder, (method, style) in enumerate(reversed(methods), 2):
                has_band = method in banded or len(panels) > 1
                ends[method] = _plot_accuracy(axes, curves, method, style, zorder, has_band)
                if np.isfinite(medians[method]):
                    look: dict[str, Any] = {"color": style.colour, "markeredgecolor": "white", "markersize": 7}
                    axes.plot(medians[method], threshold, style.marker, clip_on=False, zorder=98, **look)
            axes.axhline(threshold, color=GREY, linestyle="--", linewidth=0.8, zorder=1)
            # No accuracy is above 100 %.
            axes.set_ylim(None, min(axes.get_ylim()[1], 101))

        orderings, few = len(curves.orderings), len(panels) == 1 and len(curves.methods) > len(banded)
        note = f"Mean of {orderings} orderings" if orderings > 1 else "One ordering"
        if orderings > 1:
            of = " of the baseline and of the best other method" if few else ""
            note += f"; bands{of}: {BAND[0]}th to {BAND[1]}th percentile"
        note += ".\nMarks on the dashed threshold, and numbers in brackets: median samples to criterion."
        _explain(figure, curves, ends, note, f"Validation {curves.measure.replace('_', ' ')}, %")
    return figure


def plot_criterion_reached(curves: Curves, title: str, complete: bool) -> Figure:
    """Plot the share of orderings that have met the criterion; arguments and panels as for `plot_learning_curves`."""
    with drawing():
        figure, panels = _begin(curves, title, complete)
        samples, _ = curves.samples_to_criterion()
        banded = _banded(curves)
        ends = dict[int, tuple[float, float]]()
        for axes, methods in panels:
            for zorder, (method, style) in enumerate(reversed(methods), 2):
                steps = np.sort(samples[method][np.isfinite(samples[method])])
                share = 100 * np.arange(len(steps) + 1) / len(samples[method])
                x, y = np.r_[0, steps, _end(curves)], np.r_[share, share[-1]]
                axes.step(x, y, where="post", zorder=zorder, **_look(style, method in banded or len(panels) > 1))
                ends[method] = (float(x[-1]), float(y[-1]))
            axes.set_ylim(-2, 102)

        orderings = f"{len(curves.orderings)} orderings" if len(curves.orderings) > 1 else "One ordering"
        note = f"{orderings}. In brackets: median samples to criterion."
        _explain(figure, curves, ends, note, "Orderings that met the criterion, %")
    return figure


def _banded(curves: Curves) -> set[int]:
    """Return the baseline and that other method with the lowest restricted mean, which stand out."""
    means = np.minimum(curves.samples_to_criterion()[0], curves.limit).mean(axis=1)
    return {0, *(1 + np.argsort(means[1:], kind="stable")[:1]).tolist()}


def _begin(curves: Curves, title: str, complete: bool) -> tuple[Figure, Panels]:
    """Return a figure with its panels, each with the methods that it shows and their styles."""
    methods = range(len(curves.methods))
    shown = [list(zip(methods, LINE_STYLES, strict=False))]
    if len(methods) > MOST_IN_ONE_PANEL:
        shown = [[(method, ALONE), (0, BESIDE)] for method in methods[1:]]
    columns = min(len(shown), COLUMNS[len(shown) > COLUMNS[0] ** 2])
    rows = -(-len(shown) // columns)

    size = ONE_PANEL if len(shown) == 1 else PANEL
    labels = room_for_labels(_labels(curves)) if len(shown) == 1 else 0
    width, height = columns * size[0] + labels, rows * size[1] + (len(shown) > 1)
    figure = Figure(figsize=(width, height))
    # What is outside of this is left to the labels.
    figure.set_layout_engine("constrained", rect=(0, 0, 1 - labels / width, 1))
    figure.suptitle(fold(title, width - 4 * MARGIN), x=MARGIN / width, ha="left")
    panels = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).ravel()
    for index, axes in enumerate(panels):
        axes.set_xlim(0, 1.01 * _end(curves))
        # The lowest panel of each column has the axis.
        if index < len(shown) <= index + columns:
            axes.set_xlabel("Samples seen")
            axes.tick_params(labelbottom=True)
        if index >= len(shown):
            axes.set_axis_off()

    if not complete:
        stamp: dict[str, Any] = {"fontsize": 7 * width, "rotation": 25, "alpha": 0.25, "weight": "bold"}
        mark = figure.text(0.5, 0.5, "INCOMPLETE", ha="center", va="center", color=ALARM, zorder=99, **stamp)
        mark.set_in_layout(False)
    return figure, list(zip(panels, shown, strict=False))


def _plot_accuracy(
    axes: Axes, curves: Curves, method: int, style: LineStyle, zorder: int, has_band: bool
) -> tuple[float, float]:
    """Plot the line of a method, with its band or thin, and return its end."""
    accuracy = 100 * curves.accuracy[method]
    # If only some orderings continue, their mean is that of the slow ones.
    seen = ~np.isnan(accuracy).any(0)
    accuracy, samples_seen = accuracy[:, seen], curves.samples_seen[seen]
    mean = accuracy.mean(axis=0)
    # A single evaluation makes no line.
    marker = style.marker if len(samples_seen) == 1 else ""
    axes.plot(samples_seen, mean, marker=marker, zorder=zorder + 10 * has_band, **_look(style, has_band))
    if has_band and len(curves.orderings) > 1:
        low, high = np.percentile(accuracy, BAND, axis=0)
        axes.fill_between(samples_seen, low, high, color=style.colour, alpha=0.12, linewidth=0)
    return float(samples_seen[-1]), float(mean[-1])


def _explain(figure: Figure, curves: Curves, ends: Mapping[int, tuple[float, float]], note: str, ylabel: str) -> None:
    """Name the lines, beside their ends in a single panel and above several panels, and add the note below."""
    labels, medians, width = _labels(curves), _medians(curves), figure.get_figwidth()
    is_single = len(labels) <= MOST_IN_ONE_PANEL
    if not is_single:
        note = f"In grey: {labels[0]}. {note}"
        for label, axes in zip(labels[1:], figure.axes, strict=False):
            axes.set_title(label.replace(" (", "\n("), fontsize=SMALL)
    figure.supylabel(ylabel, fontsize="medium")
    figure.supxlabel(fold(note, width - 2 * MARGIN, SMALL), x=MARGIN / width, ha="left", fontsize=SMALL)

    if is_single:
        # Labels need the final place of the panel.
        figure.draw_without_rendering()
        figure.set_layout_engine("none")
        # From the highest end down; of equal ones the earliest median first.
        order = sorted(ends, key=lambda method: (-ends[method][1], medians[method], method))
        places, colours = [ends[method] for method in order], [LINE_STYLES[method].colour for method in order]
        label_lines(figure.axes[0], places, [labels[method] for method in order], colours)


def _labels(curves: Curves) -> list[str]:
    """Return the names of the methods as people write them, each with its median."""
    return [
        f"{name} ({median:g})" if np.isfinite(median) else f"{name} (not reached)"
        for name, median in zip(titles(curves.methods), _medians(curves), strict=True)
    ]


def _look(style: LineStyle, stands_out: bool) -> dict[str, Any]:
    dashes = None if stands_out else style.dashes or None
    return {"color": style.colour, "linestyle": (0, dashes), "linewidth": 1.8 if stands_out else 1.0}


def _medians(curves: Curves) -> NDArray[np.float64]:
    medians: NDArray[np.float64] = np.median(curves.samples_to_criterion()[0], axis=1)
    return medians


def _end(curves: Curves) -> int:
    return max(int(curves.samples_seen[-1]), 1)

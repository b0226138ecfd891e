"""The charts of a page as files for papers, in the style of all figures, from the same numbers."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any

import matplotlib.figure
import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, NullFormatter
from numpy.typing import NDArray

from headstart.output.figures import (
    GREY,
    GRID,
    INK,
    LINE_STYLES,
    PALE,
    drawing,
    fold,
    label_lines,
    room_for_labels,
    save,
    setting_in_words,
    titles,
)
from headstart.output.page.charts import MOST_BANDS, marks
from headstart.output.page.layout import Figure, Page
from headstart.output.results_folder import FigureFormat

# Inches: axes of lines, the row of a method, the room on the left, above and below, and margins; and points of notes.
LINES, ROW, LEFT, ABOVE, BELOW = (4.6, 3.2), 0.24, 0.75, 0.6, 0.9
MARGIN, SMALL = 0.12, 8.3
# Titles of the axes of scores; forests have a line at a reference value.
AXES = {
    "learning_curves": "Accuracy, %",
    "reached": "Orderings that met the criterion, %",
    "by_value": "Samples to criterion",
    "accuracy_by_value": "Accuracy, %",
}
FORESTS = {
    "improvement": ("Improvement over the baseline, %", 0.0),
    "aggregate": ("Samples to criterion, 1 being the mean of all methods; lower is better", 1.0),
    "stability": ("Agreement of two rankings (Kendall's τ):\n1 is the same order, 0 is no relation", 1.0),
}
# An interval of Kendall's tau that is wider than half of its range, which ends at -1 and 1, says nothing.
WIDEST = 1.0
PARTS = {
    "evaluations": "Evaluations in a row",
    "ordering": "Ordering of the samples",
    "threshold": "Accuracy threshold",
}


def figure_writers(page: Page, formats: Iterable[FigureFormat]) -> dict[str, Callable[[Path], object]]:
    """Return what writes each chart of a page in each of the formats, by file name.

    Lines are those that the page shows when it is opened.
    """
    return {f"{figure.name}.{form}": partial(_write, page, figure, form) for figure in page.figures for form in formats}


def _write(page: Page, figure: Figure, form: FigureFormat, path: Path) -> None:
    save(plot_chart(page, figure), path, form)


@drawing()
def plot_chart(page: Page, figure: Figure) -> matplotlib.figure.Figure:
    """Plot a chart of a page: lines with labels at their ends, or a forest plot."""
    columns, rows = _read(figure.series.data)
    title = f"{figure.caption}\n{setting_in_words(figure.about)}" if figure.about else figure.caption
    if figure.chart in FORESTS:
        return _plot_forest(page, figure, title, rows)
    return _plot_lines(page, figure, title, dict(zip(columns, rows.T, strict=True)))


def _read(data: str) -> tuple[list[str], NDArray[np.float64]]:
    header, _, numbers = data.partition("\n")
    columns = header.split(",")
    rows = np.loadtxt(StringIO(numbers), delimiter=",", ndmin=2) if numbers else np.empty((0, len(columns)))
    return columns, rows


def _plot_lines(
    page: Page, figure: Figure, title: str, numbers: Mapping[str, NDArray[np.float64]]
) -> matplotlib.figure.Figure:
    """Plot a line for each method that is shown: of learning curves the first two have bands."""
    shown = [method for method in page.shown if (numbers["method"] == method).any()]
    names, styles, values = titles(page.methods), marks(len(page.methods)), figure.series.values
    right = room_for_labels([names[method] for method in shown])
    plotted, axes = _begin(title, LINES, right)
    is_by_value = "position" in numbers
    x_name, y_name = ("position" if is_by_value else "samples"), ("share" if "share" in numbers else "estimate")
    y_name = "mean" if "mean" in numbers else y_name

    ends = {}
    for index, method in enumerate(shown):
        of_method = numbers["method"] == method
        own = {name: column[of_method] for name, column in numbers.items()}
        x, y = own[x_name], own[y_name]
        colour, is_first = LINE_STYLES[styles[method].line].colour, index < MOST_BANDS
        look: dict[str, Any] = {"color": colour, "linewidth": 1.8 if is_first else 1.0, "zorder": 4 if is_first else 3}
        axes.plot(x, y, drawstyle="steps-post" if y_name == "share" else "default", **look)
        if is_by_value:
            axes.vlines(x, own["low"], own["high"], color=colour, linewidth=1)
            axes.plot(x, y, LINE_STYLES[styles[method].line].marker, color=colour, markersize=4)
        elif "mean" in numbers and is_first:
            axes.fill_between(x, own["low"], own["high"], color=colour, alpha=0.12, linewidth=0)
        ends[method] = (float(x[-1]), float(y[-1]), float(x[np.argmax(y >= y[-1] / 2)]))

    axes.set_ylabel(AXES[figure.chart])
    if is_by_value:
        axes.set_xticks(range(len(values["values"])), values["values"])
    else:
        axes.set_xscale("log")
        axes.set_xlim(values["first"], values["last"])
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.xaxis.set_major_formatter("{x:g}")
        axes.set_xlabel("Samples seen")
    if "threshold" in values:
        axes.axhline(values["threshold"], color=GREY, linestyle="--", linewidth=0.8, zorder=1)

    # From the highest end down; of equal ones the line that rises first.
    order = sorted(shown, key=lambda method: (-ends[method][1], ends[method][2], method))
    label_lines(
        axes,
        [ends[method][:2] for method in order],
        [names[method] for method in order],
        [LINE_STYLES[styles[method].line].colour for method in order],
    )
    if "mean" in numbers:
        _note(plotted, "Mean of the orderings; bands: 10th to 90th percentile. Dashed: threshold.")
    return plotted


def _plot_forest(page: Page, figure: Figure, title: str, rows: NDArray[np.float64]) -> matplotlib.figure.Figure:
    """Plot a row for each method or part of a setup: an estimate with its interval."""
    label, reference = FORESTS[figure.chart]
    is_stability = figure.chart == "stability"
    names = [PARTS.get(part, part.capitalize()) for part in figure.series.values["labels"]] if is_stability else []
    names = names or titles(page.methods)
    labels = [names[int(number)] for number in rows[:, 0]]
    styles = marks(len(page.methods))
    coloured = [] if is_stability else list(page.shown)[:MOST_BANDS]
    plotted, axes = _begin(title, (LINES[0], ROW * max(len(rows), 3)), 0.3, room_for_labels(labels))

    for line, (number, estimate, low, high) in enumerate(rows):
        colour = INK if is_stability else GREY
        if number in coloured:
            colour = LINE_STYLES[styles[int(number)].line].colour
        if is_stability and high - low > WIDEST:
            _plot_unknown(axes, line, estimate, (low, high))
            continue
        axes.plot([low, high], [line, line], color=colour, linewidth=1.8, solid_capstyle="butt")
        axes.plot(estimate, line, "o", color=colour, markersize=6)

    axes.axvline(reference, color=PALE, linewidth=1, zorder=0)
    axes.set_yticks(range(len(labels)), labels)
    for text, number in zip(axes.get_yticklabels(), rows[:, 0], strict=True):
        if number in coloured:
            text.set_color(LINE_STYLES[styles[int(number)].line].colour)
    axes.set_ylim(max(len(rows), 3) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x", color=GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines["left"].set_visible(False)
    if is_stability:
        axes.set_xlim(min(0.0, *axes.get_xlim()), 1.02)
    axes.set_xlabel(label)
    if coloured:
        _note(plotted, f"Coloured: {', '.join(names[each] for each in coloured)}.")
    return plotted


def _plot_unknown(axes: Axes, line: int, estimate: float, ends: tuple[float, float]) -> None:
    """Plot an estimate that says nothing: a hollow mark, and its interval in words on the side that has more room."""
    axes.plot(estimate, line, "o", color="white", markeredgecolor=PALE, markersize=6)
    text = f"not enough data: interval from {ends[0]:.1f} to {ends[1]:.1f}".replace("-", "−")
    side, shift = ("left", 8) if estimate < 0.5 else ("right", -8)
    look: dict[str, Any] = {"ha": side, "va": "center", "fontsize": SMALL, "color": GREY}
    axes.annotate(text, (estimate, line), (shift, 0), textcoords="offset points", **look)


def _begin(
    title: str, size: Sequence[float], right: float, left: float = LEFT
) -> tuple[matplotlib.figure.Figure, Axes]:
    """Return a figure with axes of a size in inches, and the room around them."""
    across = left + size[0] + right
    title = fold(title, across - 2 * MARGIN)
    above = ABOVE + 0.19 * (title.count("\n") - 1)
    up = above + size[1] + BELOW
    figure = matplotlib.figure.Figure(figsize=(across, up))
    axes = figure.add_axes((left / across, BELOW / up, size[0] / across, size[1] / up))
    figure.text(MARGIN / across, 1 - MARGIN / up, title, va="top", linespacing=1.4)
    return figure, axes


def _note(figure: matplotlib.figure.Figure, text: str) -> None:
    across, up = figure.get_size_inches()
    figure.text(MARGIN / across, MARGIN / up, fold(text, across - 2 * MARGIN, SMALL), fontsize=SMALL, va="bottom")

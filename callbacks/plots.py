"""The figures of a comparison."""

from collections.abc import Iterator
from textwrap import wrap
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.transforms import offset_copy
from numpy.typing import NDArray

from headstart.callbacks.sample_efficiency import BAND
from headstart.metrics.sample_efficiency.curves import Curves
from headstart.output.figures import ALARM, GREY, LINE_STYLES, LineStyle, drawing, shorten

# With more methods than this, each one has a panel of its own, in which the baseline is grey.
MOST_IN_ONE_PANEL = len(LINE_STYLES)
ALONE, BESIDE = LINE_STYLES[-1]._replace(dashes=(), marker="^"), LineStyle(GREY, (), "o")
# Inches: sizes of a single panel and of one of several, margins, gaps between panels, and the height of a text line.
ONE_PANEL, PANEL = (7.1, 3.8), (2.6, 1.6)
LEFT, RIGHT, ACROSS, UP, LINE = 0.75, 0.2, 0.3, 0.5, 0.2
# Columns of up to nine panels and of more.
COLUMNS = (3, 4)
# Medians closer than this share of the axis are marked below each other; the size of a mark in points.
CLOSE, MARK = 0.02, 7.0


def plot_learning_curves(curves: Curves, title: str, complete: bool) -> Figure:
    """Plot accuracy against samples seen: mean, band over orderings, threshold, median samples to criterion.

    A line goes as far as every ordering of its method was evaluated.

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
        for axes, methods in panels:
            for zorder, (method, style) in enumerate(reversed(methods), 2):
                _plot_accuracy(axes, curves, method, style, zorder)
            axes.axhline(threshold, color=GREY, linestyle="--", linewidth=0.8, zorder=1)
            axes.set_ylim(None, 101)
            for method, style, below in _stagger(medians, methods, axes.get_xlim()[1]):
                _mark(axes, (medians[method], threshold), style, below)

        orderings = len(curves.orderings)
        shown = f"mean, and {BAND[0]}th to {BAND[1]}th percentile, of {orderings} orderings"
        note = f"{shown if orderings > 1 else 'one ordering'}; marks on the threshold: median samples to criterion"
        _explain(figure, curves, note, f"validation {curves.measure.replace('_', ' ')}, %", marked=True)
    return figure


def plot_criterion_reached(curves: Curves, title: str, complete: bool) -> Figure:
    """Plot the share of orderings that have met the criterion; arguments and panels as for `plot_learning_curves`."""
    with drawing():
        figure, panels = _begin(curves, title, complete)
        samples, _ = curves.samples_to_criterion()
        for axes, methods in panels:
            for zorder, (method, style) in enumerate(reversed(methods), 2):
                steps = np.sort(samples[method][np.isfinite(samples[method])])
                share = 100 * np.arange(len(steps) + 1) / len(samples[method])
                x, y = np.r_[0, steps, _end(curves)], np.r_[share, share[-1]]
                axes.step(x, y, where="post", zorder=zorder, **_look(style))
            axes.set_ylim(-2, 102)
        note = f"{len(curves.orderings)} orderings" if len(curves.orderings) > 1 else "one ordering"
        _explain(figure, curves, note, "orderings that met the criterion, %", marked=False)
    return figure


def _begin(curves: Curves, title: str, complete: bool) -> tuple[Figure, list[tuple[Axes, list[tuple[int, LineStyle]]]]]:
    """Return a figure with its panels, each with the methods that it shows and their styles."""
    methods = range(len(curves.methods))
    shown = [list(zip(methods, LINE_STYLES, strict=False))]
    if len(methods) > MOST_IN_ONE_PANEL:
        shown = [[(method, ALONE), (0, BESIDE)] for method in methods[1:]]
    columns = min(len(shown), COLUMNS[len(shown) > COLUMNS[0] ** 2])
    rows = -(-len(shown) // columns)

    # Sizes in inches.
    panel = ONE_PANEL if len(shown) == 1 else PANEL
    width = LEFT + columns * panel[0] + (columns - 1) * ACROSS + RIGHT
    lines = wrap(title, int(11 * width))
    above = (len(lines) + 0.5 + 2 * (len(shown) > 1)) * LINE
    below = (4.5 + -(-len(shown[0]) // 2)) * LINE
    height = above + rows * panel[1] + (rows - 1) * UP + below

    figure = Figure(figsize=(width, height))
    figure.suptitle("\n".join(lines), fontsize="medium", y=1 - 0.3 * LINE / height, va="top")
    grid = {"left": LEFT / width, "right": 1 - RIGHT / width, "top": 1 - above / height, "bottom": below / height}
    grid |= {"wspace": ACROSS / panel[0], "hspace": UP / panel[1]}
    panels = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False, gridspec_kw=grid).ravel()
    for index, axes in enumerate(panels):
        axes.set_xlim(0, 1.01 * _end(curves))
        # The lowest panel of each column has the axis.
        if index < len(shown) <= index + columns:
            axes.set_xlabel("samples seen")
            axes.tick_params(labelbottom=True)
        if index >= len(shown):
            axes.set_axis_off()

    if not complete:
        stamp: dict[str, Any] = {"fontsize": 7 * width, "rotation": 25, "alpha": 0.25, "weight": "bold"}
        figure.text(0.5, 0.5, "INCOMPLETE", ha="center", va="center", color=ALARM, zorder=99, **stamp)
    return figure, list(zip(panels, shown, strict=False))


def _plot_accuracy(axes: Axes, curves: Curves, method: int, style: LineStyle, zorder: int) -> None:
    accuracy = 100 * curves.accuracy[method]
    # If only some orderings continue, their mean is that of the slow ones.
    seen = ~np.isnan(accuracy).any(0)
    accuracy, samples_seen = accuracy[:, seen], curves.samples_seen[seen]
    # A single evaluation makes no line.
    marker = style.marker if len(samples_seen) == 1 else ""
    axes.plot(samples_seen, accuracy.mean(axis=0), marker=marker, zorder=zorder, **_look(style))
    if len(curves.orderings) > 1:
        low, high = np.percentile(accuracy, BAND, axis=0)
        axes.fill_between(samples_seen, low, high, color=style.colour, alpha=0.12, linewidth=0)


def _stagger(
    medians: NDArray[np.float64], methods: list[tuple[int, LineStyle]], end: float
) -> Iterator[tuple[int, LineStyle, int]]:
    """Yield the methods with a median, and by how many marks the mark of each is below the threshold."""
    last, below = -np.inf, 0
    for method, style in sorted(methods, key=lambda pair: float(medians[pair[0]])):
        if np.isfinite(medians[method]):
            below = below + 1 if medians[method] - last < CLOSE * end else 0
            last = medians[method]
            yield method, style, below


def _mark(axes: Axes, position: tuple[float, float], style: LineStyle, below: int) -> None:
    figure = axes.get_figure()
    shifted = offset_copy(axes.transData, figure, y=-MARK * below, units="points")  # type: ignore[arg-type]
    look: dict[str, Any] = {"color": style.colour, "markeredgecolor": "white", "markeredgewidth": 0.6}
    axes.plot(*position, style.marker, markersize=MARK, transform=shifted, clip_on=False, zorder=98, **look)


def _explain(figure: Figure, curves: Curves, note: str, ylabel: str, *, marked: bool) -> None:
    """Add the legend below the panels, and the titles above them."""
    sides = figure.subplotpars
    figure.supylabel(ylabel, fontsize="medium", y=(sides.bottom + sides.top) / 2)
    names = shorten(curves.methods)
    medians = [f"median {median:g}" if np.isfinite(median) else "median not reached" for median in _medians(curves)]
    labels = [f"{name} ({median})" for name, median in zip(names, medians, strict=True)]
    styles: tuple[LineStyle, ...] = LINE_STYLES
    if len(names) > MOST_IN_ONE_PANEL:
        for axes, name, median in zip(figure.axes, names[1:], medians[1:], strict=False):
            axes.set_title(f"{name}\n{median}", fontsize="small")
        labels, styles = [labels[0], "method named above the panel"], (BESIDE, ALONE)

    handles = [
        Line2D([], [], marker=style.marker if marked else "", **_look(style))
        for style, _ in zip(styles, labels, strict=False)
    ]
    layout: dict[str, Any] = {"loc": "lower center", "ncols": 2, "handlelength": 3.5, "fontsize": "small"}
    legend = figure.legend(handles, [""] * len(labels), title=note, title_fontsize="small", **layout)
    # `legend` would hide a label that begins with an underscore.
    for text, label in zip(legend.get_texts(), labels, strict=True):
        text.set_text(label)


def _look(style: LineStyle) -> dict[str, Any]:
    return {"color": style.colour, "linestyle": (0, style.dashes or None), "linewidth": 1.6}


def _medians(curves: Curves) -> NDArray[np.float64]:
    medians: NDArray[np.float64] = np.median(curves.samples_to_criterion()[0], axis=1)
    return medians


def _end(curves: Curves) -> int:
    return max(int(curves.samples_seen[-1]), 1)

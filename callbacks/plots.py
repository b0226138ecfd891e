"""The figures of a comparison."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.transforms import offset_copy
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
# Inches: sizes of a single panel and of one of several, margins, gaps between panels, and the height of a text line.
ONE_PANEL, PANEL = (4.6, 3.2), (2.1, 1.4)
LEFT, RIGHT, ACROSS, UP, LINE = 0.75, 0.2, 0.25, 0.5, 0.19
# Columns of up to nine panels and of more.
COLUMNS = (3, 4)
# Medians closer than this share of the axis are marked below each other; sizes of a mark and of notes in points.
CLOSE, MARK, SMALL = 0.02, 7.0, 8.3


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
        for axes, methods in panels:
            ends = {}
            for zorder, (method, style) in enumerate(reversed(methods), 2):
                has_band = method in banded or len(panels) > 1
                ends[method] = _plot_accuracy(axes, curves, method, style, zorder, has_band)
            axes.axhline(threshold, color=GREY, linestyle="--", linewidth=0.8, zorder=1)
            # No accuracy is above 100 %.
            axes.set_ylim(None, min(axes.get_ylim()[1], 101))
            for method, style, below in _stagger(medians, methods, axes.get_xlim()[1]):
                _mark(axes, (medians[method], threshold), style, below)

        orderings = len(curves.orderings)
        shown = f"Mean of {orderings} orderings" if orderings > 1 else "One ordering"
        if orderings > 1:
            few = len(panels) == 1 and len(curves.methods) > len(banded)
            of = " of the baseline and of the best other method" if few else ""
            shown += f"; bands{of}: {BAND[0]}th to {BAND[1]}th percentile"
        note = f"{shown}.\nMarks on the dashed threshold: median samples to criterion"
        note += ", also in brackets." if len(panels) == 1 else "."
        _explain(figure, curves, note, f"Validation {curves.measure.replace('_', ' ')}, %", ends)
    return figure


def plot_criterion_reached(curves: Curves, title: str, complete: bool) -> Figure:
    """Plot the share of orderings that have met the criterion; arguments and panels as for `plot_learning_curves`."""
    with drawing():
        figure, panels = _begin(curves, title, complete)
        samples, _ = curves.samples_to_criterion()
        banded = _banded(curves)
        for axes, methods in panels:
            ends = {}
            for zorder, (method, style) in enumerate(reversed(methods), 2):
                steps = np.sort(samples[method][np.isfinite(samples[method])])
                share = 100 * np.arange(len(steps) + 1) / len(samples[method])
                x, y = np.r_[0, steps, _end(curves)], np.r_[share, share[-1]]
                axes.step(x, y, where="post", zorder=zorder, **_look(style, method in banded or len(panels) > 1))
                ends[method] = (float(x[-1]), float(y[-1]))
            axes.set_ylim(-2, 102)
        orderings = f"{len(curves.orderings)} orderings" if len(curves.orderings) > 1 else "One ordering"
        note = f"{orderings}. " + "In brackets: median samples to criterion." * (len(panels) == 1)
        _explain(figure, curves, note.strip(), "Orderings that met the criterion, %", ends, has_marks=False)
    return figure


def _banded(curves: Curves) -> set[int]:
    """Return the baseline and that other method with the lowest restricted mean, which stand out."""
    means = np.minimum(curves.samples_to_criterion()[0], curves.limit).mean(axis=1)
    return {0, *(1 + np.argsort(means[1:], kind="stable")[:1]).tolist()}


def _begin(curves: Curves, title: str, complete: bool) -> tuple[Figure, list[tuple[Axes, list[tuple[int, LineStyle]]]]]:
    """Return a figure with its panels, each with the methods that it shows and their styles."""
    methods = range(len(curves.methods))
    shown = [list(zip(methods, LINE_STYLES, strict=False))]
    if len(methods) > MOST_IN_ONE_PANEL:
        shown = [[(method, ALONE), (0, BESIDE)] for method in methods[1:]]
    columns = min(len(shown), COLUMNS[len(shown) > COLUMNS[0] ** 2])
    rows = -(-len(shown) // columns)

    # Sizes in inches.
    panel, right = (ONE_PANEL, room_for_labels(_labels(curves))) if len(shown) == 1 else (PANEL, RIGHT)
    width = LEFT + columns * panel[0] + (columns - 1) * ACROSS + right
    title = fold(title, width - LEFT - 0.1)
    above = (title.count("\n") + 1.7 + 2 * (len(shown) > 1)) * LINE
    below = (5 + 1.3 * (len(shown) > 1)) * LINE
    height = above + rows * panel[1] + (rows - 1) * UP + below

    figure = Figure(figsize=(width, height))
    figure.suptitle(title, x=LEFT / width, ha="left", y=1 - 0.3 * LINE / height, va="top")
    grid = {"left": LEFT / width, "right": 1 - right / width, "top": 1 - above / height, "bottom": below / height}
    grid |= {"wspace": ACROSS / panel[0], "hspace": UP / panel[1]}
    panels = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False, gridspec_kw=grid).ravel()
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
        figure.text(0.5, 0.5, "INCOMPLETE", ha="center", va="center", color=ALARM, zorder=99, **stamp)
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


def _explain(
    figure: Figure,
    curves: Curves,
    note: str,
    ylabel: str,
    ends: Mapping[int, tuple[float, float]],
    has_marks: bool = True,
) -> None:
    """Name the lines, beside their ends in a single panel and above several panels, and add the note below.

    Only lines of learning curves have marks.
    """
    width, height = figure.get_size_inches()
    boxes = [axes.get_position() for axes in figure.axes]
    bottom, top = min(box.y0 for box in boxes), max(box.y1 for box in boxes)
    figure.supylabel(ylabel, fontsize="medium", y=(bottom + top) / 2)
    note = fold(note, width - LEFT - 0.1, SMALL)
    below = bottom * height - 2.8 * LINE
    figure.text(LEFT / width, below / height, note, fontsize=SMALL, va="top")

    if len(curves.methods) <= MOST_IN_ONE_PANEL:
        medians, labels = _medians(curves), _labels(curves)
        # From the highest end down; of equal ones the earliest median first.
        order = sorted(ends, key=lambda method: (-ends[method][1], medians[method], method))
        label_lines(
            figure.axes[0],
            [ends[method] for method in order],
            [labels[method] for method in order],
            [LINE_STYLES[method].colour for method in order],
        )
        return

    names = titles(curves.methods)
    for method, axes in zip(range(1, len(names)), figure.axes, strict=False):
        axes.set_title(f"{names[method]}\n{_median_in_words(curves, method)}", fontsize=SMALL)
    handles = [Line2D([], [], marker=style.marker * has_marks, **_look(style, True)) for style in (BESIDE, ALONE)]
    above = (below - (note.count("\n") + 1) * 0.85 * LINE) / height
    layout: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (LEFT / width, above), "borderpad": 0}
    legend = figure.legend(handles, ["", ""], ncols=2, handlelength=3, fontsize=SMALL, **layout)
    # `legend` would hide a label that begins with an underscore.
    for text, label in zip(
        legend.get_texts(), (f"{names[0]}, {_median_in_words(curves, 0)}", "Method named above the panel"), strict=True
    ):
        text.set_text(label)


def _labels(curves: Curves) -> list[str]:
    """Return the names of the methods as people write them, each with its median."""
    return [
        f"{name} ({median:g})" if np.isfinite(median) else f"{name} (not reached)"
        for name, median in zip(titles(curves.methods), _medians(curves), strict=True)
    ]


def _median_in_words(curves: Curves, method: int) -> str:
    median = _medians(curves)[method]
    return f"median {median:g}" if np.isfinite(median) else "median not reached"


def _look(style: LineStyle, stands_out: bool) -> dict[str, Any]:
    dashes = None if stands_out else style.dashes or None
    return {"color": style.colour, "linestyle": (0, dashes), "linewidth": 1.8 if stands_out else 1.0}


def _medians(curves: Curves) -> NDArray[np.float64]:
    medians: NDArray[np.float64] = np.median(curves.samples_to_criterion()[0], axis=1)
    return medians


def _end(curves: Curves) -> int:
    return max(int(curves.samples_seen[-1]), 1)

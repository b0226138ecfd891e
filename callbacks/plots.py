"""The figures of a comparison."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from headstart.callbacks.sample_efficiency import BAND
from headstart.metrics.sample_efficiency.curves import Curves
from headstart.output.figures import ALARM, GREY, LINE_STYLES, LineStyle, drawing, fold, titles

# With more methods than this, each one has a panel of its own, in which the baseline is grey.
MOST_IN_ONE_PANEL = len(LINE_STYLES)
ALONE, BASELINE = LINE_STYLES[-1]._replace(dashes=(), marker="^"), LineStyle(GREY, (), "o")
# Width and height of a single panel in inches, and of one of several.
ONE_PANEL = 6.4, 4.4
PANEL = 2.3, 1.7
MOST_COLUMNS = 4
# Points.
SMALL = 8.3

# The methods of a panel, with their styles.
Shown = list[tuple[int, LineStyle]]


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
    orderings = f"Mean of {len(curves.orderings)} orderings, bands: {BAND[0]}th to {BAND[1]}th percentile"
    note = orderings if len(curves.orderings) > 1 else "One ordering"
    with drawing():
        figure, panels = _begin(curves, title, complete, f"{note}. On the threshold: median samples to criterion.")
        medians, threshold = _medians(curves), 100 * curves.threshold
        for axes, shown in panels:
            for method, style in shown:
                _plot_accuracy(axes, curves, method, style, has_band=_stands_out(curves, method))
                axes.plot(medians[method], threshold, style.marker, color=style.colour, clip_on=False, zorder=9)
            axes.axhline(threshold, color=GREY, linestyle="--", linewidth=0.8, zorder=1)
        # No accuracy is above 100 %.
        axes.set_ylim(None, min(axes.get_ylim()[1], 101))
        figure.supylabel(f"Validation {curves.measure.replace('_', ' ')}, %", fontsize="medium")
    return figure


def plot_criterion_reached(curves: Curves, title: str, complete: bool) -> Figure:
    """Plot the share of orderings that have met the criterion; arguments and panels as for `plot_learning_curves`."""
    orderings = f"{len(curves.orderings)} orderings" if len(curves.orderings) > 1 else "One ordering"
    with drawing():
        figure, panels = _begin(curves, title, complete, f"{orderings}.")
        samples, _ = curves.samples_to_criterion()
        for axes, shown in panels:
            for method, style in shown:
                steps = np.sort(samples[method][np.isfinite(samples[method])])
                share = 100 * np.arange(len(steps) + 1) / len(samples[method])
                x, y = np.r_[0, steps, _end(curves)], np.r_[share, share[-1]]
                axes.step(x, y, where="post", **_look(style, _stands_out(curves, method)))
            axes.set_ylim(-2, 102)
        figure.supylabel("Orderings that met the criterion, %", fontsize="medium")
    return figure


def _begin(curves: Curves, title: str, complete: bool, note: str) -> tuple[Figure, list[tuple[Axes, Shown]]]:
    """Return a figure with its title, note and legend, and its panels with the methods that each shows."""
    names, count = titles(curves.methods), len(curves.methods)
    has_one = count <= MOST_IN_ONE_PANEL
    shown: list[Shown] = [[(0, BASELINE), (method, ALONE)] for method in range(1, count)]
    if has_one:
        shown = [list(enumerate(LINE_STYLES[:count]))]
    columns = min(len(shown), MOST_COLUMNS)
    rows = -(-len(shown) // columns)

    width, height = ONE_PANEL if has_one else (columns * PANEL[0], 1.5 + rows * PANEL[1])
    figure = Figure(figsize=(width, height), layout="constrained")
    figure.suptitle(fold(title, width - 0.2))
    panels = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).ravel().tolist()
    for axes in panels[len(shown) :]:
        axes.remove()
    for method, axes in enumerate(panels[: len(shown)], 1):
        axes.set_xlim(0, 1.01 * _end(curves))
        # The lowest panel of each column has the axis.
        if method > len(shown) - columns:
            axes.set_xlabel("Samples seen")
            axes.tick_params(labelbottom=True)
        if not has_one:
            axes.set_title(f"{names[method]}\n{_median_in_words(curves, method)}", fontsize=SMALL)

    handles = [
        Line2D([], [], marker=style.marker, **_look(style, _stands_out(curves, method)))
        for method, style in (shown[0] if has_one else shown[0][:1])
    ]
    labels = [f"{names[method]}, {_median_in_words(curves, method)}" for method in range(len(handles))]
    layout: dict[str, Any] = {"loc": "outside lower left", "ncols": min(len(handles), 2), "alignment": "left"}
    note = fold(note, width - 0.2, SMALL)
    figure.legend(handles, labels, title=note, fontsize=SMALL, title_fontsize=SMALL, **layout)
    if not complete:
        stamp: dict[str, Any] = {"fontsize": 7 * width, "rotation": 25, "alpha": 0.25, "weight": "bold"}
        figure.text(0.5, 0.5, "INCOMPLETE", ha="center", va="center", color=ALARM, zorder=99, **stamp)
    return figure, list(zip(panels, shown, strict=False))


def _stands_out(curves: Curves, method: int) -> bool:
    """Return whether a method is the baseline, the other one of the lowest restricted mean, or in its own panel."""
    means = np.minimum(curves.samples_to_criterion()[0], curves.limit).mean(axis=1)
    best = 1 + int(np.argmin(means[1:])) if len(means) > 1 else 0
    return method in (0, best) or len(curves.methods) > MOST_IN_ONE_PANEL


def _plot_accuracy(axes: Axes, curves: Curves, method: int, style: LineStyle, has_band: bool) -> None:
    accuracy = 100 * curves.accuracy[method]
    # If only some orderings continue, their mean is that of the slow ones.
    seen = ~np.isnan(accuracy).any(0)
    accuracy, samples_seen = accuracy[:, seen], curves.samples_seen[seen]
    # A single evaluation makes no line.
    marker = style.marker if len(samples_seen) == 1 else ""
    axes.plot(samples_seen, accuracy.mean(axis=0), marker=marker, **_look(style, has_band))
    if has_band and len(curves.orderings) > 1:
        low, high = np.percentile(accuracy, BAND, axis=0)
        axes.fill_between(samples_seen, low, high, color=style.colour, alpha=0.12, linewidth=0)


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

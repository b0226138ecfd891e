"""Tables and figures of an axis: methods by the values of an option."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from headstart.evaluation.leaderboard.frames import Document, pivot
from headstart.output.tables import Cells, Table, format_estimate

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Inches: a panel, and a line of the legend.
PANEL, COLUMNS, LINE = (3.4, 2.6), 3, 0.2


class Point(NamedTuple):
    """A score of a method at a value of the axis.

    Attributes:
        value: The value.
        estimate: The score.
        ends: Ends of its interval; None where there is none.
        group: Letters of the method's groups among the methods at this value.
    """

    value: Any
    estimate: float
    ends: Sequence[float | None]
    group: str


def kinds(axis: Mapping[str, Any]) -> list[tuple[str, int | None]]:
    """Return the scores that an axis has: titles, and the labels of an accuracy, None for samples to criterion."""
    budgets = [
        {each["labels"] for each in score["label_budgets"]}
        for panel in axis["panels"]
        for method in panel["methods"]
        for score in method["scores"]
    ]
    largest = max(set.intersection(*budgets), default=None)
    accuracy = [(f"accuracy at {largest} labels, %", largest)] if largest is not None else []
    return [("samples to criterion, restricted mean", None), *accuracy]


def points(method: Mapping[str, Any], labels: int | None) -> list[Point]:
    """Return the scores of a method in a panel, at the values where it has one.

    Args:
        method: The method as it stands in `leaderboard.json`.
        labels: The label budget of an accuracy, in per cent; None for samples to criterion.
    """
    found = []
    for score in method["scores"]:
        if labels is None:
            found.append(Point(score["value"], score["restricted_mean"], score["ci95"], score["group"]))
        for each in score["label_budgets"]:
            if each["labels"] == labels:
                ends = [None if end is None else 100 * end for end in each["ci95"]]
                found.append(Point(score["value"], 100 * each["accuracy"], ends, each["group"]))
    return found


def axis_rows(axis: Document, panel: Document, labels: int | None) -> Cells:
    """Return the table of a panel: methods by values, each score with its interval and the letters of its groups."""
    lines = [
        (method["name"], f"{axis['key']} {each.value}", _cell(each))
        for method in panel["methods"]
        for each in points(method, labels)
    ]
    return pivot("method", lines, [f"{axis['key']} {value}" for value in panel["values"]])


def _cell(point: Point) -> str:
    return f"{format_estimate(point.estimate, point.ends, '.1f')} {point.group}".rstrip()


def axis_tables(axis: Document) -> Iterator[Table]:
    """Yield the tables of an axis."""
    for title, labels in kinds(axis):
        for panel in axis["panels"]:
            notes = [*(f"WARNING: {each}" for each in panel["warnings"]), *panel["remarks"]]
            yield Table(f"{panel['name']}: {title}", axis_rows(axis, panel, labels), notes=notes)


def plot_axis(axis: Mapping[str, Any], title: str, labels: int | None) -> "Figure":
    """Plot a score by the values of an axis: a panel for each setting, a line with intervals for each method.

    Args:
        axis: `axis` as it stands in `leaderboard.json`.
        title: Title of the score.
        labels: As for `points`.
    """
    # matplotlib is slow to import.
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    from headstart.output.figures import as_written, drawing, fold, setting_in_words, titles

    panels = axis["panels"]
    names = list(dict.fromkeys(method["name"] for panel in panels for method in panel["methods"]))
    columns = min(len(panels), COLUMNS)
    rows, legend = -(-len(panels) // columns), -(-len(names) // columns) * LINE + 0.3
    height = rows * PANEL[1] + legend
    with drawing():
        above_legend = ConstrainedLayoutEngine(rect=(0, legend / height, 1, 1 - legend / height))
        figure = Figure(figsize=(columns * PANEL[0], height), layout=above_legend)
        every = figure.subplots(rows, columns, squeeze=False).ravel()
        for axes, panel in zip(every, panels, strict=False):
            _plot_panel(axes, panel, names, labels)
            axes.set_title(fold(setting_in_words(panel["name"]), PANEL[0] - 0.8))
            axes.set_xlabel(as_written(axis["key"]))
        for axes in every[::columns]:
            axes.set_ylabel(fold(title[0].upper() + title[1:], PANEL[1] - 0.6))
        for axes in every[len(panels) :]:
            axes.set_axis_off()

        handles, texts = every[0].get_legend_handles_labels()
        figure.legend(handles, titles(texts), loc="lower center", ncols=columns, fontsize="small")
    return figure


def _plot_panel(axes: "Axes", panel: Mapping[str, Any], names: Sequence[str], labels: int | None) -> None:
    """Plot a line for each method; those of one colour differ in their dashes."""
    from headstart.output.figures import LINE_STYLES

    positions = {str(value): index for index, value in enumerate(panel["values"])}
    methods = {method["name"]: points(method, labels) for method in panel["methods"]}
    for index, name in enumerate(names):
        style, other = (LINE_STYLES[each % len(LINE_STYLES)] for each in (index, index + index // len(LINE_STYLES)))
        found = methods.get(name, [])
        # Beside each other, so that intervals do not hide each other.
        shift = 0.4 * ((index + 0.5) / len(names) - 0.5)
        axes.errorbar(
            [positions[str(each.value)] + shift for each in found],
            [each.estimate for each in found],
            yerr=[[_reach(each, side) for each in found] for side in (0, 1)],
            label=name,
            color=style.colour,
            linestyle=(0, other.dashes or None),
            marker=style.marker,
            markersize=3,
            linewidth=1,
        )
    axes.set_xticks(range(len(positions)), list(positions))


def _reach(point: Point, side: int) -> float:
    """Return how far the interval reaches below the estimate (side 0) or above it (side 1)."""
    end = point.ends[side]
    return 0.0 if end is None else abs(end - point.estimate)

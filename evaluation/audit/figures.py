"""The figures of an audit: how well rankers predict performance, also given the mean rank."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from headstart.evaluation.audit.rankers import MEAN_RANK
from headstart.evaluation.audit.tables import STATIC, ranker_titles
from headstart.metrics.ranking.ranking_measures import EVALUATION_MEASURES
from headstart.output.figures import ALARM, GREY, GRID, INK, drawing, shorten, width_of_names

# Inches of a line, of a panel, and of the space around them.
LINE, PANEL, AROUND = 0.3, 2.4, 1.1
Document = Mapping[str, Any]
Row = tuple[str, Document]


@drawing()
def plot_audit(document: Document) -> dict[str, Figure]:
    """Plot how well every ranker predicts performance, and the same given the mean rank.

    Args:
        document: The content of `audit.json`.

    Returns:
        `rankers` and, if there is another ranker than the mean rank, `beyond_mean_rank`.
    """
    figures = {"rankers": _plot_rankers(document)}
    if len(document["rankers"]) > 1:
        figures["beyond_mean_rank"] = _plot_beyond(document)
    return figures


def _plot_rankers(document: Document) -> Figure:
    """Plot a panel for each measure and a line for each ranker."""
    titles = _titles(document)
    panels = {
        _begin_large(measure.title): [
            (titles[ranker], summaries[name]) for ranker, summaries in document["rankers"].items()
        ]
        for name, measure in EVALUATION_MEASURES.items()
    }
    colours = _colours(document["rankers"])
    about = "How well rankers predict performance" + "; red ones know nothing of the target" * (INK in colours)
    return _plot_panels(panels, about, colours)


def _plot_beyond(document: Document) -> Figure:
    """Plot the correlation of every ranker with performance, and the same given the mean rank."""
    titles = _titles(document)
    others = [name for name in document["rankers"] if name != MEAN_RANK]
    panels = {
        "Kendall": [(titles[name], document["rankers"][name]["kendall"]) for name in others],
        "Kendall given the mean rank": [(titles[name], document["kendall_given_mean_rank"][name]) for name in others],
    }
    about = "What rankers say beyond the mean rank on the other targets"
    return _plot_panels(panels, about, _colours(others))


def _titles(document: Document) -> dict[str, str]:
    titles = ranker_titles(document)
    return dict(zip(titles, map(_begin_large, shorten(list(titles.values()))), strict=True))


def _begin_large(text: str) -> str:
    return text[:1].upper() + text[1:]


def _colours(rankers: Iterable[str]) -> list[str]:
    return [ALARM if name in STATIC else INK for name in rankers]


def _plot_panels(panels: Mapping[str, Sequence[Row]], about: str, colours: Sequence[str]) -> Figure:
    """Plot panels side by side that have the same lines, in the colours of these."""
    count = max(map(len, panels.values()))
    figure = Figure(figsize=(0.6 + PANEL * len(panels), AROUND + 0.3 + LINE * count))
    figure.set_layout_engine("constrained", wspace=0.05)
    grid = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]

    for axes, (title, rows) in zip(grid, panels.items(), strict=True):
        for line, (_, summary) in enumerate(rows):
            _plot_line(axes, line, summary, colours[line])
        axes.set_title(title)
        axes.grid(axis="x", color=GRID, linewidth=0.8)
        axes.set_axisbelow(True)
        axes.tick_params(axis="y", length=0)
        axes.locator_params(axis="x", nbins=4)

    grid[0].set_yticks(range(count), [name for name, _ in next(iter(panels.values()))])
    grid[0].set_ylim(count - 0.5, -0.5)
    figure.set_figwidth(figure.get_figwidth() + width_of_names(grid[0]))
    figure.suptitle(about, x=0.01, ha="left", fontsize=11)
    figure.supxlabel("Grey: targets; bar: mean and its 95 % interval over targets", fontsize=8, color=INK)
    return figure


def _plot_line(axes: Axes, line: int, summary: Document, colour: str) -> None:
    values = [value for value in summary["per_target"].values() if value is not None]
    axes.plot(values, [line] * len(values), "o", color=GREY, alpha=0.45, markersize=4, markeredgewidth=0)
    if summary["ci95"][0] is not None:
        axes.plot(summary["ci95"], [line, line], color=colour, linewidth=2.2, solid_capstyle="butt")
    if summary["mean"] is not None:
        axes.plot([summary["mean"]], [line], "D", color=colour, markersize=5)

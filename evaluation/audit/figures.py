"""The figures of an audit: how well rankers do, what is left given the mean rank, how ranks spread over targets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from headstart.evaluation.audit.rankers import MEAN_RANK
from headstart.evaluation.audit.report import STATIC, ranker_titles
from headstart.metrics.ranking.ranking_measures import EVALUATION_MEASURES
from headstart.output.figures import ALARM, GREY, INK, PALE, drawing, shorten

# Inches of a line, of a panel, and of what stands around them.
LINE, PANEL, AROUND = 0.3, 2.4, 1.1
MOST_SOURCES = 60

Document = Mapping[str, Any]
Row = tuple[str, Document]


@drawing()
def plot_audit(document: Document) -> dict[str, Figure]:
    """Plot how well every ranker foretells performance, what is left given the mean rank, and the ranks of the sources.

    Args:
        document: The content of `audit.json`.

    Returns:
        `rankers`, `ranks` and, if there is another ranker than the mean rank, `beyond_mean_rank`.
    """
    figures = {"rankers": _draw_rankers(document), "ranks": _draw_ranks(document["ranks"]["sources"])}
    if len(document["rankers"]) > 1:
        figures["beyond_mean_rank"] = _draw_beyond(document)
    return figures


def _draw_rankers(document: Document) -> Figure:
    """Draw a panel for each measure and a line for each ranker."""
    titles = _titles(document)
    panels = {
        measure.title: [(titles[ranker], found[name]) for ranker, found in document["rankers"].items()]
        for name, measure in EVALUATION_MEASURES.items()
    }
    about = "How well rankers foretell performance; red ones know nothing of the target"
    return _draw_panels(panels, about, _colours(document["rankers"]))


def _draw_beyond(document: Document) -> Figure:
    """Draw the correlation of every ranker with performance, beside what is left of it given the mean rank."""
    titles = _titles(document)
    others = [name for name in document["rankers"] if name != MEAN_RANK]
    panels = {
        "Kendall": [(titles[name], document["rankers"][name]["kendall"]) for name in others],
        "Kendall given the mean rank": [(titles[name], document["kendall_given_mean_rank"][name]) for name in others],
    }
    return _draw_panels(panels, "What rankers say beyond the mean rank on the other targets", _colours(others))


def _titles(document: Document) -> dict[str, str]:
    titles = ranker_titles(document)
    return dict(zip(titles, shorten(list(titles.values())), strict=True))


def _colours(rankers: Iterable[str]) -> list[str]:
    return [ALARM if name in STATIC else INK for name in rankers]


def _draw_panels(panels: Mapping[str, Sequence[Row]], about: str, colours: Sequence[str]) -> Figure:
    """Draw panels side by side whose lines are the same, with the colours of these."""
    count = max(map(len, panels.values()))
    figure = Figure(figsize=(2 + PANEL * len(panels), AROUND + 0.3 + LINE * count))
    figure.set_layout_engine("constrained", wspace=0.05)
    grid = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    for axes, (title, rows) in zip(grid, panels.items(), strict=True):
        for line, (_, found) in enumerate(rows):
            _draw_line(axes, line, found, colours[line])
        axes.set_title(title)
        axes.grid(axis="x", color="#e6e6e6", linewidth=0.8)
        axes.set_axisbelow(True)
        axes.tick_params(axis="y", length=0)
        axes.locator_params(axis="x", nbins=5)
    grid[0].set_yticks(range(count), [name for name, _ in next(iter(panels.values()))])
    grid[0].set_ylim(count - 0.5, -0.5)
    figure.suptitle(about, x=0.01, ha="left", fontsize=11)
    figure.supxlabel("grey: targets; bar: mean and its 95 % t interval over targets", fontsize=8, color=INK)
    return figure


def _draw_line(axes: Axes, line: int, found: Document, colour: str) -> None:
    values = [value for value in found["per_target"].values() if value is not None]
    axes.plot(values, [line] * len(values), "o", color=GREY, alpha=0.45, markersize=4, markeredgewidth=0)
    if found["mean"] is None:
        return
    if found["ci95"][0] is not None:
        axes.plot(found["ci95"], [line, line], color=colour, linewidth=2.2, solid_capstyle="butt")
    axes.plot([found["mean"]], [line], "D", color=colour, markersize=5)


def _draw_ranks(sources: Document) -> Figure:
    """Draw a line for each source, from its best rank to its worst, by the mean rank."""
    ordered = sorted(sources.items(), key=lambda item: item[1]["mean"])
    shown = ordered[:MOST_SOURCES]
    figure = Figure(figsize=(7.5, AROUND + LINE * len(shown)), layout="constrained")
    axes = figure.subplots()
    for line, (_, found) in enumerate(shown):
        ranks = [rank for rank in found["per_target"].values() if rank is not None]
        axes.plot([found["best"], found["worst"]], [line, line], color=PALE, linewidth=1)
        axes.plot(ranks, [line] * len(ranks), "o", color=GREY, alpha=0.45, markersize=6, markeredgewidth=0)
        axes.plot([found["mean"]], [line], "D", color=INK, markersize=5)
    axes.set_yticks(range(len(shown)), shorten([name for name, _ in shown]))
    axes.set_ylim(len(shown) - 0.5, -0.5)
    axes.set_xlabel("rank by performance; grey: targets, black: mean")
    axes.tick_params(axis="y", length=0)
    more = f", the first {len(shown)} of {len(ordered)}" if len(ordered) > len(shown) else ""
    axes.set_title(f"Ranks of the sources over the targets{more}", loc="left")
    return figure

"""The figures of an audit: how well rankers do, also given the mean rank, and how ranks spread over targets."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from headstart.evaluation.audit.fidelity import FIFTHS, KINDS
from headstart.evaluation.audit.hole_effects import kept_in_words
from headstart.evaluation.audit.rankers import MEAN_RANK
from headstart.evaluation.audit.tables import STATIC, ranker_titles
from headstart.metrics.ranking.ranking_measures import EVALUATION_MEASURES
from headstart.output.figures import ALARM, GREY, GRID, INK, LINE_STYLES, PALE, drawing, fold, shorten, width_of_names

# Inches of a line, of a panel, and of the space around them.
LINE, PANEL, AROUND = 0.3, 2.4, 1.1
MOST_SOURCES = 60
# Inches of a panel of fidelity, and panels side by side.
FIDELITY_PANEL, ACROSS = 2.3, 4
FIFTH_LABELS = ["closest", "", "", "", "farthest"]

Document = Mapping[str, Any]
Row = tuple[str, Document]


@drawing()
def plot_audit(document: Document) -> dict[str, Figure]:
    """Plot how well every ranker predicts performance, the same given the mean rank, and the ranks of the sources.

    Args:
        document: The content of `audit.json`.

    Returns:
        `rankers`, `ranks`, `fidelity` and, if there is another ranker than the mean rank, `beyond_mean_rank`.
    """
    figures = {"rankers": _plot_rankers(document), "ranks": _plot_ranks(document)}
    figures["fidelity"] = plot_fidelity(document["fidelity"], _titles(document), kept_in_words(document))
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
    return _plot_panels(panels, about, colours, kept_in_words(document))


def _plot_beyond(document: Document) -> Figure:
    """Plot the correlation of every ranker with performance, and the same given the mean rank."""
    titles = _titles(document)
    others = [name for name in document["rankers"] if name != MEAN_RANK]
    panels = {
        "Kendall": [(titles[name], document["rankers"][name]["kendall"]) for name in others],
        "Kendall given the mean rank": [(titles[name], document["kendall_given_mean_rank"][name]) for name in others],
    }
    about = "What rankers say beyond the mean rank on the other targets"
    return _plot_panels(panels, about, _colours(others), kept_in_words(document))


def _titles(document: Document) -> dict[str, str]:
    titles = ranker_titles(document)
    return dict(zip(titles, map(_begin_large, shorten(list(titles.values()))), strict=True))


def _begin_large(text: str) -> str:
    return text[:1].upper() + text[1:]


def _colours(rankers: Iterable[str]) -> list[str]:
    return [ALARM if name in STATIC else INK for name in rankers]


def _plot_panels(panels: Mapping[str, Sequence[Row]], about: str, colours: Sequence[str], note: str) -> Figure:
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
    legend = f"Grey: targets; bar: mean and its 95 % interval over targets{note}"
    figure.supxlabel(legend, fontsize=8, color=INK)
    return figure


def _plot_line(axes: Axes, line: int, summary: Document, colour: str) -> None:
    values = [value for value in summary["per_target"].values() if value is not None]
    axes.plot(values, [line] * len(values), "o", color=GREY, alpha=0.45, markersize=4, markeredgewidth=0)
    if summary["ci95"][0] is not None:
        axes.plot(summary["ci95"], [line, line], color=colour, linewidth=2.2, solid_capstyle="butt")
    if summary["mean"] is not None:
        axes.plot([summary["mean"]], [line], "D", color=colour, markersize=5)


def _plot_ranks(document: Document) -> Figure:
    """Plot a line for each source, from its best rank to its worst, by the mean rank."""
    ordered = sorted(document["ranks"]["sources"].items(), key=lambda item: item[1]["mean"])
    shown = ordered[:MOST_SOURCES]
    figure = Figure(figsize=(6.5, AROUND + LINE * len(shown)), layout="constrained")
    axes = figure.subplots()
    for line, (_, source) in enumerate(shown):
        ranks = [rank for rank in source["per_target"].values() if rank is not None]
        axes.plot([source["best"], source["worst"]], [line, line], color=PALE, linewidth=1)
        axes.plot(ranks, [line] * len(ranks), "o", color=GREY, alpha=0.45, markersize=6, markeredgewidth=0)
        axes.plot([source["mean"]], [line], "D", color=INK, markersize=5)

    axes.set_yticks(range(len(shown)), shorten([name for name, _ in shown]))
    axes.set_ylim(len(shown) - 0.5, -0.5)
    figure.set_figwidth(figure.get_figwidth() + width_of_names(axes))
    axes.set_xlabel(f"Rank by performance; grey: targets, black: mean{kept_in_words(document)}")
    axes.tick_params(axis="y", length=0)
    axes.xaxis.set_major_locator(MaxNLocator("auto", integer=True))
    more = f", the first {len(shown)} of {len(ordered)}" if len(ordered) > len(shown) else ""
    axes.set_title(f"Ranks of the sources over the targets{more}", loc="left")
    return figure


def plot_fidelity(fidelity: Mapping[str, Any], titles: Mapping[str, str], note: str) -> Figure:
    """Plot a panel for each ranker, with a line for the difference in performance and one for that in score.

    Args:
        fidelity: The part `fidelity` of `audit.json`.
        titles: Titles of the rankers by their names, as the figure has them.
        note: A line that the legend ends with; it may be empty.
    """
    names = list(fidelity[KINDS["performance"]])
    across = min(len(names), ACROSS)
    down = math.ceil(len(names) / across)
    figure = Figure(figsize=(max(across, 2) * FIDELITY_PANEL + 0.4, down * FIDELITY_PANEL + 1), layout="constrained")
    grid = figure.subplots(down, across, sharex=True, sharey=True, squeeze=False)

    for axes, name in zip(grid.flat, names, strict=False):
        axes.axhline(0.5, color=PALE, linewidth=1, linestyle=(0, (2, 2)))
        for (difference, kind), style, shift in zip(KINDS.items(), LINE_STYLES, (-0.08, 0.08), strict=False):
            fifths = fidelity[kind][name]
            across_fifths = np.arange(FIFTHS) + shift
            means = [np.nan if each["mean"] is None else each["mean"] for each in fifths]
            drawn: dict[str, Any] = {"color": style.colour, "marker": style.marker, "markersize": 4, "linewidth": 1.5}
            axes.plot(across_fifths, means, label=f"by difference in {difference}", **drawn)
            for position, each in zip(across_fifths, fifths, strict=True):
                if each["ci95"][0] is not None:
                    axes.plot([position] * 2, each["ci95"], color=style.colour, linewidth=1)
        axes.set_title(fold(titles[name], 0.75 * FIDELITY_PANEL, 9), fontsize=9)
        axes.set_xticks(range(FIFTHS), FIFTH_LABELS)
        axes.tick_params(labelsize=8, length=2)
    for axes in grid.flat[len(names) :]:
        axes.set_axis_off()

    # Intervals of few targets reach below 0.
    grid[0, 0].set(xlim=(-0.5, FIFTHS - 0.5), ylim=(max(grid[0, 0].get_ylim()[0], -0.02), 1.02))
    figure.suptitle("Share of pairs of sources ordered correctly", x=0.01, ha="left", fontsize=11)
    lines, labels = grid[0, 0].get_legend_handles_labels()
    about = f"Fifths of the pairs of a target; bar: 95 % interval over targets{note}"
    figure.legend(lines, labels, title=about, loc="outside lower left", title_fontsize=8, fontsize=8, alignment="left")
    return figure

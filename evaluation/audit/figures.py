"""The figure of an audit: how well rankers predict performance."""

from collections.abc import Mapping
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from headstart.evaluation.audit.tables import STATIC, ranker_titles
from headstart.metrics.ranking.ranking_measures import EVALUATION_MEASURES
from headstart.output.figures import ALARM, GREY, GRID, INK, drawing, shorten, width_of_names

# Inches of a line, of a panel, and of the space around them.
LINE, PANEL, AROUND = 0.3, 2.4, 1.1
Document = Mapping[str, Any]


@drawing()
def plot_audit(document: Document) -> dict[str, Figure]:
    """Plot `rankers`, how well every ranker predicts performance: a panel for each measure, a line for each ranker.

    Args:
        document: The content of `audit.json`.
    """
    rankers, count = document["rankers"], len(document["rankers"])
    figure = Figure(figsize=(0.6 + PANEL * len(EVALUATION_MEASURES), AROUND + 0.3 + LINE * count))
    figure.set_layout_engine("constrained", wspace=0.05)
    panels = figure.subplots(1, len(EVALUATION_MEASURES), sharey=True)
    colours = [ALARM if name in STATIC else INK for name in rankers]

    for axes, (name, measure) in zip(panels, EVALUATION_MEASURES.items(), strict=True):
        for line, (summaries, colour) in enumerate(zip(rankers.values(), colours, strict=True)):
            plot_summary(axes, line, summaries[name], colour)
        axes.set_title(_begin_large(measure.title))
        axes.grid(axis="x", color=GRID, linewidth=0.8)
        axes.set_axisbelow(True)
        axes.tick_params(axis="y", length=0)
        axes.locator_params(axis="x", nbins=4)

    titles = shorten(list(ranker_titles(document).values()))
    panels[0].set_yticks(range(count), list(map(_begin_large, titles)))
    panels[0].set_ylim(count - 0.5, -0.5)
    figure.set_figwidth(figure.get_figwidth() + width_of_names(panels[0]))
    about = "How well rankers predict performance" + "; red ones know nothing of the target" * (INK in colours)
    figure.suptitle(about, x=0.01, ha="left", fontsize=11)
    figure.supxlabel("Grey: targets; bar: mean and its 95 % interval over targets", fontsize=8, color=INK)
    return {"rankers": figure}


def _begin_large(text: str) -> str:
    return text[:1].upper() + text[1:]


def plot_summary(axes: Axes, line: int, summary: Document, colour: str) -> None:
    """Plot a line: grey points for the targets, a bar for the interval and a diamond for the mean.

    Args:
        axes: Where it is plotted.
        line: Its position.
        summary: As `over_targets` describes values.
        colour: Colour of the interval and the mean.
    """
    values = [value for value in summary["per_target"].values() if value is not None]
    axes.plot(values, [line] * len(values), "o", color=GREY, alpha=0.45, markersize=4, markeredgewidth=0)
    if summary["ci95"][0] is not None:
        axes.plot(summary["ci95"], [line, line], color=colour, linewidth=2.2, solid_capstyle="butt")
    if summary["mean"] is not None:
        axes.plot([summary["mean"]], [line], "D", color=colour, markersize=5)

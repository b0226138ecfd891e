"""The figure of fidelity: the share of pairs that each ranker orders rightly, the more the pairs differ."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from headstart.evaluation.audit.fidelity import FIFTHS, KINDS
from headstart.output.figures import LINE_STYLES, PALE, fold

# Inches of a panel, and panels side by side.
PANEL, ACROSS = 2.3, 4
LABELS = ["closest", "", "", "", "farthest"]


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
    figure = Figure(figsize=(max(across, 2) * PANEL + 0.4, down * PANEL + 1), layout="constrained")
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
        axes.set_title(fold(titles[name], 0.75 * PANEL, 9), fontsize=9)
        axes.set_xticks(range(FIFTHS), LABELS)
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

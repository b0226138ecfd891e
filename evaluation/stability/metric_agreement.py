"""How alike metrics rank the sources: the correlation of their scores, where there are too many pairs to plot each."""

import numpy as np
from matplotlib.figure import Figure

from headstart.contract.tables.table import TransferTable
from headstart.evaluation.estimates import mean_over_targets
from headstart.metrics.arrays import Floats
from headstart.output.figures import INK, shorten, width_of_names

# Inches of a cell.
CELL = 0.45
# Correlations further from 0 are dark cells, with white numbers.
DARK = 0.6


def score_correlations(table: TransferTable) -> Floats:
    """Correlate the scores of the sources by two metrics, by Spearman's rho, as the mean over targets.

    Args:
        table: Scores and performances.

    Returns:
        Correlations `[m, m]`. Targets on which a metric gives all sources the same score do not count for it; NaN if no
        target counts.
    """
    from scipy import stats

    per_target = []
    for scores, known in zip(table.scores.transpose(2, 0, 1), table.known.T, strict=True):
        ranks = stats.rankdata(scores[:, known], axis=1)
        centred = ranks - ranks.mean(axis=1, keepdims=True)
        norms = np.sqrt((centred**2).sum(axis=1, keepdims=True))
        units = np.divide(centred, norms, out=np.full_like(centred, np.nan), where=norms > 0)
        per_target.append(units @ units.T)
    return mean_over_targets(np.stack(per_target, axis=-1))


def plot_agreement(table: TransferTable) -> Figure:
    """Plot a cell for each pair of metrics, with the correlation of their scores."""
    correlations, names = score_correlations(table), shorten(table.titles)
    figure = Figure(figsize=(1, 1), layout="constrained")
    axes = figure.subplots()
    axes.imshow(correlations, cmap="RdBu_r", vmin=-1, vmax=1)
    for (row, column), value in np.ndenumerate(correlations):
        text = "–" if np.isnan(value) else f"{value:z.2f}".replace("-", "−")
        colour = "white" if abs(value) > DARK else INK
        axes.text(column, row, text, color=colour, fontsize=8, ha="center", va="center")

    axes.set_xticks(range(len(names)), names, rotation=90, fontsize=8)
    axes.set_yticks(range(len(names)), names, fontsize=8)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    title = "Do metrics rank the sources alike?\nMean Spearman correlation over targets"
    axes.set_title(title, loc="left", fontsize=10)

    side = CELL * len(names) + width_of_names(axes)
    figure.set_size_inches(side + 0.4, side + 0.9)
    return figure

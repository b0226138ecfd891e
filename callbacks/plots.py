"""The pictures of a comparison."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from callbacks.sample_efficiency import BAND
from metrics.sample_efficiency.curves import Curves


def plot_learning_curves(curves: Curves, title: str, path: Path) -> None:
    """Plot accuracy against samples seen: mean, band over orderings, threshold, median samples to criterion.

    Args:
        curves: The traces.
        title: Title of the picture.
        path: PNG file to write.
    """
    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.subplots()
    medians = np.median(curves.samples_to_criterion()[0], axis=1)
    for i, (name, accuracy) in enumerate(zip(curves.methods, 100 * curves.accuracy, strict=True)):
        color = f"C{i}"
        label = f"{name} (median {medians[i]:g})" if np.isfinite(medians[i]) else f"{name} (median not reached)"
        axes.plot(curves.samples_seen, accuracy.mean(0), color=color, label=label, zorder=3)
        if len(curves.orderings) > 1:
            low, high = np.percentile(accuracy, BAND, axis=0)
            axes.fill_between(curves.samples_seen, low, high, color=color, alpha=0.12, linewidth=0)
        if np.isfinite(medians[i]):
            axes.axvline(medians[i], color=color, linestyle=":", linewidth=1)
    axes.axhline(100 * curves.threshold, color="black", linestyle="--", linewidth=1)
    axes.set(xlabel="samples seen", ylabel="validation accuracy, %", title=title, ylim=(None, 101))
    axes.margins(x=0.01)
    legend_title = f"mean and {BAND[0]}th to {BAND[1]}th percentile over {len(curves.orderings)} orderings"
    axes.legend(title=legend_title, fontsize="small", title_fontsize="small", loc="lower right")
    _write(figure, path)


def plot_criterion_reached(curves: Curves, title: str, path: Path) -> None:
    """Plot the share of orderings that have met the criterion against samples seen.

    Args:
        curves: The traces.
        title: Title of the picture.
        path: PNG file to write.
    """
    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.subplots()
    end = max(curves.samples_seen[-1], 1)
    for name, samples in zip(curves.methods, curves.samples_to_criterion()[0], strict=True):
        steps = np.sort(samples[np.isfinite(samples)])
        share = 100 * np.arange(len(steps) + 1) / len(samples)
        axes.step(np.r_[0, steps, end], np.r_[share, share[-1]], where="post", label=name)
    axes.set(xlabel="samples seen", ylabel="orderings that met the criterion, %", title=title, ylim=(-2, 102))
    axes.margins(x=0.01)
    axes.legend(fontsize="small", loc="lower right")
    _write(figure, path)


def _write(figure: Figure, path: Path) -> None:
    FigureCanvasAgg(figure)
    figure.savefig(path, dpi=120, format="png")

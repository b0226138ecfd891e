"""The heatmap of a similarity matrix, in the order of a hierarchical clustering."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy.cluster.hierarchy import dendrogram, leaves_list, linkage
from scipy.spatial.distance import squareform

from headstart.output.figures import INK, drawing, fold, shorten

MOST_WITH_VALUES = 15

# Inches. The cell shrinks as models are added, from one that holds a value to one that still takes a legible name;
# beyond 200 models the side of the matrix is bounded, and with it the memory.
LARGEST_CELL, SMALLEST_CELL, SMALLEST_SIDE, LARGEST_SIDE = 0.6, 0.18, 2.6, 36.0
BAR_WIDTH, LONGEST_BAR, LABEL, GAP, MARGIN = 0.16, 4.0, 0.25, 0.12, 0.2


@drawing()
def plot_heatmap(names: Sequence[str], matrix: NDArray[np.floating[Any]], title: str, measure: str = "CKA") -> Figure:
    """Plot a similarity matrix in the order of a hierarchical clustering, with the dendrogram above it.

    The colours run from 0 to 1, and from the smallest value where that is negative. Names longer than 32 characters are
    shortened in the middle, as far as they stay different. Up to 15 models, the values are written into the cells.

    Args:
        names: Names of the models, m of them.
        matrix: Similarities `[m, m]`, symmetric; m is at least 2.
        title: Title of the figure.
        measure: Label of the scales.
    """
    merges = cluster(matrix)
    order = leaves_list(merges)
    count = len(names)
    side = min(max(_cell(count) * count, SMALLEST_SIDE), LARGEST_SIDE)
    figure = Figure(figsize=(side, side))

    heat = _add_axes(figure, 0, 0, side, side)
    labels = shorten(names)
    image = _plot_matrix(heat, [labels[index] for index in order], matrix[np.ix_(order, order)], 72 * side / count)

    tree = _add_axes(figure, 0, side + GAP / 2, side, 0.7 + 0.07 * side)
    _plot_dendrogram(tree, merges, measure)
    # The title is as wide as the matrix and the bar with its labels.
    tree.set_title(fold(title, side + GAP + BAR_WIDTH + LABEL), loc="left", fontsize=10, color=INK, pad=10)

    bar_height = min(side, LONGEST_BAR)
    bar_axes = _add_axes(figure, side + GAP, side - bar_height, BAR_WIDTH, bar_height)
    bar = figure.colorbar(image, cax=bar_axes)
    bar.ax.set_title(measure[:1].upper() + measure[1:], loc="left", fontsize=9, color=INK)
    bar.ax.tick_params(labelsize=8, length=2, color=INK, labelcolor=INK)
    bar.outline.set_visible(False)

    _fit(figure)
    return figure


def _fit(figure: Figure) -> None:
    """Make the figure as large as what is drawn, which begins beyond it, and a margin."""
    size = figure.get_size_inches()
    box = figure.get_tightbbox()
    across, up = np.add(box.size, 2 * MARGIN)
    positions = [axes.get_position() for axes in figure.axes]
    figure.set_size_inches(across, up)
    for axes, position in zip(figure.axes, positions, strict=True):
        left, bottom = np.multiply(position.min, size) - np.asarray(box.min) + MARGIN
        width, height = np.multiply(position.size, size)
        axes.set_position((left / across, bottom / up, width / across, height / up))


def cluster(matrix: NDArray[np.floating[Any]]) -> NDArray[np.floating[Any]]:
    """Cluster models by average linkage on the distance 1 - similarity, clipped at 0.

    Args:
        matrix: Similarities `[m, m]`, symmetric; m is at least 2.

    Returns:
        SciPy's merges `[m - 1, 4]`, ordered so that similar leaves are next to each other.
    """
    distances = np.clip(1 - (matrix + matrix.T) / 2, 0, None)
    np.fill_diagonal(distances, 0)
    merges: NDArray[np.floating[Any]] = linkage(squareform(distances, checks=False), "average", optimal_ordering=True)
    return merges


def _cell(count: int) -> float:
    """Return the side of a cell in inches: as large as a written value needs, then smaller with more models."""
    if count <= MOST_WITH_VALUES:
        return LARGEST_CELL - 0.01 * count
    return max(SMALLEST_CELL, 0.45 * MOST_WITH_VALUES / count)


def _add_axes(figure: Figure, left: float, bottom: float, width: float, height: float) -> Axes:
    """Add axes by positions in inches, also beyond the figure, which is saved with a tight box."""
    across, up = figure.get_size_inches()
    return figure.add_axes((left / across, bottom / up, width / across, height / up))


def _plot_matrix(axes: Axes, names: Sequence[str], matrix: NDArray[np.floating[Any]], points: float) -> Any:  # noqa: ANN401 - an image of matplotlib
    """Plot the cells, whose side is `points`, and the names."""
    lowest = min(0.0, float(matrix.min()))
    image = axes.imshow(matrix, cmap="viridis", vmin=lowest, vmax=1, aspect="auto", interpolation="nearest")
    ticks = np.arange(len(names))
    text: dict[str, Any] = {"fontsize": min(10.0, 0.72 * points), "color": INK}
    few = len(names) <= MOST_WITH_VALUES
    slant: dict[str, Any] = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"} if few else {"rotation": 90}
    axes.set_xticks(ticks, names, **slant, **text)
    axes.set_yticks(ticks, names, **text)
    axes.tick_params(length=0, pad=4)
    axes.spines[:].set_visible(False)
    if few:
        _write_values(axes, matrix, image)
    return image


def _write_values(axes: Axes, matrix: NDArray[np.floating[Any]], image: Any) -> None:  # noqa: ANN401 - as above
    """Write every value into its cell, dark on light and light on dark, with white lines between the cells."""
    between = np.arange(1, len(matrix)) - 0.5
    axes.set_xticks(between, minor=True)
    axes.set_yticks(between, minor=True)
    axes.tick_params(which="minor", length=0)
    axes.grid(which="minor", color="white", linewidth=1)
    for (row, column), value in np.ndenumerate(matrix):
        red, green, blue = image.to_rgba(value)[:3]
        light = 0.299 * red + 0.587 * green + 0.114 * blue > 0.5  # luma, ITU-R BT.601
        color = INK if light else "white"
        written = axes.text(
            column, row, f"{value:z.2f}".replace("-", "−"), color=color, fontsize=9, ha="center", va="center"
        )
        # The text lies within its cell, so the tight box need not measure it.
        written.set_in_layout(False)


def _plot_dendrogram(axes: Axes, merges: NDArray[np.floating[Any]], measure: str) -> None:
    """Plot the tree above the columns; the height of a merge is the mean of 1 - similarity between the two groups."""
    tree = dendrogram(merges, no_plot=True)
    # SciPy has leaf i at 10 i + 5.
    across, up = (np.asarray(tree["icoord"]) - 5) / 10, np.asarray(tree["dcoord"])
    axes.add_collection(
        LineCollection(list(np.stack([across, up], axis=2)), colors=INK, linewidths=1, capstyle="projecting")
    )
    axes.set(xlim=(-0.5, len(merges) + 0.5), ylim=(0, 1.05 * max(up.max(), 0.01)), xticks=[])
    axes.set_ylabel(f"Distance,\n1 − {measure}", fontsize=8, color=INK)
    axes.tick_params(labelsize=8, length=2, color=INK, labelcolor=INK)
    axes.locator_params(axis="y", nbins=3)
    axes.spines[["top", "right", "bottom"]].set_visible(False)
    axes.spines["left"].set_color(INK)

"""The picture shows the matrix, by the figure that was drawn."""

from io import BytesIO
from itertools import pairwise

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy.cluster.hierarchy import leaves_list

from headstart.evaluation.alignment.heatmap import cluster, plot_heatmap
from headstart.output.figures import save

Matrix = NDArray[np.float64]


def draw_similarities(models: int, seed: int = 0, lowest: float = 0.0) -> Matrix:
    points = np.random.default_rng(seed).normal(size=(models, 3))
    squared = ((points[:, None] - points[None]) ** 2).sum(-1)
    similarities: Matrix = lowest + (1 - lowest) * np.exp(-squared / 4)
    return similarities


def cluster_order(matrix: Matrix) -> list[int]:
    return [int(leaf) for leaf in leaves_list(cluster(matrix))]


def draw(names: list[str], matrix: Matrix, title: str = "CKA") -> tuple[Figure, Axes, Axes, Matrix]:
    """Draw a picture; return it, the axes of the heatmap and of the tree, and the cells."""
    figure = plot_heatmap(names, matrix, title)
    save(figure, BytesIO())
    heat, tree, _ = figure.axes
    return figure, heat, tree, np.asarray(heat.images[0].get_array(), dtype=float)


@pytest.mark.parametrize("models", [2, 20])
def test_picture_matches_the_matrix_and_the_tree(models: int) -> None:
    matrix = draw_similarities(models, lowest=-0.2)
    names = [f"model {i}" for i in range(models)]
    _, heat, tree, cells = draw(names, matrix, "Blue Team, 7 stimuli")
    assert tree.get_title(loc="left") == "Blue Team, 7 stimuli"
    across, down = ([label.get_text() for label in axis.get_ticklabels()] for axis in (heat.xaxis, heat.yaxis))
    assert across == down
    order = [names.index(name) for name in across]
    np.testing.assert_array_equal(cells, matrix[np.ix_(order, order)])
    assert order == cluster_order(matrix)
    # Every link stands at the mean distance of the two groups of columns below its feet.
    (lines,) = (part for part in tree.collections if isinstance(part, LineCollection))
    groups: dict[float, list[int]] = {float(index): [index] for index in range(models)}
    heights = dict.fromkeys(groups, 0.0)
    links = np.asarray(lines.get_segments()).tolist()
    for (left, low), (_, height), (_, _), (right, other_low) in sorted(links, key=lambda link: link[1][1]):
        first, second = groups.pop(left), groups.pop(right)
        assert (low, other_low) == (heights[left], heights[right])
        assert height == pytest.approx(np.mean(1 - cells[np.ix_(first, second)]))
        assert max(first) + 1 == min(second)
        groups[(left + right) / 2], heights[(left + right) / 2] = first + second, height
    assert [sorted(group) for group in groups.values()] == [list(range(models))]
    assert tree.get_xlim() == heat.get_xlim()
    np.testing.assert_allclose(tree.get_position().intervalx, heat.get_position().intervalx)


@pytest.mark.parametrize("models", [15, 16, pytest.param(120, marks=pytest.mark.slow)])
def test_picture_is_legible(models: int) -> None:
    title = "Red Team, score 0.6267: linear CKA (biased, of features in float32), 1,000 stimuli"
    names = [f"vit_base_patch16_clip_224.openai_ft_in12k_{i}" for i in range(models)]
    figure, heat, tree, cells = draw(names, draw_similarities(models, lowest=-0.2), title)
    canvas = FigureCanvasAgg(figure)
    canvas.draw()  # type: ignore[no-untyped-call]
    renderer = canvas.get_renderer()  # type: ignore[no-untyped-call]
    width, height = figure.get_size_inches()
    drawn = figure.get_tightbbox()
    assert 0 < drawn.x0 < drawn.x1 < width
    assert 0 < drawn.y0 < drawn.y1 < height
    assert tree.get_title(loc="left").replace("\n", " ") == title
    rows = sorted((label.get_window_extent(renderer) for label in heat.get_yticklabels()), key=lambda box: box.y0)
    assert all(lower.y1 <= upper.y0 for lower, upper in pairwise(rows))
    assert all(float(label.get_fontsize()) >= 8 for label in (*heat.get_xticklabels(), *heat.get_yticklabels()))
    assert all(box.x1 <= heat.get_window_extent(renderer).x0 for box in rows)

    cell = heat.get_window_extent(renderer).width / models
    values = list(heat.texts)
    assert len(values) == (models**2 if models <= 15 else 0)
    for text in values:
        column, row = (round(coordinate) for coordinate in text.get_position())
        assert text.get_text() == f"{cells[row, column]:z.2f}".replace("-", "−")
        box = text.get_window_extent(renderer)
        assert (box.width <= 0.95 * cell, box.height <= cell / 2) == (True, True)

"""The picture shows the matrix, by the figure that was drawn."""

from io import BytesIO
from itertools import pairwise

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.text import Text
from numpy.typing import NDArray
from scipy.cluster.hierarchy import cophenet, leaves_list, linkage
from scipy.spatial.distance import squareform

from headstart.evaluation.alignment.heatmap import cluster, plot_heatmap
from headstart.output.figures import save

Matrix = NDArray[np.float64]


def draw_similarities(models: int, seed: int = 0, lowest: float = 0.0) -> Matrix:
    points = np.random.default_rng(seed).normal(size=(models, 3))
    squared = ((points[:, None] - points[None]) ** 2).sum(-1)
    similarities: Matrix = lowest + (1 - lowest) * np.exp(-squared / 4)
    return similarities


def plant_blocks(sizes: list[int], seed: int = 0) -> tuple[Matrix, NDArray[np.int64]]:
    """Return similarities near 0.9 within and 0.3 between blocks, in random order, and the block of each model."""
    generator = np.random.default_rng(seed)
    block = generator.permutation(np.repeat(np.arange(len(sizes)), sizes))
    noise = generator.uniform(-0.05, 0.05, (len(block), len(block)))
    matrix = np.where(block[:, None] == block, 0.9, 0.3) + (noise + noise.T) / 2
    np.fill_diagonal(matrix, 1)
    return matrix, block


def cluster_order(matrix: Matrix) -> list[int]:
    return [int(leaf) for leaf in leaves_list(cluster(matrix))]


class Picture:
    """A picture that was drawn, and its parts."""

    def __init__(self, figure: Figure) -> None:
        self.figure = figure
        self.heat, self.tree, self.bar = figure.axes
        self.cells = np.asarray(self.heat.images[0].get_array(), dtype=float)

    def labels(self, which: str) -> list[Text]:
        axis = self.heat.xaxis if which == "x" else self.heat.yaxis
        return list(axis.get_ticklabels())

    def names(self, which: str) -> list[str]:
        return [label.get_text() for label in self.labels(which)]

    def links(self) -> Matrix:
        """Return the tree's links, `[m - 1, 4 points, 2]`."""
        (lines,) = (part for part in self.tree.collections if isinstance(part, LineCollection))
        return np.asarray(lines.get_segments())


def draw(names: list[str], matrix: Matrix, title: str = "CKA") -> Picture:
    figure = plot_heatmap(names, matrix, title)
    save(figure, BytesIO())
    return Picture(figure)


def test_planted_blocks_stand_together() -> None:
    for sizes in ([4, 7, 2, 12], [2, 2]):
        matrix, block = plant_blocks(sizes)
        order = cluster_order(matrix)
        assert sorted(order) == list(range(len(block)))
        assert np.count_nonzero(np.diff(block[order])) == len(sizes) - 1


@pytest.mark.parametrize("models", [2, 40])
def test_neighbours_are_nearer_than_in_the_tree_as_it_is(models: int) -> None:
    matrix = draw_similarities(models, seed=3, lowest=0.2)
    plain = linkage(squareform(1 - matrix, checks=False), "average")
    np.testing.assert_allclose(cophenet(cluster(matrix)), cophenet(plain))
    ordered, unordered = (
        sum(1 - matrix[first, second] for first, second in pairwise(order))
        for order in (cluster_order(matrix), leaves_list(plain))
    )
    assert ordered < unordered if models > 2 else ordered == unordered


@pytest.mark.parametrize("models", [2, 20])
def test_picture_matches_the_matrix_and_the_tree(models: int) -> None:
    matrix = draw_similarities(models, lowest=-0.2)
    names = [f"model {i}" for i in range(models)]
    picture = draw(names, matrix, "Blue Team, 7 stimuli")
    assert picture.tree.get_title(loc="left") == "Blue Team, 7 stimuli"
    assert picture.names("x") == picture.names("y")
    order = [names.index(name) for name in picture.names("x")]
    np.testing.assert_array_equal(picture.cells, matrix[np.ix_(order, order)])
    assert order == cluster_order(matrix)
    # Every link stands at the mean distance of the two groups of columns below its feet.
    groups: dict[float, list[int]] = {float(index): [index] for index in range(models)}
    heights = dict.fromkeys(groups, 0.0)
    for (left, low), (_, height), (_, _), (right, other_low) in sorted(picture.links().tolist(), key=lambda u: u[1][1]):
        first, second = groups.pop(left), groups.pop(right)
        assert (low, other_low) == (heights[left], heights[right])
        assert height == pytest.approx(np.mean(1 - picture.cells[np.ix_(first, second)]))
        assert max(first) + 1 == min(second)
        groups[(left + right) / 2], heights[(left + right) / 2] = first + second, height
    assert [sorted(group) for group in groups.values()] == [list(range(models))]
    assert picture.tree.get_xlim() == picture.heat.get_xlim()
    np.testing.assert_allclose(
        [picture.tree.get_position().x0, picture.tree.get_position().x1],
        [picture.heat.get_position().x0, picture.heat.get_position().x1],
    )


@pytest.mark.parametrize("models", [15, 16, pytest.param(120, marks=pytest.mark.slow)])
def test_picture_is_legible(models: int) -> None:
    title = "Red Team, score 0.6267: linear CKA (biased, of features in float32), 1,000 stimuli"
    names = [f"vit_base_patch16_clip_224.openai_ft_in12k_{i}" for i in range(models)]
    picture = draw(names, draw_similarities(models, lowest=-0.2), title)
    canvas = FigureCanvasAgg(picture.figure)
    canvas.draw()  # type: ignore[no-untyped-call]
    renderer = canvas.get_renderer()  # type: ignore[no-untyped-call]
    whole, drawn = picture.figure.bbox, picture.figure.get_tightbbox()
    assert 0 < drawn.x0 < drawn.x1 < whole.width / picture.figure.dpi
    assert 0 < drawn.y0 < drawn.y1 < whole.height / picture.figure.dpi
    assert picture.tree.get_title(loc="left").replace("\n", " ") == title
    rows = sorted((label.get_window_extent(renderer) for label in picture.labels("y")), key=lambda box: box.y0)
    assert all(lower.y1 <= upper.y0 for lower, upper in pairwise(rows))
    assert all(float(label.get_fontsize()) >= 8 for axis in "xy" for label in picture.labels(axis))
    assert all(box.x1 <= picture.heat.get_window_extent(renderer).x0 for box in rows)

    cell = picture.heat.get_window_extent(renderer).width / models
    values = list(picture.heat.texts)
    assert len(values) == (models**2 if models <= 15 else 0)
    for text in values:
        column, row = (round(coordinate) for coordinate in text.get_position())
        assert text.get_text() == f"{picture.cells[row, column]:z.2f}".replace("-", "−")
        box = text.get_window_extent(renderer)
        assert (box.width <= 0.95 * cell, box.height <= cell / 2) == (True, True)

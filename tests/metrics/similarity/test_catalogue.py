"""What every measure of similarity promises: its range, its symmetry, and the maps that it does and does not see."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from metrics.similarity.catalogue import (
    DEFAULT_MEASURE,
    SIMILARITY_MEASURES,
    Invariance,
    MeasureName,
    SimilarityMeasure,
    mean_over_pairs,
)

Array = NDArray[np.float64]
SHAPES = pytest.mark.parametrize("shape", [(40, 5, 3), (12, 30, 4), (15, 1, 9)])
EVERY = pytest.mark.parametrize("measure", SIMILARITY_MEASURES.values(), ids=list(SIMILARITY_MEASURES))

MAPS: dict[Invariance, Callable[[Array], Array]] = {
    "orthogonal": lambda x: x @ (stats.ortho_group.rvs(x.shape[1], random_state=0) if x.shape[1] > 1 else -np.eye(1)),
    "isotropic_scaling": lambda x: 7e-3 * x,
    "translation": lambda x: x + np.linspace(-100, 50, x.shape[1]),
    "invertible_linear": lambda x: x * np.geomspace(1, 30, x.shape[1]),
}


def embeddings(n: int, *widths: int, seed: int = 0) -> list[Array]:
    """Draw embeddings that share some structure and lie away from the origin."""
    generator = np.random.default_rng(seed)
    shared = generator.standard_normal((n, 3))
    return [
        shared @ generator.standard_normal((3, d)) + generator.standard_normal((n, d)) + generator.normal(0, 5, d)
        for d in widths
    ]


def both(measure: SimilarityMeasure, x: Array, y: Array) -> list[float]:
    """Give the similarity of two embeddings, and the debiased one where there is one."""
    return [float(matrix[0, 1]) for matrix in measure.pairwise([x, y]) if matrix is not None]


@EVERY
@SHAPES
@pytest.mark.parametrize("name", MAPS)
def test_invariances_are_those_that_are_declared(
    name: Invariance, shape: tuple[int, int, int], measure: SimilarityMeasure
) -> None:
    if shape[1] == 1 and name == "invertible_linear":
        pytest.skip("of one column, every linear map is a scaling")
    x, y = embeddings(*shape)
    before, after = both(measure, x, y), both(measure, MAPS[name](x), y)
    if name in measure.invariances:
        assert after == pytest.approx(before, abs=1e-9)
    else:
        assert all(abs(one - other) > 1e-3 for one, other in zip(before, after, strict=True))


@EVERY
@SHAPES
def test_the_order_of_columns_and_of_stimuli_does_not_count(
    shape: tuple[int, int, int], measure: SimilarityMeasure
) -> None:
    x, y = embeddings(*shape)
    columns = np.random.default_rng(1).permutation(shape[1])
    rows = np.random.default_rng(2).permutation(shape[0])
    assert both(measure, x[rows][:, columns], y[rows]) == pytest.approx(both(measure, x, y), abs=1e-9)


@EVERY
@SHAPES
def test_symmetric_and_highest_for_the_same(shape: tuple[int, int, int], measure: SimilarityMeasure) -> None:
    x, y = embeddings(*shape)
    for matrix in measure.pairwise([x, y, x]):
        if matrix is None:
            continue
        np.testing.assert_array_equal(matrix, matrix.T)
        np.testing.assert_array_equal(matrix.diagonal(), 1)
        assert matrix[0, 2] == pytest.approx(1, abs=1e-12)
        assert matrix.max() <= 1
        assert matrix[0, 1] < 0.999


@EVERY
def test_pairs_do_not_depend_on_who_else_is_compared(measure: SimilarityMeasure) -> None:
    many = embeddings(20, 3, 40, 5, 12)
    for matrix, pair in zip(measure.pairwise(many), measure.pairwise(many[1:3]), strict=True):
        if matrix is not None and pair is not None:
            assert matrix[1, 2] == pytest.approx(pair[0, 1], abs=1e-12)


@EVERY
def test_what_is_wrong_is_named(measure: SimilarityMeasure) -> None:
    x, y = embeddings(8, 3, 4)
    for wrong, message in (
        (np.full_like(y, np.nan), "NaN"),
        (np.ones_like(y), "undefined"),
        (y[1:], "7 rows"),
        (y.astype(str), "real numbers"),
    ):
        with pytest.raises(ValueError, match=rf"^embeddings\[1\][: ].*{message}"):
            measure.pairwise([x, wrong])
    with pytest.raises(ValueError, match="embeddings: none given"):
        measure.pairwise([])


@EVERY
def test_two_stimuli_have_no_debiased_similarity(measure: SimilarityMeasure) -> None:
    biased, debiased = measure.pairwise(embeddings(2, 3, 4))
    assert np.isfinite(biased).all()
    assert debiased is None


@EVERY
def test_what_people_read_is_there(measure: SimilarityMeasure) -> None:
    assert measure.title
    assert any(character.isdigit() for character in measure.source), "a source has a year"


def test_names_are_the_choices_of_the_option() -> None:
    assert get_args(MeasureName) == tuple(SIMILARITY_MEASURES)
    assert next(iter(SIMILARITY_MEASURES)) == DEFAULT_MEASURE == "linear_cka"


def test_mean_over_pairs() -> None:
    assert mean_over_pairs(np.array([[1, 0.2, 0.6], [0.2, 1, -0.5], [0.6, -0.5, 1]])) == pytest.approx(0.1)


def test_importing_the_catalogue_does_not_import_torch() -> None:
    program = "import sys, metrics.similarity.catalogue; sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True, cwd=Path(__file__).parents[3])

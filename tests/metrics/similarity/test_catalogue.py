"""Every measure of similarity has its range and symmetry, and sees the maps that it is said to see."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy import stats

from headstart.metrics import calibrated_cka, cka_intervals, linear_cka
from headstart.metrics.similarity.catalogue import (
    SIMILARITY_MEASURES,
    SimilarityMeasure,
    mean_over_pairs,
)
from headstart.tests.material.embeddings import embeddings

Array = NDArray[np.float64]
Shape = tuple[int, int, int]
SHAPES: list[Shape] = [(40, 5, 3), (14, 30, 4), (15, 1, 9)]
# The shapes that a measure says nothing of: rows of one column have no correlation and lie on one line, and more
# dimensions than stimuli span everything.
UNDEFINED: dict[str, set[Shape]] = {
    "rsa_pearson": {(15, 1, 9)},
    "rsa_spearman": {(15, 1, 9)},
    "cca": {(14, 30, 4)},
    "pwcca": {(14, 30, 4)},
    "mutual_knn": {(15, 1, 9)},
}
# Two stimuli are as far from each other in one embedding as in the other, one direction holds both, and there are no
# ten others.
OF_TWO_STIMULI = {"linear_cka", "rbf_cka", "procrustes"}
EVERY = pytest.mark.parametrize("name", SIMILARITY_MEASURES)

MAPS: dict[str, Callable[[Array], Array]] = {
    "orthogonal": lambda x: x @ (stats.ortho_group.rvs(x.shape[1], random_state=0) if x.shape[1] > 1 else -np.eye(1)),
    "isotropic_scaling": lambda x: 7e-3 * x,
    "translation": lambda x: x + np.linspace(-100, 50, x.shape[1]),
    "invertible_linear": lambda x: x * np.geomspace(1, 30, x.shape[1]),
}
# The maps of one embedding that do not change a similarity; all others do. The terms are those of Klabunde et al.,
# "ReSi: A Comprehensive Benchmark for Representational Similarity Measures", ICLR 2025.
EUCLIDEAN = {"orthogonal", "isotropic_scaling", "translation"}
INVARIANCES: dict[str, set[str]] = {
    **dict.fromkeys(("linear_cka", "rbf_cka", "procrustes", "svcca"), EUCLIDEAN),
    "cca": EUCLIDEAN | {"invertible_linear"},
    "pwcca": {"isotropic_scaling", "translation"},
    "mutual_knn": {"isotropic_scaling", "orthogonal"},
    "rsa_pearson": {"isotropic_scaling"},
    "rsa_spearman": {"isotropic_scaling"},
}

# What is computed of embeddings, by name: the measures, and what else there is of linear CKA.
COMPUTED: dict[str, Callable[[Sequence[Any]], Sequence[Any]]] = {
    **{name: measure.pairwise for name, measure in SIMILARITY_MEASURES.items()},
    "intervals": lambda many: [*vars(cka_intervals(many)).values()],
    "nulls": lambda many: [*vars(calibrated_cka(many)).values()],
}
COMPUTATIONS = pytest.mark.parametrize("name", COMPUTED)


def defined_shapes(name: str) -> list[Shape]:
    """Return the shapes for which a measure is defined, and check that the errors of the others name an embedding."""
    for shape in UNDEFINED.get(name, ()):
        with pytest.raises(ValueError, match=r"^embeddings\[0\]: .* is undefined where"):
            SIMILARITY_MEASURES[name].pairwise(embeddings(*shape))
    return [shape for shape in SHAPES if shape not in UNDEFINED.get(name, ())]


def compare(name: str, many: Sequence[Any], expected: Sequence[Any]) -> None:
    for value, other in zip(COMPUTED[name](many), expected, strict=True):
        if other is not None:
            np.testing.assert_allclose(value, other, rtol=1e-8, atol=1e-9)


def both(measure: SimilarityMeasure, x: Array, y: Array) -> list[float]:
    """Return the similarity of two embeddings, and the debiased one where there is one."""
    return [float(matrix[0, 1]) for matrix in measure.pairwise([x, y]) if matrix is not None]


@EVERY
def test_invariances(name: str) -> None:
    measure = SIMILARITY_MEASURES[name]
    for shape in defined_shapes(name):
        x, y = embeddings(*shape)
        before = both(measure, x, y)
        columns = np.random.default_rng(1).permutation(shape[1])
        rows = np.random.default_rng(2).permutation(shape[0])
        assert both(measure, x[rows][:, columns], y[rows]) == pytest.approx(before, abs=1e-9)
        for kind, change in MAPS.items():
            after = both(measure, change(x), y)
            if kind in INVARIANCES[name]:
                assert after == pytest.approx(before, abs=1e-9), (kind, shape)
            # Of one column, every linear map is a scaling.
            elif shape[1] > 1 or kind == "translation":
                assert all(abs(one - other) > 1e-3 for one, other in zip(before, after, strict=True)), (kind, shape)


@EVERY
def test_symmetric_and_highest_for_the_same_whoever_else_is_compared(name: str) -> None:
    measure = SIMILARITY_MEASURES[name]
    for shape in defined_shapes(name):
        x, y = embeddings(*shape)
        for matrix in (values for values in measure.pairwise([x, y, x]) if values is not None):
            np.testing.assert_array_equal(matrix, matrix.T)
            np.testing.assert_array_equal(matrix.diagonal(), 1)
            assert matrix[0, 2] == pytest.approx(1, abs=1e-12)
            assert matrix.max() <= 1
            assert matrix[0, 1] < 0.999
    many = embeddings(30, 3, 14, 5, 12)
    for of_many, of_pair in zip(measure.pairwise(many), measure.pairwise(many[1:3]), strict=True):
        assert (of_many is not None) == (of_pair is not None)
        if of_many is not None and of_pair is not None:
            assert of_many[1, 2] == pytest.approx(of_pair[0, 1], abs=1e-12)
    assert (measure.pairwise(many)[1] is not None) == measure.has_debiased


@EVERY
def test_mistakes_are_named(name: str) -> None:
    measure, (x, y) = SIMILARITY_MEASURES[name], embeddings(14, 3, 4)
    for wrong, message in (
        (np.full_like(y, np.nan), "NaN"),
        (np.ones_like(y), "undefined"),
        (y[1:], "13 rows"),
        (y.astype(str), "real numbers"),
    ):
        with pytest.raises(ValueError, match=rf"^embeddings\[1\][: ].*{message}"):
            measure.pairwise([x, wrong])
    with pytest.raises(ValueError, match="embeddings: none given"):
        measure.pairwise([])
    if name in OF_TWO_STIMULI:
        biased, debiased = measure.pairwise([x[:2], y[:2]])
        assert np.isfinite(biased).all()
        assert debiased is None
    else:
        with pytest.raises(ValueError, match=r"^embeddings\[0\]: .* undefined"):
            measure.pairwise([x[:2], y[:2]])


@EVERY
def test_single_precision_and_memory_maps_are_read(name: str, tmp_path: Path) -> None:
    pair = [x.astype(np.float32) for x in embeddings(40, 6, 3)]
    before = [x.copy() for x in pair]
    np.save(tmp_path / "x.npy", pair[0])
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    pairwise = SIMILARITY_MEASURES[name].pairwise
    expected = pairwise([x.astype(np.float64) for x in pair])[0]
    np.testing.assert_allclose(pairwise([mapped, pair[1]])[0], expected, atol=1e-12)
    for x, copy in zip(pair, before, strict=True):
        np.testing.assert_array_equal(x, copy)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_gpu_gives_what_the_cpu_gives(dtype: torch.dtype) -> None:
    x, y = (torch.from_numpy(rows).to(dtype) for rows in embeddings(300, 64, 100))
    assert linear_cka(x.cuda(), y.cuda()) == linear_cka(x, y)


@COMPUTATIONS
@pytest.mark.filterwarnings("error")
def test_any_scale(name: str) -> None:
    x, y = embeddings(40, 3, 4)
    expected = COMPUTED[name]([x, y])
    for factor in (1e-70, 1e-6, 1e6, 1e70):
        compare(name, [factor * x, y], expected)


def test_mean_over_pairs() -> None:
    assert mean_over_pairs(np.array([[1, 0.2, 0.6], [0.2, 1, -0.5], [0.6, -0.5, 1]])) == pytest.approx(0.1)

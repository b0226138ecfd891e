"""Every measure of similarity has its range and symmetry, and sees the maps that it is said to see."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy import stats

from headstart.metrics import arrays, calibrated_cka, cka_intervals, mean_pairwise_cka
from headstart.metrics.similarity import cka, cka_jackknife, permutation_moments
from headstart.metrics.similarity.catalogue import (
    DEFAULT_MEASURE,
    SIMILARITY_MEASURES,
    Invariance,
    MeasureName,
    SimilarityMeasure,
    mean_over_pairs,
)
from headstart.tests.material.embeddings import embeddings

Array = NDArray[np.float64]
SHAPES = pytest.mark.parametrize("shape", [(40, 5, 3), (14, 30, 4), (15, 1, 9)])
# The shapes that a measure says nothing of: rows of one column have no correlation and lie on one line, and more
# dimensions than stimuli span everything.
UNDEFINED: dict[str, set[tuple[int, int, int]]] = {
    "rsa_pearson": {(15, 1, 9)},
    "rsa_spearman": {(15, 1, 9)},
    "cca": {(14, 30, 4)},
    "pwcca": {(14, 30, 4)},
    "mutual_knn": {(15, 1, 9)},
}
# Two stimuli are as far from each other in one embedding as in the other, one direction holds both, and there are no
# ten others.
OF_TWO_STIMULI = {"linear_cka", "rbf_cka", "procrustes"}
EVERY = pytest.mark.parametrize("measure", SIMILARITY_MEASURES.values(), ids=list(SIMILARITY_MEASURES))

MAPS: dict[Invariance, Callable[[Array], Array]] = {
    "orthogonal": lambda x: x @ (stats.ortho_group.rvs(x.shape[1], random_state=0) if x.shape[1] > 1 else -np.eye(1)),
    "isotropic_scaling": lambda x: 7e-3 * x,
    "translation": lambda x: x + np.linspace(-100, 50, x.shape[1]),
    "invertible_linear": lambda x: x * np.geomspace(1, 30, x.shape[1]),
}


# What is computed of embeddings, by name: the measures, and what else there is of linear CKA.
COMPUTED: dict[str, Callable[[Sequence[Any]], Sequence[Any]]] = {
    **{name: measure.pairwise for name, measure in SIMILARITY_MEASURES.items()},
    "mean": lambda many: [mean_pairwise_cka(many), mean_pairwise_cka(many, debiased=True)],
    "intervals": lambda many: [*vars(cka_intervals(many)).values()],
    "nulls": lambda many: [*vars(calibrated_cka(many)).values()],
}
COMPUTATIONS = pytest.mark.parametrize("name", COMPUTED)


def defined(measure: SimilarityMeasure, shape: tuple[int, int, int]) -> bool:
    """Return whether the measure is defined for a shape; otherwise check that the error names it and the embedding."""
    name = next(name for name, value in SIMILARITY_MEASURES.items() if value is measure)
    if shape not in UNDEFINED.get(name, ()):
        return True
    with pytest.raises(ValueError, match=r"^embeddings\[0\]: .* is undefined where"):
        measure.pairwise(embeddings(*shape))
    return False


def compare(name: str, many: Sequence[Any], expected: Sequence[Any]) -> None:
    for value, other in zip(COMPUTED[name](many), expected, strict=True):
        if other is not None:
            np.testing.assert_allclose(value, other, rtol=1e-8, atol=1e-9)


def both(measure: SimilarityMeasure, x: Array, y: Array) -> list[float]:
    """Return the similarity of two embeddings, and the debiased one where there is one."""
    return [float(matrix[0, 1]) for matrix in measure.pairwise([x, y]) if matrix is not None]


@EVERY
@SHAPES
@pytest.mark.parametrize("name", MAPS)
def test_invariances_are_those_that_are_declared(
    name: Invariance, shape: tuple[int, int, int], measure: SimilarityMeasure
) -> None:
    if not defined(measure, shape):
        return
    if shape[1] == 1 and name not in measure.invariances and name != "translation":
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
    if not defined(measure, shape):
        return
    x, y = embeddings(*shape)
    columns = np.random.default_rng(1).permutation(shape[1])
    rows = np.random.default_rng(2).permutation(shape[0])
    assert both(measure, x[rows][:, columns], y[rows]) == pytest.approx(both(measure, x, y), abs=1e-9)


@EVERY
@SHAPES
def test_symmetric_and_highest_for_the_same(shape: tuple[int, int, int], measure: SimilarityMeasure) -> None:
    if not defined(measure, shape):
        return
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
    many = embeddings(30, 3, 14, 5, 12)
    for matrix, pair in zip(measure.pairwise(many), measure.pairwise(many[1:3]), strict=True):
        if matrix is not None and pair is not None:
            assert matrix[1, 2] == pytest.approx(pair[0, 1], abs=1e-12)


@EVERY
def test_mistakes_are_named(measure: SimilarityMeasure) -> None:
    x, y = embeddings(14, 3, 4)
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


@pytest.mark.parametrize("name", SIMILARITY_MEASURES)
def test_two_stimuli_have_no_debiased_similarity(name: str) -> None:
    measure, pair = SIMILARITY_MEASURES[name], embeddings(2, 3, 4)
    if name not in OF_TWO_STIMULI:
        with pytest.raises(ValueError, match=r"^embeddings\[0\]: .* undefined"):
            measure.pairwise(pair)
        return
    biased, debiased = measure.pairwise(pair)
    assert np.isfinite(biased).all()
    assert debiased is None


@EVERY
def test_debiased_estimates_are_those_that_are_declared(measure: SimilarityMeasure) -> None:
    _, debiased = measure.pairwise(embeddings(20, 3, 4))
    assert (debiased is not None) == measure.has_debiased


@EVERY
def test_single_precision_and_memory_maps_are_read(measure: SimilarityMeasure, tmp_path: Path) -> None:
    pair = [x.astype(np.float32) for x in embeddings(40, 6, 3)]
    before = [x.copy() for x in pair]
    np.save(tmp_path / "x.npy", pair[0])
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    expected = measure.pairwise([x.astype(np.float64) for x in pair])[0]
    np.testing.assert_allclose(measure.pairwise([mapped, pair[1]])[0], expected, atol=1e-12)
    for x, copy in zip(pair, before, strict=True):
        np.testing.assert_array_equal(x, copy)


@COMPUTATIONS
@pytest.mark.parametrize("n", [17, 100])
def test_tensors_elsewhere_are_computed_with_there(name: str, n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    # Small blocks, and random rows, more and fewer than columns.
    for module in (cka, cka_jackknife):
        monkeypatch.setattr(module, "BLOCK_BYTES", 2**12)
    monkeypatch.setattr(permutation_moments, "ROWS", 25)
    many = embeddings(n, *((3, 8, 5) if name in ("cca", "pwcca") else (3, 40, 5, 12)))
    expected, tensors = COMPUTED[name](many), [torch.from_numpy(x) for x in many]
    # Stands in for an accelerator: tensors are kept as tensors.
    monkeypatch.setattr(arrays, "stays_on_device", lambda tensor: True)
    compare(name, tensors, expected)
    with pytest.raises(ValueError, match=r"^embeddings\[1\]: .* undefined where"):
        COMPUTED[name]([tensors[0], torch.ones(n, 2)])


@COMPUTATIONS
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_gpu_gives_what_the_cpu_gives(name: str) -> None:
    many = [x.astype(np.float32) for x in embeddings(300, 64, 100)]
    compare(name, [torch.from_numpy(x).cuda() for x in many], COMPUTED[name](many))


@COMPUTATIONS
@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("factor", [1e-70, 1e-6, 1e6, 1e70])
def test_any_scale(name: str, factor: float) -> None:
    x, y = embeddings(40, 3, 4)
    compare(name, [factor * x, y], COMPUTED[name]([x, y]))


@EVERY
def test_measures_have_titles_and_sources(measure: SimilarityMeasure) -> None:
    assert measure.title
    assert any(character.isdigit() for character in measure.source), "a source has a year"


def test_names_are_the_choices_of_the_option() -> None:
    assert get_args(MeasureName) == tuple(SIMILARITY_MEASURES)
    assert next(iter(SIMILARITY_MEASURES)) == DEFAULT_MEASURE == "linear_cka"


def test_mean_over_pairs() -> None:
    assert mean_over_pairs(np.array([[1, 0.2, 0.6], [0.2, 1, -0.5], [0.6, -0.5, 1]])) == pytest.approx(0.1)

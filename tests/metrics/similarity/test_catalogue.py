"""Every measure of similarity has its range and symmetry, and sees the maps that it is said to see."""

from collections.abc import Callable
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy import stats

from headstart.metrics import arrays
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
SHAPES = [(40, 5, 3), (14, 30, 4), (15, 1, 9)]
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
EVERY = pytest.mark.parametrize("name", SIMILARITY_MEASURES)

MAPS: dict[Invariance, Callable[[Array], Array]] = {
    "orthogonal": lambda x: x @ (stats.ortho_group.rvs(x.shape[1], random_state=0) if x.shape[1] > 1 else -np.eye(1)),
    "isotropic_scaling": lambda x: 7e-3 * x,
    "translation": lambda x: x + np.linspace(-100, 50, x.shape[1]),
    "invertible_linear": lambda x: x * np.geomspace(1, 30, x.shape[1]),
}


def similarities(measure: SimilarityMeasure, x: Array, y: Array) -> list[float]:
    """Return the similarity of two embeddings, and the debiased one where there is one."""
    return [float(matrix[0, 1]) for matrix in measure.pairwise([x, y]) if matrix is not None]


def is_seen(measure: SimilarityMeasure, before: list[float], x: Array, y: Array) -> bool:
    """Return whether all similarities differ from others; that they are the same is the opposite of it."""
    after = similarities(measure, x, y)
    differences = np.abs(np.subtract(after, before))
    assert (differences > 1e-3).all() or (differences < 1e-9).all(), differences
    return bool((differences > 1e-3).all())


@EVERY
def test_a_similarity_has_its_range_symmetry_and_invariances(name: str) -> None:
    measure = SIMILARITY_MEASURES[name]
    for shape in SHAPES:
        x, y = embeddings(*shape)
        if shape in UNDEFINED.get(name, ()):
            with pytest.raises(ValueError, match=r"^embeddings\[0\]: .* is undefined where"):
                measure.pairwise([x, y])
            continue
        for matrix in measure.pairwise([x, y, x]):
            if matrix is not None:
                np.testing.assert_array_equal(matrix, matrix.T)
                np.testing.assert_array_equal(matrix.diagonal(), 1)
                assert matrix[0, 2] == pytest.approx(1, abs=1e-12)
                assert matrix.max() <= 1
                assert matrix[0, 1] < 0.999

        plain = similarities(measure, x, y)
        rows, columns = (np.random.default_rng(seed).permutation(shape[seed]) for seed in (0, 1))
        assert not is_seen(measure, plain, x[rows][:, columns], y[rows]), "the order of rows and columns"
        for kind, change in MAPS.items():
            # Of one column, every linear map is a scaling.
            if shape[1] > 1 or kind in measure.invariances or kind == "translation":
                assert is_seen(measure, plain, change(x), y) == (kind not in measure.invariances), (shape, kind)


@EVERY
def test_pairs_depend_on_nothing_else(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measure, many = SIMILARITY_MEASURES[name], embeddings(60, 3, 20, 5, 12)
    biased, debiased = measure.pairwise(many)
    assert (debiased is not None) == measure.has_debiased
    for matrix, pair in zip((biased, debiased), measure.pairwise(many[1:3]), strict=True):
        if matrix is not None and pair is not None:
            assert matrix[1, 2] == pytest.approx(pair[0, 1], abs=1e-12)

    # Stored in single precision, from a file that is mapped into memory, and unchanged afterwards.
    single = [x.astype(np.float32) for x in many]
    np.save(tmp_path / "x.npy", single[0])
    mapped = [np.load(tmp_path / "x.npy", mmap_mode="r"), *(x.copy() for x in single[1:])]
    expected = measure.pairwise([x.astype(np.float64) for x in single])[0]
    np.testing.assert_allclose(measure.pairwise(mapped)[0], expected, atol=1e-12)
    for x, copy in zip(single, mapped, strict=True):
        np.testing.assert_array_equal(x, copy)

    # Stands in for an accelerator: tensors are kept as tensors.
    monkeypatch.setattr(arrays, "stays_on_device", lambda tensor: True)
    np.testing.assert_allclose(measure.pairwise([torch.from_numpy(x) for x in many])[0], biased, atol=1e-10)


@EVERY
@pytest.mark.filterwarnings("error")
def test_any_scale(name: str) -> None:
    measure, (x, y) = SIMILARITY_MEASURES[name], embeddings(40, 3, 4)
    for factor in (1e-70, 1e-6, 1e6, 1e70):
        assert similarities(measure, factor * x, y) == pytest.approx(similarities(measure, x, y), abs=1e-9)


@EVERY
def test_mistakes_and_too_few_stimuli_are_named(name: str) -> None:
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
        assert (np.isfinite(biased).all(), debiased) == (True, None)
    else:
        with pytest.raises(ValueError, match=r"^embeddings\[0\]: .* undefined"):
            measure.pairwise([x[:2], y[:2]])


@EVERY
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_gpu_gives_what_the_cpu_gives(name: str) -> None:
    many = [x.astype(np.float32) for x in embeddings(300, 64, 100)]
    on_gpu = SIMILARITY_MEASURES[name].pairwise([torch.from_numpy(x).cuda() for x in many])[0]
    np.testing.assert_allclose(on_gpu, SIMILARITY_MEASURES[name].pairwise(many)[0], atol=1e-9)


def test_names_are_the_choices_of_the_option() -> None:
    assert get_args(MeasureName) == tuple(SIMILARITY_MEASURES)
    assert next(iter(SIMILARITY_MEASURES)) == DEFAULT_MEASURE == "linear_cka"


def test_mean_over_pairs() -> None:
    assert mean_over_pairs(np.array([[1, 0.2, 0.6], [0.2, 1, -0.5], [0.6, -0.5, 1]])) == pytest.approx(0.1)

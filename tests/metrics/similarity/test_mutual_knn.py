"""Mutual k-nearest neighbours against scikit-learn and sets; invariances are tested with the catalogue."""

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.neighbors import NearestNeighbors

from headstart.metrics.similarity import cka
from headstart.metrics.similarity.mutual_knn import pairwise_mutual_knn
from headstart.tests.material.embeddings import embeddings

Array = NDArray[np.float64]


def by_sets(x: Array, y: Array, k: int) -> float:
    searches = [NearestNeighbors(n_neighbors=k, metric="cosine").fit(each) for each in (x, y)]
    near = [search.kneighbors(return_distance=False) for search in searches]
    return float(np.mean([len(set(one) & set(other)) / k for one, other in zip(*near, strict=True)]))


@pytest.mark.parametrize("block_bytes", [1, 2**12, 2**28])
@pytest.mark.parametrize(("n", "k"), [(11, 10), (50, 10), (50, 1), (70, 33)])
def test_equal_to_scikit_learn(n: int, k: int, block_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cka, "BLOCK_BYTES", block_bytes)
    many = embeddings(n, 4, 30, 2)
    matrix, debiased = pairwise_mutual_knn(many, k)
    assert debiased is None
    for i, x in enumerate(many):
        for j, y in enumerate(many[:i]):
            assert matrix[i, j] == matrix[j, i] == pytest.approx(by_sets(x, y, k))


def test_unrelated_embeddings_meet_by_chance() -> None:
    generator = np.random.default_rng(0)
    many = [generator.standard_normal((300, 20)) for _ in range(6)]
    chance = pairwise_mutual_knn(many, 10)[0][np.triu_indices(6, 1)]
    assert chance.mean() == pytest.approx(10 / 299, rel=0.1)


def test_undefined_values_are_named() -> None:
    x, y = embeddings(10, 3, 5)
    with pytest.raises(ValueError, match=r"^embeddings\[0\]: .* undefined for 10 stimuli, .* give 11 stimuli or more"):
        pairwise_mutual_knn([x, y])
    y[3] = 0
    with pytest.raises(ValueError, match=r"^embeddings\[1\]: .* is undefined where a row is 0, as row 3 is"):
        pairwise_mutual_knn([x, y], 4)
    with pytest.raises(ValueError, match=r"^embeddings\[0\]: .* is undefined where all rows lie on one line"):
        pairwise_mutual_knn([np.outer([*range(1, 6), *range(-5, 0)], [1, 2, 3])], 4)
    with pytest.raises(ValueError, match=r"^k must be an integer of 1 or more"):
        pairwise_mutual_knn([x], 0)

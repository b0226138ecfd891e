"""The search for stimuli by any measure, which is here a measure of its own."""

from collections.abc import Iterable
from itertools import combinations

import numpy as np
import pytest
from numpy.typing import NDArray

from headstart.metrics.similarity import stimulus_subset_search
from headstart.metrics.similarity.catalogue import SIMILARITY_MEASURES, SimilarityMeasure
from headstart.metrics.similarity.centred_embedding import Embedding
from headstart.metrics.similarity.stimulus_subset_search import (
    descend,
    random_mean_similarities,
    random_stimulus_subsets,
    worst_stimulus_subset,
)

Array = NDArray[np.float64]
LINEAR = SIMILARITY_MEASURES["linear_cka"]


def catalog(stimuli: int, seed: int = 0, models: int = 3) -> list[Array]:
    generator = np.random.default_rng(seed)
    shared = generator.normal(size=(stimuli, 5))
    return [shared @ generator.normal(size=(5, 8)) + generator.normal(size=(stimuli, 8)) for _ in range(models)]


def signs_that_agree(embeddings: Iterable[Embedding]) -> tuple[Array, None]:
    """Count the stimuli whose first column has the same sign; undefined where an embedding is all positive."""
    signs = np.stack([np.sign(np.asarray(each)[:, 0]) for each in embeddings])
    for i, row in enumerate(signs):
        if (row > 0).all():
            raise ValueError(f"embeddings[{i}]: undefined")
    return (signs[:, None] == signs).mean(axis=2), None


SIGNS = SimilarityMeasure("agreement of signs", signs_that_agree, frozenset(), "this test, 2026")


def agreement(embeddings: list[Array], subset: Iterable[int]) -> float:
    matrix, _ = signs_that_agree([each[list(subset)] for each in embeddings])
    return float(np.mean([matrix[i, j] for i, j in combinations(range(len(matrix)), 2)]))


def test_small_catalogs_are_enumerated() -> None:
    embeddings = catalog(9)
    values: dict[tuple[int, ...], float] = {}
    for subset in combinations(range(9), 4):
        try:
            values[subset] = agreement(embeddings, subset)
        except ValueError:
            continue
    result = descend(SIGNS, embeddings, start=(0, 1, 2, 3))
    assert result.exact
    assert result.value == pytest.approx(min(values.values()))
    assert values[result.chosen] == result.value


def test_linear_cka_by_evaluation_is_linear_cka_by_its_own_search() -> None:
    embeddings = catalog(12, seed=3)
    own, _ = worst_stimulus_subset(embeddings, 5)
    result = descend(LINEAR, embeddings, start=range(5))
    assert (result.chosen, result.exact) == (own.chosen, own.exact)
    assert result.value == pytest.approx(own.value, abs=1e-9)
    np.testing.assert_allclose(
        random_mean_similarities(LINEAR, embeddings, 5, count=20, seed=4),
        random_stimulus_subsets(embeddings, 5, count=20, seed=4),
        atol=1e-9,
    )


def test_every_step_down_is_kept_and_the_seed_sets_the_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stimulus_subset_search, "EVALUATIONS", 300)
    embeddings, start = catalog(40, models=5), tuple(range(10))
    steps: list[tuple[int, int]] = []
    result = descend(SIGNS, embeddings, start, seed=1, progress=lambda done, total, _: steps.append((done, total)))
    assert steps == [(i, 300) for i in range(1, 301)]
    assert not result.exact
    assert len(set(result.chosen)) == 10
    assert list(result.chosen) == sorted(result.chosen)
    assert result.value == pytest.approx(agreement(embeddings, result.chosen))
    assert descend(SIGNS, embeddings, start, seed=1) == result
    others = {descend(SIGNS, catalog(200, models=4), start, seed=seed).chosen for seed in range(3)}
    assert len(others) > 1


def test_lower_than_random_subsets() -> None:
    embeddings = catalog(80, models=4)
    result = descend(LINEAR, embeddings, start=range(10))
    assert result.value < random_mean_similarities(LINEAR, embeddings, 10).min() - 0.05


def test_undefined_subsets_are_passed_over() -> None:
    embeddings = catalog(30)
    for each in embeddings:
        each[:, 0] = np.abs(each[:, 0])
        each[7, 0] = -1
    assert 7 in descend(SIGNS, embeddings, start=range(3)).chosen
    assert np.isfinite(random_mean_similarities(SIGNS, embeddings, 3)).all()
    embeddings[1][7, 0] = 1
    with pytest.raises(ValueError, match=r"embeddings\[1\]: undefined"):
        descend(SIGNS, embeddings, start=range(3))
    embeddings[1][8, 0] = -1
    embeddings[0][9, 0] = -1
    with pytest.raises(ValueError, match="on none of the 1 stimuli that were tried is agreement of signs defined"):
        descend(SIGNS, embeddings, start=(0,))

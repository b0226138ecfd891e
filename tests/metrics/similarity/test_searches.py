"""The searches for models that agree, and for stimuli that they disagree on, against every subset."""

from itertools import combinations, islice

import numpy as np
import pytest
from numpy.typing import NDArray

from headstart.metrics.similarity.stimulus_scores import StimulusScores
from headstart.metrics.similarity.subset_search import (
    UNDEFINED,
    FoundSubset,
    PairScores,
    SubsetScores,
    random_scores,
    search_subsets,
)
from headstart.tests.material.catalogs import Embeddings, make_catalog, mean_cka, with_copies


def find(scores: SubsetScores, size: int, steps: int = 60, seed: int = 0) -> FoundSubset:
    (*_, last) = islice(search_subsets(scores, size, seed), steps)
    return last


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have several blocks in small catalogs."""
    monkeypatch.setattr(StimulusScores, "block", 7)


def test_scores_with_and_without_each() -> None:
    embeddings, members = make_catalog(30, seed=0), np.array([3, 17, 8, 22, 5, 29, 11])
    scores = StimulusScores(embeddings)
    assert scores.score(members) == pytest.approx(1 - mean_cka(embeddings, members.tolist()), abs=1e-9)
    others = np.setdiff1d(np.arange(30), members)
    scores.offer(others)
    joined = [1 - mean_cka(embeddings, [*members, other]) for other in others]
    np.testing.assert_allclose(scores.joining(members, np.arange(len(others))), joined, atol=1e-5)
    left = [1 - mean_cka(embeddings, [member for member in members if member != leaver]) for leaver in members]
    np.testing.assert_allclose(scores.leaving(members), left, atol=1e-9)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("size", [3, 9, 12])
def test_small_catalogs(size: int) -> None:
    # On two stimuli, any two models agree.
    embeddings = make_catalog(12, seed=40 + size)
    best = min(combinations(range(12), size), key=lambda subset: mean_cka(embeddings, subset))
    result = find(StimulusScores(embeddings), size, steps=200)
    assert result.members == best
    assert result.score == pytest.approx(1 - mean_cka(embeddings, best), abs=1e-9)


def test_planted_disagreement_is_found() -> None:
    generator = np.random.default_rng(0)
    planted = np.sort(generator.choice(60, 12, replace=False))
    agreed = np.setdiff1d(np.arange(60), planted)
    # Two far groups that all models see alike, whatever the rotation, and stimuli between that each sees its own way.
    shared = generator.normal(size=(60, 4)) + 20 * generator.choice([-1, 1], 60)[:, None] * np.eye(4)[0]
    embeddings: Embeddings = []
    for _ in range(5):
        embedding = shared @ np.linalg.qr(generator.normal(size=(4, 4)))[0]
        embedding[planted] = generator.normal(size=(12, 4))
        embeddings.append(embedding)
    assert mean_cka(embeddings, agreed.tolist()) == pytest.approx(1)
    assert set(find(StimulusScores(embeddings), 8).members) <= set(planted.tolist())


def test_location_scale_and_precision_of_embeddings_do_not_matter() -> None:
    embeddings = make_catalog(30, seed=2)
    before = [embedding.copy() for embedding in embeddings]
    result = find(StimulusScores(embeddings), 5)
    shifted: Embeddings = [1e-3 * embedding + 70 for embedding in embeddings]
    rounded: Embeddings = [embedding.astype(np.float32) for embedding in embeddings]
    moved, single = find(StimulusScores(shifted), 5), find(StimulusScores(rounded), 5)
    assert moved.members == single.members == result.members
    assert moved.score == pytest.approx(result.score, abs=1e-9)
    for embedding, old in zip(embeddings, before, strict=True):
        np.testing.assert_array_equal(embedding, old)


@pytest.mark.parametrize("noise", [0, 1e-7])
@pytest.mark.parametrize("size", [2, 3, 5])
def test_subsets_of_copies_are_passed_over(size: int, noise: float) -> None:
    embeddings = with_copies(40, distinct=(7, 31), noise=noise)
    scores = StimulusScores(embeddings)
    assert scores.score(np.array([2, 5, 4])) == UNDEFINED
    result = find(scores, size)
    assert {7, 31} & set(result.members)
    assert result.score == pytest.approx(1 - mean_cka(embeddings, result.members), abs=1e-6 if noise else 1e-9)
    assert random_scores(scores, size, 100).min() >= -1e-9


def test_models_that_distinguish_single_stimuli() -> None:
    scores = StimulusScores([np.eye(20)[:, [column]] for column in (3, 8, 15)])
    assert find(scores, 3).members == (3, 8, 15)
    assert find(scores, 2).score <= UNDEFINED
    with pytest.raises(ValueError, match="size: hardly any 2 stimuli have a score"):
        random_scores(scores, 2, draws=10)


@pytest.mark.parametrize("value", [0.1, np.nan])
def test_models_without_a_value(value: float) -> None:
    embeddings = make_catalog(9, seed=0)
    embeddings[2][:] = value
    with pytest.raises(ValueError, match=r"embeddings\[2\]: (.* all rows are equal|contains NaN)"):
        StimulusScores(embeddings)
    with pytest.raises(ValueError, match=r"embeddings: .* there are 1; give at least 2"):
        StimulusScores(embeddings[:1])


def similarities(models: int, seed: int) -> NDArray[np.float64]:
    """Return a symmetric matrix with a unit diagonal and all other entries between 0 and 1."""
    values = np.random.default_rng(seed).random((models, models))
    matrix = (values + values.T) / 2
    np.fill_diagonal(matrix, 1)
    return matrix


def mean_pair(matrix: NDArray[np.float64], subset: tuple[int, ...]) -> float:
    """Average over the pairs of a subset, one by one."""
    return float(np.mean([matrix[first, second] for first, second in combinations(subset, 2)]))


def test_small_registries() -> None:
    for models, size in ((2, 2), (5, 3), (8, 2), (8, 5), (8, 8), (13, 6), (13, 12)):
        matrix = similarities(models, seed=10 * models + size)
        best = max(combinations(range(models), size), key=lambda subset: mean_pair(matrix, subset))
        result = find(PairScores(matrix), size, steps=300)
        assert result.members == best
        assert result.score == pytest.approx(mean_pair(matrix, best), abs=1e-12)
    # All items together are found at once.
    matrix = similarities(5, seed=0)
    (result,) = search_subsets(PairScores(matrix), 5)
    assert result.members == tuple(range(5))


@pytest.mark.parametrize("size", [2, 3, 7])
def test_scores_of_pairs_with_and_without_each(size: int) -> None:
    matrix = similarities(9, seed=size) - 0.5
    scores, members = PairScores(matrix), np.arange(size)
    scores.offer(np.arange(9))
    joined = [mean_pair(matrix, (*range(size), model)) for model in range(size, 9)]
    np.testing.assert_allclose(scores.joining(members, np.arange(size, 9)), joined, atol=1e-12)
    if size > 2:
        left = [mean_pair(matrix, tuple(set(range(size)) - {model})) for model in range(size)]
        np.testing.assert_allclose(scores.leaving(members), left, atol=1e-12)


def test_a_family_that_growth_misses_is_found() -> None:
    # Every growth from the family goes astray to a decoy; the trap is a subset that no exchange leaves.
    family, trap, decoys = np.arange(5), np.arange(5, 10), np.arange(10, 15)
    matrix = np.zeros((15, 15))
    matrix[np.ix_(family, family)] = 0.9
    matrix[np.ix_(trap, trap)] = 0.8
    matrix[family, decoys] = matrix[decoys, family] = 1
    assert find(PairScores(matrix), 5, steps=300).members == tuple(family)


def test_results_depend_on_the_seed_alone_and_more_steps_are_never_worse() -> None:
    for scores in (PairScores(similarities(60, seed=3)), StimulusScores(make_catalog(80, seed=0, widths=(20, 30)))):
        runs = [list(islice(search_subsets(scores, 10, seed), 40)) for seed in (4, 4, 5)]
        assert runs[0] == runs[1] != runs[2]
        values = [result.score for result in runs[0]]
        assert values == sorted(values)


def test_random_subsets_have_the_scores_of_subsets() -> None:
    matrix = similarities(7, seed=3)
    values = random_scores(PairScores(matrix), 3, draws=500, seed=1)
    every = np.array([mean_pair(matrix, subset) for subset in combinations(range(7), 3)])
    indices = np.abs(values[:, None] - every).argmin(axis=1)
    np.testing.assert_allclose(values, every[indices], atol=1e-12)
    # All 35 subsets are as likely: each comes up, and about 500 / 35 times.
    counts = np.bincount(indices, minlength=len(every))
    assert counts.min() > 0
    assert counts.max() < 40
    np.testing.assert_array_equal(values, random_scores(PairScores(matrix), 3, draws=500, seed=1))


def test_sizes_that_no_submission_has() -> None:
    scores = PairScores(similarities(5, seed=0))
    for size in (-1, 0, 1, 6):
        for search in (lambda: next(search_subsets(scores, size)), lambda: random_scores(scores, size, 1)):  # noqa: B023
            with pytest.raises(ValueError, match=rf"size: {size} of 5 models .* at least 2 and at most 5"):
                search()

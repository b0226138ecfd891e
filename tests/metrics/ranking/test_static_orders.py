"""Orders that know nothing of the target, against loops with SciPy."""

import math
from itertools import combinations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from headstart.metrics.ranking.ranking_measures import EVALUATION_MEASURES
from headstart.metrics.ranking.static_orders import (
    mean_ranks_elsewhere,
    mean_spearman,
    measure_targets,
    partial_kendall,
    performance_ranks,
    scores_differ,
)

Values = NDArray[np.float64]


def draw(seed: int, distinct: int | None = None) -> tuple[Values, NDArray[np.bool_]]:
    """Draw performances of 7 sources on 5 targets, of which the first two are sources, too."""
    generator = np.random.default_rng(seed)
    performances = generator.uniform(size=(7, 5))
    if distinct is not None:
        performances = np.ceil(distinct * performances)
    known = np.ones((7, 5), dtype=np.bool_)
    known[0, 0] = known[1, 1] = False
    return performances, known


@pytest.mark.parametrize("distinct", [None, 3])
def test_mean_ranks_are_those_of_the_other_targets(distinct: int | None) -> None:
    performances, known = draw(0, distinct)
    result = mean_ranks_elsewhere(performance_ranks(performances, known))
    for source, target in np.ndindex(7, 5):
        ranks = [
            stats.rankdata(-performances[known[:, column], column])[known[:source, column].sum()]
            for column in range(5)
            if column != target and known[source, column]
        ]
        if known[source, target]:
            assert result[source, target] == pytest.approx(np.mean(ranks), abs=1e-12)
        else:
            assert math.isnan(result[source, target])


@pytest.mark.parametrize("distinct", [None, 3])
def test_targets_are_measured_one_by_one(distinct: int | None) -> None:
    performances, known = draw(2, distinct)
    scores = np.random.default_rng(3).normal(size=(3, 7, 5))
    scores[1, 2, 3] = np.nan
    result = measure_targets(scores, performances, known)
    for ranker, target in np.ndindex(3, 5):
        rows = known[:, target]
        for index, measure in enumerate(EVALUATION_MEASURES.values()):
            if (ranker, target) == (1, 3):
                assert math.isnan(result[ranker, target, index])
                continue
            expected = measure.compute(scores[ranker, rows, target], performances[rows, target])
            assert result[ranker, target, index] == pytest.approx(expected, abs=1e-12, nan_ok=True)


def signs(values: Values) -> Values:
    return np.array([np.sign(a - b) for a, b in combinations(values, 2)])


@pytest.mark.parametrize("distinct", [None, 4])
def test_partial_kendall_is_the_cosine_of_what_a_projection_leaves(distinct: int | None) -> None:
    generator = np.random.default_rng(4)
    control = generator.normal(size=9) if distinct is None else generator.integers(distinct, size=9).astype(float)
    for noise in (0.3, 1, 3):
        first, second = (control + noise * generator.normal(size=9) for _ in range(2))
        third = signs(control)
        left = [signs(values) - (signs(values) @ third) / (third @ third) * third for values in (first, second)]
        expected = left[0] @ left[1] / np.linalg.norm(left[0]) / np.linalg.norm(left[1])
        assert partial_kendall(first, second, control) == pytest.approx(expected, abs=1e-12)


def test_partial_kendall_of_what_leaves_nothing_is_undefined() -> None:
    control, other = np.arange(5.0), np.array([2.0, 1, 0, 4, 3])
    assert math.isnan(partial_kendall(control, other, control))
    assert math.isnan(partial_kendall(other, -control, control))
    assert math.isnan(partial_kendall(other, other, np.ones(5)))
    assert partial_kendall(other, other, control) == pytest.approx(1)


@pytest.mark.parametrize("distinct", [None, 3])
def test_mean_spearman_is_the_mean_over_pairs_of_targets(distinct: int | None) -> None:
    performances, known = draw(5, distinct)
    pairs = []
    for one, other in combinations(range(5), 2):
        both = known[:, one] & known[:, other]
        pairs.append(stats.spearmanr(performances[both, one], performances[both, other]).statistic)
    assert mean_spearman(performances, known) == pytest.approx(np.mean(pairs), abs=1e-12)


def test_rounding_errors_rank_no_sources() -> None:
    performances, everywhere = np.array([[0.1], [0.2], [0.4]]), np.full((3, 1), True)
    together = [[4.0, 4.0 + 1e-12, 4.0 - 1e-12], [0.0, 0.0, 0.0], [1.0, np.nan, 2.0], [1.0, np.inf, 2.0]]
    apart = [[4.0, 4.0 + 1e-8, 4.0], [1e-20, 2e-20, 1e-20], [-3.0, 3.0, 0.0]]
    for scores in [*together, *apart]:
        assert bool(scores_differ(np.array(scores))) is (scores in apart)
        measured = measure_targets(np.array(scores)[None, :, None], performances, everywhere)
        assert np.isfinite(measured).all() == np.isfinite(measured).any() == (scores in apart)


def test_mean_spearman_gives_kendalls_w() -> None:
    """Kendall and Babington Smith, 1939: W = 12 S / (t^2 (n^3 - n)), S of the sums of ranks about their mean."""
    performances = draw(6)[0]
    sums = stats.rankdata(performances, axis=0).sum(axis=1)
    expected = 12 * ((sums - sums.mean()) ** 2).sum() / (5**2 * (7**3 - 7))
    rho = mean_spearman(performances, np.ones((7, 5), dtype=bool))
    assert (1 + 4 * rho) / 5 == pytest.approx(expected, abs=1e-12)

"""The component that changes the outcome most is found on outcomes whose agreement is known."""

import numpy as np
import pytest
from scipy import stats

from headstart.contract.tables.table import TransferTable
from headstart.evaluation.stability.study import run_study
from headstart.evaluation.stability.study_tables import (
    moves_most,
    moves_most_in_words,
    setup_stability_interval,
    setup_stability_rows,
)
from headstart.metrics.ranking.outcomes import Agreements
from headstart.metrics.ranking.pools import Pools
from headstart.tests.material import score_tables

PERFORMANCES = np.array([0.1, 0.3, 0.6, 0.8])


def make_table(signs: list[list[int]]) -> TransferTable:
    """Build a table in which metric m is right on target t by `signs[m][t]` of 1, and the wrong way round by -1."""
    scores = np.array(signs)[:, None, :] * PERFORMANCES[:, None]
    return score_tables.make_table(scores, np.repeat(PERFORMANCES[:, None], scores.shape[2], axis=1))


def test_the_target_moves_most_with_an_interval_by_the_jackknife() -> None:
    """Metric m0 wins on one of eight targets, m1 on the others: 21 of 28 pairs agree, 7 are contrary."""
    study = run_study(make_table([[1, *[-1] * 7], [-1, *[1] * 7]]), Pools(4, 3))
    comparison = moves_most(study)
    assert comparison is not None
    assert study.setup_stability["target"].mean == pytest.approx(1 / 2)
    assert (comparison["component"], comparison["unless_without"]) == ("target", [])
    assert comparison["difference"] == pytest.approx(1 / 2), "by the others all agree"
    # All agree without the first; 15 of 21 pairs agree and 6 disagree without another.
    without = np.array([1, *[3 / 7] * 7])
    half = stats.t.ppf(0.975, 7) * (7 / 8 * ((without - without.mean()) ** 2).sum()) ** 0.5
    assert comparison["ci95"] == pytest.approx([1 / 2 - half, 1 / 2 + half])
    assert comparison["p_value"] == pytest.approx(2 * stats.t.sf(0.5 / (half / stats.t.ppf(0.975, 7)), 7))
    assert setup_stability_interval(study, "target") == pytest.approx((1 / 2 - half, 1))
    assert np.isnan(setup_stability_interval(study, "pool")).all(), "the same without any target"
    [words] = moves_most_in_words(comparison, setup_stability_rows(study))
    assert words == (
        "The target changes the outcome most. Two experiments that differ only in it agree by 0.50 [-0.68, 1.00]. "
        "This is 0.50 [-0.68, 1.68] less than for two that differ only in the measure, which is not a significant "
        "difference."
    )


def test_a_target_that_decides_is_named_and_one_component_alone_is_compared_with_nothing() -> None:
    study = run_study(make_table([[1, -1, 1], [-1, 1, -1]]), Pools(4, 3))
    one, groups = np.array([1]), np.ones(3, dtype=np.int64)
    study.by_batch = {"target": Agreements(np.array([0.2]), one), "measure": Agreements(np.array([0.5]), one)}
    study.by_target = {
        "target": Agreements(np.array([0.6, 0.1, 0.15]), groups),
        "measure": Agreements(np.array([0.5, 0.5, 0.5]), groups),
        "pool": Agreements.zeros(3),
    }
    comparison = moves_most(study)
    assert comparison is not None
    assert (comparison["component"], comparison["next"], comparison["unless_without"]) == ("target", "measure", ["t0"])
    assert comparison["difference"] == pytest.approx(0.3)
    [words] = moves_most_in_words(comparison, setup_stability_rows(study))
    assert words.startswith("The target changes the outcome most, unless t0 is left out. Two experiments")
    alone = run_study(make_table([[1], [-1]]), Pools(4, 4))
    assert (moves_most(alone), moves_most_in_words(None, [])) == (None, [])

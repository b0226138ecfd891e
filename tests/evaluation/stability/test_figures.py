"""Correlations of scores, which a figure of many metrics shows, against SciPy."""

import warnings

import numpy as np
from scipy import stats

from headstart.evaluation.stability.figures import plot_agreement, score_correlations
from headstart.tests.material.score_tables import make_table


def test_correlations_of_scores_are_those_of_scipy() -> None:
    generator = np.random.default_rng(0)
    scores, performances = generator.normal(size=(4, 7, 3)), generator.uniform(size=(7, 3))
    table = make_table(scores, performances)
    table.known[2, 1] = False
    table.scores[3, :, 0] = 1.5
    table.scores[1, :4, 2] = 0
    expected = np.full((4, 4), np.nan)
    for one, other in np.ndindex(4, 4):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", stats.ConstantInputWarning)
            values = [
                stats.spearmanr(table.scores[one, known, t], table.scores[other, known, t]).statistic
                for t, known in enumerate(table.known.T)
            ]
        expected[one, other] = np.nanmean(values)
    np.testing.assert_allclose(score_correlations(table), expected, atol=1e-12)
    drawn = [text.get_text().replace("−", "-") for text in plot_agreement(table).axes[0].texts]
    assert drawn == [f"{value:.2f}" for value in expected.ravel()]

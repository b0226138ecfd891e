"""What single metrics keep or tell apart: closed forms, pools, ties, probes, folds and starts."""

import math
from typing import Any

import numpy as np
import pytest
import scipy.optimize
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression

from headstart.metrics import etran, gbc, h_score, knn_accuracy, n_leep, ncti, ncti_terms, parc, trans_rate
from headstart.metrics.transferability import knn
from headstart.metrics.transferability.feature_statistics import FeatureStatistics
from headstart.metrics.transferability.linear_probe import fit_logistic
from headstart.metrics.transferability.n_leep import prepare_n_leep
from headstart.tests.material import metric_formulas as formulas
from headstart.tests.material.discriminants import probabilities
from headstart.tests.material.metric_formulas import labelled


def test_the_released_gbc_leaves_out_the_dimensions_of_the_spherical_determinant() -> None:
    # Two spheres about one centre, with variances of 1 and 4 in d dimensions.
    d, signs = 6, np.array([1.0, -1.0])
    spheres = np.concatenate([radius * signs[:, None, None] * np.eye(d) * math.sqrt(d) for radius in (1, 2)])
    rows, labels, base = spheres.reshape(-1, d), np.repeat([0, 1], 2 * d), math.sqrt(1 * 2) / 2.5**0.5
    assert gbc(rows, labels, pca=None) == pytest.approx(-2 * base**d, rel=1e-12)
    assert gbc(rows, labels, pca=None, variant="released") == pytest.approx(-2 * base, rel=1e-12)


def test_with_fewer_samples_than_features_the_h_score_explains_every_class() -> None:
    x, labels = labelled(20, 100, 4)
    # The scores are equal to the last digit, so that such sources tie.
    assert all(h_score(labelled(20, 100, 4, seed=seed)[0], labels) == 3 for seed in range(20))
    assert h_score(x[:, :19], labels) == 3 > h_score(x[:, :18], labels)
    assert h_score(x, labels, shrinkage=True) < 2.99


def test_trans_rate_of_huge_features_is_the_limit_of_determinants_of_second_moments() -> None:
    x, labels = labelled(80, 6, 4)
    centred = x - x.mean(0)
    parts = [centred[labels == label] for label in range(4)]
    whole, *classes = (np.linalg.slogdet(rows.T @ rows / len(rows))[1] / 2 for rows in (centred, *parts))
    assert trans_rate(1e60 * x, labels) == pytest.approx(whole - np.mean(classes), rel=1e-9)


def test_neighbours_block_by_block_with_equal_votes_and_whatever_the_lengths(monkeypatch: pytest.MonkeyPatch) -> None:
    x, labels = labelled(80, 6)
    expected = formulas.knn(x, labels)
    assert knn_accuracy(x[:15], labels[:15], 1000) == formulas.knn(x[:15], labels[:15], 14)
    assert knn_accuracy(np.random.default_rng(1).uniform(0.1, 10, (80, 1)) * x, labels) == pytest.approx(expected)
    assert knn_accuracy(np.tile(x, (2, 1)), np.tile(labels, 2), neighbours=1) == 1
    monkeypatch.setattr(knn, "BLOCK", 7 * 80)
    assert knn_accuracy(x, labels) == pytest.approx(expected, abs=1e-12)
    # Each sample sees one of its class and one of the other, both at the same angle.
    x, labels = np.array([[1.0, 0], [0, 1], [-1, 0], [0, -1]]), np.array([0, 0, 1, 1])
    order = [2, 0, 3, 1]
    assert knn_accuracy(x, labels, 1) == knn_accuracy(x, 1 - labels, 1) == pytest.approx(0.5)
    assert knn_accuracy(x[order], labels[order], 1) == pytest.approx(0.5)


def test_parc_of_components_of_probes_and_of_classes_that_lie_apart() -> None:
    x, labels = labelled(60, 30, 7, 0.5)
    x[:, 1] = 0.1
    expected = formulas.parc(x, labels, variant="released")
    assert parc(x, labels, variant="released") == pytest.approx(expected, rel=1e-9), "a constant feature does not count"
    x, labels = labelled(600, 100, 3, 0.5)
    low_rank = np.outer(x[:60, 0], x[0]) + np.outer(x[:60, 1], x[1])
    assert parc(low_rank, labels[:60], components=6) == pytest.approx(parc(low_rank, labels[:60], components=2))
    whole, scores = parc(x, labels), [parc(x, labels, probes=200, seed=seed) for seed in range(3)]
    assert len({whole, *scores}) == 4
    assert scores == pytest.approx([whole] * 3, abs=0.05)
    assert parc(x, labels, probes=200, seed=1) == scores[1]
    # Rows of the same three values have five different distances, and not equally often.
    tied = np.random.default_rng(0).permuted(np.tile(np.arange(3.0), (60, 1)), axis=1) ** 2
    assert parc(tied, labels[:60]) == pytest.approx(formulas.parc(tied, labels[:60]), rel=1e-9)
    far, near, nearest = (parc(*labelled(60, 20, 3, apart)) for apart in (100, 0.5, 0.2))
    assert far > 0.8 > near > nearest > 0


def test_ncti_shrinks_by_the_variances_along_32_of_64_components() -> None:
    x, labels = labelled(200, 90, 3, 0.5, 0.15)
    components = PCA(64, svd_solver="full").fit(x)
    shrinkage = math.exp(-components.explained_variance_[:32].sum())
    expected = formulas.of_own(probabilities(components.transform(x), labels, shrinkage), labels).mean()
    assert ncti_terms(x, labels)[1] == pytest.approx(expected, rel=1e-9)


def test_scores_compare_a_pool() -> None:
    terms = np.array([[3.0, 0.5], [7.0, 0.9], [4.0, 0.8]])
    assert etran(terms).tolist() == pytest.approx([0, 1, 0.15 / 4 + 0.85 * 0.75])
    assert etran(terms[:1]).tolist() == [0]
    assert etran(terms[1:], terms[::2]).tolist() == pytest.approx([0.15 * 4 + 0.85 * 4 / 3, 0.15 + 0.85])
    # Probabilities that saturate differ by rounding errors.
    terms[:, 1] = 1 - np.array([0, 2e-16, 3e-13])
    assert etran(terms).tolist() == pytest.approx([0, 0.15, 0.15 / 4])

    terms = np.array([[10.0, 0.5, 3.0], [20.0, 0.9, 1.0], [15.0, 0.6, 2.0]])
    assert ncti(terms).tolist() == pytest.approx([-1, 2, 0.5 + 0.25 - 0.5])
    assert ncti(np.stack([terms, terms[::-1]])).tolist() == [ncti(terms).tolist(), ncti(terms)[::-1].tolist()]


def test_n_leep_is_the_mean_over_fits_of_which_more_begin_with_the_same() -> None:
    statistics = FeatureStatistics(*labelled(200, 10, 4, 0.3))
    few, many = (prepare_n_leep(statistics, fits=fits, seed=2)(np.ones(200, dtype=bool)) for fits in (3, 5))
    assert few.tolist() == many[:3].tolist()
    assert len(set(many)) == 5
    assert n_leep(statistics, fits=5, seed=2) == pytest.approx(many.mean(), rel=1e-12)


def test_a_probe_of_spreads_of_all_orders_of_magnitude_takes_few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    # Nearly collinear features as of a network: without their own units the same fit takes more than 2,000 steps.
    generator = np.random.default_rng(0)
    labels = np.sort(np.arange(300) % 3)
    rows = generator.standard_normal((300, 40)) * np.geomspace(1000, 0.01, 40) + 0.3 * labels[:, None]
    rows -= rows.mean(0)
    results, minimise = [], scipy.optimize.minimize

    def counted(*args: Any, **options: Any) -> Any:
        results.append(minimise(*args, **options))
        return results[-1]

    monkeypatch.setattr(scipy.optimize, "minimize", counted)
    weight, intercept = fit_logistic(rows, labels, 3, 0.5, tolerance=1e-9)
    assert sum(result.nit for result in results) < 200
    expected = LogisticRegression(C=2, solver="newton-cholesky", tol=1e-12, max_iter=1000).fit(rows, labels)
    scores = np.exp(rows @ weight + intercept)
    np.testing.assert_allclose(scores / scores.sum(1, keepdims=True), expected.predict_proba(rows), atol=1e-5)
    np.testing.assert_allclose(weight - weight.mean(1, keepdims=True), expected.coef_.T, atol=1e-4)

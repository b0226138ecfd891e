"""ETran against SciPy's log-sum-exp, scikit-learn's discriminants and the steps of the released program."""

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import logsumexp, softmax

from headstart.metrics.transferability.etran import etran, etran_terms
from headstart.tests.material.discriminants import probabilities, within


@pytest.mark.parametrize(("samples", "features", "lowest"), [(120, 6, 1), (30, 50, 1), (1000, 8, 5)])
def test_terms_as_written_out(samples: int, features: int, lowest: int) -> None:
    generator = np.random.default_rng(0)
    labels = generator.permutation(np.arange(samples) % 3)
    x = 0.3 * (generator.standard_normal((samples, features)) + generator.standard_normal((3, features))[labels]) + 1
    shrinkage = float(np.exp(-5 * np.linalg.eigvalsh(within(x, labels))[-1]))
    own = probabilities(x, labels, shrinkage)[np.arange(samples), labels]
    energy = np.sort(logsumexp(x, axis=1))[:lowest].mean()
    assert etran_terms(x, labels, variant="published") == pytest.approx((energy, own.mean()), rel=1e-9)
    assert etran_terms(x, labels) == pytest.approx((energy, step_by_step(x, labels, shrinkage)), rel=1e-9)


def step_by_step(x: NDArray[np.float64], labels: NDArray[np.int64], shrinkage: float) -> float:
    """Follow the released program, which decomposes a matrix that is not symmetric by its lower triangle."""
    means = np.stack([x[labels == label].mean(0) for label in np.unique(labels)])
    covariances = [np.cov(x, rowvar=False, ddof=0), within(x, labels)]
    total, inside = (
        (1 - shrinkage) * each + shrinkage * np.trace(each) / len(each) * np.eye(len(each)) for each in covariances
    )
    _, vectors = np.linalg.eigh(np.linalg.inv(inside) @ (total - inside))
    weights = means @ vectors @ vectors.T
    scores = x @ weights.T - np.diag(means @ weights.T) / 2 + np.log(np.bincount(labels) / len(labels))
    return float(softmax(scores, axis=1)[np.arange(len(x)), labels].mean())


def test_the_released_variant_tells_sources_apart_where_all_samples_are_told_apart() -> None:
    generator = np.random.default_rng(0)
    labels, noise = np.arange(40) % 2, generator.standard_normal((40, 200))
    near, far = (0.2 * noise + apart * np.eye(2, 200)[labels] for apart in (1.0, 0.5))
    assert etran_terms(near, labels, "published")[1] == pytest.approx(
        etran_terms(far, labels, "published")[1], abs=1e-3
    )
    assert etran_terms(near, labels)[1] > etran_terms(far, labels)[1] + 0.01


def test_terms_at_their_ends() -> None:
    labels = np.array([0] * 7 + [1] * 3)
    assert etran_terms(np.full((10, 4), 0.1), labels) == pytest.approx((0.1 + np.log(4), 0.7**2 + 0.3**2))
    assert etran_terms(np.full((10, 4), 1000.0), np.zeros(10, dtype=int)) == pytest.approx((1000 + np.log(4), 1))


def test_scores_compare_a_pool() -> None:
    terms = np.array([[3.0, 0.5], [7.0, 0.9], [4.0, 0.8]])
    assert etran(terms).tolist() == pytest.approx([0, 1, 0.15 / 4 + 0.85 * 0.75])
    assert etran(terms[:1]).tolist() == [0]
    assert etran(terms[:2], terms).tolist() == pytest.approx([0, 1])
    assert etran(terms[1:], terms[::2]).tolist() == pytest.approx([0.15 * 4 + 0.85 * 4 / 3, 0.15 + 0.85])
    # Probabilities that saturate differ by rounding errors.
    terms[:, 1] = 1 - np.array([0, 2e-16, 3e-13])
    assert etran(terms).tolist() == pytest.approx([0, 0.15, 0.15 / 4])

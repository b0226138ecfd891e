"""The linear probe against scikit-learn's logistic regression on the same folds."""

from typing import Any

import numpy as np
import pytest
import scipy.optimize
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from headstart.metrics.transferability.linear_probe import fit_logistic, linear_probe_accuracy, sample_folds


def sample(samples: int, features: int, classes: int, apart: float) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return samples sorted by class, as the metric keeps them."""
    generator = np.random.default_rng(0)
    labels = np.sort(np.arange(samples) % classes)
    centres = apart * generator.standard_normal((classes, features))
    return generator.standard_normal((samples, features)) * np.geomspace(1, 100, features) + centres[labels], labels


@pytest.mark.parametrize(("samples", "features", "classes"), [(120, 5, 3), (200, 8, 5), (60, 100, 4)])
def test_as_scikit_learn_on_the_same_folds(samples: int, features: int, classes: int) -> None:
    x, labels = sample(samples, features, classes, 1.0)
    folds = sample_folds(np.bincount(labels), 4, 7)
    accuracies = []
    for fold in range(4):
        probe = make_pipeline(StandardScaler(), LogisticRegression(tol=1e-8, max_iter=10_000))
        probe.fit(x[folds != fold], labels[folds != fold])
        accuracies.append(probe.score(x[folds == fold], labels[folds == fold]))
    expected = float(np.mean(accuracies))
    assert 1 / classes < expected < 1
    assert linear_probe_accuracy(x, labels, folds=4, seed=7) == pytest.approx(expected, abs=1e-12)


def test_folds_share_every_class_alike() -> None:
    sizes = np.array([11, 1, 3, 40, 7])
    folds = sample_folds(sizes, 4, 0)
    ends = np.cumsum(sizes)
    for size, end in zip(sizes.tolist(), ends.tolist(), strict=True):
        shares = np.bincount(folds[end - size : end], minlength=4)
        assert shares.max() - shares.min() <= 1
    totals = np.bincount(folds)
    assert totals.max() - totals.min() <= 1
    assert not np.array_equal(folds, sample_folds(sizes, 4, 1))


def test_edge_cases() -> None:
    x, _ = sample(40, 3, 2, 1.0)
    # The larger class is predicted where there is no spread.
    assert linear_probe_accuracy(np.full((40, 2), 0.1), (np.arange(40) >= 30).astype(int)) == 0.75
    assert linear_probe_accuracy(x, np.zeros(40, dtype=int)) == 1
    # A class with one sample is missed once.
    assert linear_probe_accuracy(x * 0, np.array([0] * 39 + [1]), folds=40) == pytest.approx(39 / 40)


def test_spreads_of_all_orders_of_magnitude_take_few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    # Nearly collinear features as of a network: without their own units the same fit takes more than 2,000 steps.
    generator = np.random.default_rng(0)
    labels = np.sort(np.arange(300) % 3)
    rows = generator.standard_normal((300, 40)) * np.geomspace(1000, 0.01, 40) + 0.3 * labels[:, None]
    rows -= rows.mean(0)
    steps = 0
    minimise = scipy.optimize.minimize

    def counted(*args: Any, **options: Any) -> Any:
        nonlocal steps
        result = minimise(*args, **options)
        steps += result.nit
        return result

    monkeypatch.setattr(scipy.optimize, "minimize", counted)
    weight, intercept = fit_logistic(rows, labels, 3, 0.5, tolerance=1e-9)
    assert steps < 200
    expected = LogisticRegression(C=2, solver="newton-cholesky", tol=1e-12, max_iter=1000).fit(rows, labels)
    fitted = expected.predict_proba(rows)
    scores = np.exp(rows @ weight + intercept)
    np.testing.assert_allclose(scores / scores.sum(1, keepdims=True), fitted, atol=1e-5)
    np.testing.assert_allclose(weight - weight.mean(1, keepdims=True), expected.coef_.T, atol=1e-4)

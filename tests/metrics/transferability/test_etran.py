"""ETran against SciPy's log-sum-exp and scikit-learn's discriminants."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import logsumexp

from metrics.transferability.etran import etran
from tests.material.discriminants import probabilities, within


@pytest.mark.parametrize(("samples", "features"), [(120, 6), (30, 50)])
def test_as_written_out(samples: int, features: int) -> None:
    generator = np.random.default_rng(0)
    labels = generator.permutation(np.arange(samples) % 3)
    x = 0.3 * (generator.standard_normal((samples, features)) + generator.standard_normal((3, features))[labels]) + 1
    shrinkage = float(np.exp(-5 * np.linalg.eigvalsh(within(x, labels))[-1]))
    own = probabilities(x, labels, shrinkage)[np.arange(samples), labels]
    assert etran(x, labels) == pytest.approx(logsumexp(x, axis=1).mean() + own.mean(), rel=1e-9)


def test_its_ends() -> None:
    labels = np.array([0] * 7 + [1] * 3)
    assert etran(np.full((10, 4), 0.1), labels) == pytest.approx(0.1 + np.log(4) + 0.7**2 + 0.3**2)
    assert etran(np.full((10, 4), 1000.0), np.zeros(10, dtype=int)) == pytest.approx(1000 + np.log(4) + 1)

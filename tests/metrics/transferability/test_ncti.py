"""NCTI against its steps, written out over scikit-learn's principal components and discriminants."""

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from headstart.metrics.transferability.ncti import ncti, ncti_terms


def sample(
    samples: int, features: int, classes: int, scale: float = 2.0, seed: int = 0
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    generator = np.random.default_rng(seed)
    labels = generator.permutation(np.arange(samples) ** 2 // (samples + 1) % classes)
    centres = generator.standard_normal((classes, features))
    return scale * (generator.standard_normal((samples, features)) + centres[labels]) + 1, labels


@pytest.mark.parametrize(("samples", "features", "classes"), [(150, 20, 3), (200, 90, 2), (300, 100, 5)])
def test_terms_as_written_out(samples: int, features: int, classes: int) -> None:
    x, labels = sample(samples, features, classes)
    rows = PCA(min(64, features), svd_solver="full").fit_transform(x)
    model = LinearDiscriminantAnalysis(solver="svd")
    axes = model.fit_transform(rows, labels)
    probabilities = model.predict_proba(rows)
    seli = np.linalg.norm(axes - axes.mean(0), ord="nuc")
    ncc = probabilities[np.arange(samples), labels].mean()
    vc = np.log(sum(np.linalg.norm(probabilities[labels == label], ord="nuc") for label in range(classes)))
    assert ncti_terms(x, labels) == pytest.approx((seli, ncc, vc), rel=1e-6)


def test_scores_compare_a_pool() -> None:
    terms = np.array([[10.0, 0.5, 3.0], [20.0, 0.9, 1.0], [15.0, 0.6, 2.0]])
    assert ncti(terms).tolist() == pytest.approx([-1, 2, 0.5 + 0.25 - 0.5])
    assert ncti(np.stack([terms, terms[::-1]])).tolist() == [ncti(terms).tolist(), ncti(terms)[::-1].tolist()]
    assert ncti(terms[:1]).tolist() == [0]
    terms[:, 1] = 0.7
    assert ncti(terms).tolist() == pytest.approx([-1, 1, 0])


def test_one_class_or_constant_features_raise_an_error() -> None:
    x, labels = sample(60, 5, 3)
    for features, classes in ((x, np.zeros(60, dtype=int)), (np.ones((60, 4)), labels)):
        with pytest.raises(ValueError, match="two classes and features that differ"):
            ncti_terms(features, classes)

"""Linear discriminants with a given covariance, by scikit-learn."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

Rows = NDArray[np.float64]
Labels = NDArray[np.int64]


class Shrunk(BaseEstimator):  # type: ignore[misc]
    """Estimate a class's covariance, mixed with its mean variance in all directions."""

    def __init__(self, shrinkage: float = 0.0) -> None:
        self.shrinkage = shrinkage

    def fit(self, rows: Rows) -> Any:
        covariance = np.cov(rows, rowvar=False, ddof=0)
        mean = np.trace(covariance) / len(covariance) * np.eye(len(covariance))
        self.covariance_ = (1 - self.shrinkage) * covariance + self.shrinkage * mean
        return self


def probabilities(rows: Rows, labels: Labels, shrinkage: float) -> Rows:
    """Return the probabilities of the classes of the rows that it is fitted to."""
    model = LinearDiscriminantAnalysis(solver="lsqr", covariance_estimator=Shrunk(shrinkage)).fit(rows, labels)
    # The decision function of two classes is the difference of two scores.
    result: Rows = model.predict_proba(rows)
    return result


def within(rows: Rows, labels: Labels) -> Rows:
    """Return the covariance within classes, weighted with their shares."""
    parts = [rows[labels == label] for label in np.unique(labels)]
    return np.asarray(sum(len(part) * np.cov(part, rowvar=False, ddof=0) for part in parts)) / len(rows)

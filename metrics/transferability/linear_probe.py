"""Accuracy of a linear probe under cross-validation."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headstart.metrics.arrays import Array, Flags, Floats, check_integer
from headstart.metrics.transferability.feature_statistics import FeatureStatistics, decompose, statistics_of

PENALTY = 1.0
GRADIENT_TOLERANCE = 1e-7
ITERATIONS = 1000
# The mean of p (1 - p) that scales are set for; iterations are nearly the same for 0.01 to 0.25.
CURVATURE = 0.02
# The steps in float32 end where the loss falls by less than this share, which is far above their rounding.
COARSE = 1e-6


def linear_probe_accuracy(
    features: Array | FeatureStatistics, labels: Array | None = None, folds: int = 5, seed: int = 0
) -> float:
    """Measure how well logistic regression on the features predicts the labels of samples it was not fitted to.

    Each fold is predicted by a fit to the other folds. The features are standardised with the mean and the standard
    deviation of the fitted samples. The fit minimises `|W|^2 / 2 + sum of cross-entropies` with an unpenalised
    intercept, as scikit-learn's `LogisticRegression` does. Folds are sampled class by class, so that each has its share
    of every class, give or take one sample.

    Args:
        features: `[samples, features]`, or their statistics.
        labels: `[samples]`.
        folds: How many, from 2 to the number of samples.
        seed: Seed of the folds.

    Returns:
        Mean accuracy over folds. The only sample of a class is never predicted correctly.

    Raises:
        ValueError: The number of folds or the seed is out of range, or the features or labels do not fit.
    """
    statistics = statistics_of(features, labels)
    return prepare_linear_probe(statistics, folds, seed)(np.ones(statistics.samples, dtype=bool))


def prepare_linear_probe(statistics: FeatureStatistics, folds: int = 5, seed: int = 0) -> Callable[[Flags], float]:
    """Predict every sample once, and return the accuracy on some samples as a function of their mask.

    The mask is `[samples]` in the order of the statistics. The fits are not repeated without the other samples.

    Args:
        statistics: Of all samples.
        folds: As `linear_probe_accuracy`.
        seed: As `linear_probe_accuracy`.
    """
    check_integer("folds", folds, 2)
    check_integer("seed", seed, 0)
    if folds > statistics.samples:
        raise ValueError(f"folds must be at most the number of samples, {statistics.samples}, not {folds}")

    fold_of = sample_folds(statistics.class_sizes, folds, seed)
    correct = np.empty(statistics.samples)
    for fold in range(folds):
        correct[fold_of == fold] = _predict(statistics, fold_of == fold)

    def score(kept: Flags) -> float:
        return float(np.mean([correct[kept & (fold_of == fold)].mean() for fold in np.unique(fold_of[kept])]))

    return score


def sample_folds(class_sizes: NDArray[np.int64], folds: int, seed: int) -> NDArray[np.int64]:
    """Sample the fold of every sample, from 0, class by class: for samples sorted by class, `[samples]`."""
    generator = np.random.default_rng(seed)
    turns = np.arange(class_sizes.sum()) % folds
    return np.concatenate([generator.permutation(part) for part in np.split(turns, np.cumsum(class_sizes)[:-1])])


def _predict(statistics: FeatureStatistics, held_out: Flags) -> Flags:
    """Predict the held-out samples by a fit to the others, and return which predictions are correct."""
    centred = statistics.centred
    rows, predicted = (centred[np.flatnonzero(part)] for part in (~held_out, held_out))
    mean, deviation = rows.mean(0), np.sqrt(((rows - rows.mean(0)) ** 2).mean(0))
    deviation = np.where(deviation > 0, deviation, np.ones_like(deviation))
    present, codes = np.unique(statistics.labels[~held_out], return_inverse=True)
    rows, predicted = (rows - mean) / deviation, (predicted - mean) / deviation

    # The penalty keeps the weights within the axes along which rows differ, and does not change under rotation.
    axes = _principal_axes(rows)
    weight, intercept = fit_logistic(rows @ axes, codes, len(present), PENALTY)
    scores = (predicted @ axes) @ weight + intercept
    return np.asarray(present[scores.argmax(1)] == statistics.labels[held_out])


def _principal_axes(rows: Floats) -> Floats:
    """Find the orthonormal axes along which centred rows `[samples, features]` differ, `[features, rank]`."""
    samples, features = rows.shape
    rounding = max(samples, features) * np.finfo(np.float64).eps
    squares, vectors = decompose(rows.T @ rows if features <= samples else rows @ rows.T, rounding)
    rank = int((squares > 0).sum())
    vectors = vectors[:, :rank]
    return vectors if features <= samples else rows.T @ vectors / np.sqrt(squares[:rank])


def fit_logistic(
    rows: Floats,
    labels: NDArray[np.int64],
    classes: int,
    penalty: float,
    tolerance: float = GRADIENT_TOLERANCE,
    loss_tolerance: float = 0.0,
) -> tuple[Floats, Floats]:
    """Fit logistic regression, `penalty |W|^2 / 2 + sum of cross-entropies`, the intercepts unpenalised.

    Along every feature, the weights are fitted in units in which the sum is about equally curved. On principal
    components, whose spreads differ by orders of magnitude, this takes tens of iterations instead of hundreds to
    thousands. The first iterations are in float32, which takes half the time. Once rounding would disturb the loss,
    they are in float64.

    Args:
        rows: `[samples, features]`, principal components for speed.
        labels: From 0, `[samples]`.
        classes: How many.
        penalty: Weight of the squares.
        tolerance: The fit ends at a gradient per sample whose largest element, in those units, is at most this.
        loss_tolerance: The fit also ends at a step that lowers the sum by at most this share of it.

    Returns:
        Weights `[features, classes]` and intercepts `[classes]`.
    """
    from scipy.optimize import minimize  # slow to import, and no other metric needs it

    samples, features = rows.shape
    own_class = np.arange(samples), labels
    units = 1 / np.sqrt(penalty + CURVATURE * (rows**2).sum(0))[:, None]
    intercept_unit = (CURVATURE * samples) ** -0.5
    scaled, penalties = rows * units.T, penalty * units**2

    def objective(parameters: Floats, scaled: NDArray[Any]) -> tuple[float, Floats]:
        matrix = parameters.reshape(features + 1, classes)
        weight = matrix[:-1]
        scores = scaled @ np.asarray(weight, dtype=scaled.dtype)
        scores += np.asarray(matrix[-1] * intercept_unit, dtype=scaled.dtype)
        scores -= np.amax(scores, 1)[:, None]
        loss = (penalties * weight**2).sum() / 2 - scores[own_class].sum(dtype=np.float64)

        # In place: a matrix of samples and classes may be as large as the rows.
        errors = np.exp(scores, out=scores)
        sums = errors.sum(1)[:, None]
        loss += np.log(sums).sum(dtype=np.float64)
        errors /= sums
        errors[own_class] -= 1

        intercepts = errors.sum(0, dtype=np.float64)[None] * intercept_unit
        gradient = np.concatenate([scaled.T @ errors + penalties * weight, intercepts])
        return float(loss), gradient.ravel()

    parameters = np.zeros((features + 1) * classes)
    for precision, least_fall in ((np.float32, COARSE), (np.float64, loss_tolerance)):
        parameters = minimize(
            objective,
            parameters,
            args=(np.asarray(scaled, dtype=precision),),
            method="L-BFGS-B",
            jac=True,
            options={"maxiter": ITERATIONS, "gtol": tolerance * samples, "ftol": least_fall},
        ).x
    matrix = parameters.reshape(features + 1, classes)
    return matrix[:-1] * units, matrix[-1] * intercept_unit

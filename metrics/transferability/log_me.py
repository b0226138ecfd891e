"""LogME."""

import math

import numpy as np

from headstart.metrics.arrays import Array, Floats, check_choice
from headstart.metrics.transferability.feature_statistics import FeatureStatistics, Variant, statistics_of

# Relative error of the ratio of precisions. The evidence is stationary there, so that its error is the square of this.
TOLERANCE = 1e-8
ITERATIONS = 1000
# The ratio may drift this far beyond the eigenvalues where the evidence rises towards 0 or infinity.
DRIFT = 1e15
# Constants of the released program.
RELEASED_ITERATIONS, RELEASED_TOLERANCE, RELEASED_OFFSET = 11, 1e-3, 1e-5


def log_me(features: Array | FeatureStatistics, labels: Array | None = None, variant: Variant = "published") -> float:
    """Compute LogME, the mean over classes of the log evidence per sample of a linear model, at a maximum.

    Source: Kaichao You et al., "LogME: Practical Assessment of Pre-trained Models for Transfer Learning", ICML 2021,
    equation 2. The fixed point is that of Kaichao You et al., "Ranking and Tuning Pre-trained Models: A New Paradigm
    for Exploiting Model Hubs", JMLR 2022, algorithm 3. It is iterated until the ratio t of the two precisions alpha and
    beta changes by less than 1e-8 of itself.

    The target of a class is its indicator, the features are not centred, the model has no intercept. The precisions are
    alpha = t beta of the weights and beta of the noise. Let s be the eigenvalues of F'F, and x the squared coordinates
    of the target along the singular vectors. The evidence at the best beta is

    `n/2 log(n / (2 pi Q)) - n/2 - sum(log(1 + s / t)) / 2` with `Q = sum(x t / (t + s)) + residual`,

    which is the published one wherever both precisions are stationary. Over t it may have several maxima. The score is
    that of the one that the iteration reaches from t = 1, as published. It need not be the highest, and it depends on
    the scale of the features. With a single maximum, the scale does not matter.

    The indicator of a class may be a linear combination of fewer independent features than samples. An example is a
    class of which two samples have the same features. The evidence then also rises without bound as t goes to 0. There
    the residual is set to its rounding error, `max(samples, features) * 2.2e-16` of the class. Eigenvalues up to the
    same share of the largest one count as 0. The score is finite, and about that of features that differ from these by
    little more than rounding. This does not affect a maximum that the iteration reaches before.

    Args:
        features: `[samples, features]`, or their statistics.
        labels: `[samples]`.
        variant: `published`, or `released` as the program of the authors (thuml/LogME), and its copy in SFDA's. It
            stops after 11 iterations or at a change of a thousandth. With fewer samples than features it adds
            `features / 2 log alpha`, but `log(alpha + beta s)` for the samples alone, so that it ranks by width.

    Returns:
        The score.

    Raises:
        ValueError: There is no such variant, or the features or labels do not fit.
    """
    check_choice("variant", variant, Variant)
    statistics = statistics_of(features, labels)
    samples, dimensions = statistics.samples, statistics.dimensions
    spectrum = statistics.uncentred_spectrum
    rank = min(spectrum.rank, samples)
    eigenvalues = spectrum.eigenvalues[:rank]
    squares = spectrum.class_sums[:, :rank] ** 2 / eigenvalues
    residuals = statistics.counts[:, 0] - squares.sum(1)
    if variant == "released":
        if not rank:
            raise ValueError("LogME as released has no value for features that are all 0")
        pairs = zip(squares, np.clip(residuals, 0, None), strict=True)
        return float(np.mean([_released(eigenvalues, *pair, samples, dimensions) for pair in pairs]))
    if rank == samples:
        # The features span every target.
        residuals = np.zeros_like(residuals)
    else:
        rounding = max(samples, dimensions) * np.finfo(np.float64).eps
        residuals = np.maximum(residuals, rounding * statistics.counts[:, 0])

    if rank:
        ratios = _fixed_point(eigenvalues, squares, residuals, samples)[:, None]
        misfit = (squares * (ratios / (ratios + eigenvalues))).sum(1) + residuals
        evidence = -samples * np.log(misfit) - np.log1p(eigenvalues / ratios).sum(1)
    else:
        evidence = -samples * np.log(residuals)
    constant = math.log(samples / (2 * math.pi)) - 1
    return float(float(evidence.mean()) / samples + constant) / 2


def _released(eigenvalues: Floats, squares: Floats, residual: float, samples: int, dimensions: int) -> float:
    """Compute the evidence of one class per sample, as the released program does."""
    alpha, beta = 1.0, 1.0
    for _ in range(RELEASED_ITERATIONS):
        ratio = alpha / beta
        effective = float((eigenvalues / (eigenvalues + ratio)).sum())
        weights = float((eigenvalues * squares / (ratio + eigenvalues) ** 2).sum())
        errors = float((squares / (1 + eigenvalues / ratio) ** 2).sum() + residual)
        alpha, beta = effective / (weights + RELEASED_OFFSET), (samples - effective) / (errors + RELEASED_OFFSET)
        if abs(alpha / beta - ratio) <= RELEASED_TOLERANCE * ratio:
            break

    # Singular values of 0 count where there is one for each sample.
    missing = samples - len(eigenvalues) if samples <= dimensions else 0
    determinant = float(np.log(alpha + beta * eigenvalues).sum()) + missing * math.log(alpha)
    evidence = dimensions * math.log(alpha) + samples * math.log(beta / (2 * math.pi)) - determinant
    return (evidence - beta * errors - alpha * weights) / (2 * samples)


def _fixed_point(eigenvalues: Floats, squares: Floats, residuals: Floats, samples: int) -> Floats:
    """Iterate the ratio of the precisions of every class from 1 until it converges, `[classes]`."""
    rank = len(eigenvalues)
    lowest, highest = float(eigenvalues[-1]) / DRIFT, float(eigenvalues[0]) * DRIFT
    ratios = np.ones_like(residuals)
    active = np.ones_like(residuals) > 0

    for _ in range(ITERATIONS):
        ratio, square = ratios[active][:, None], squares[active]
        shrunk = ratio / (ratio + eigenvalues)
        effective = (1 - shrunk).sum(1)
        weights = (square * (1 - shrunk) * shrunk).sum(1) / ratio[:, 0]
        errors = (square * shrunk**2).sum(1) + residuals[active]
        free = samples - rank + shrunk.sum(1)

        # Weights of 0 send the ratio to infinity.
        updated = np.clip(effective * errors / np.clip(free * weights, 1e-300, None), lowest, highest)
        ratios[active] = updated
        moving = np.abs(np.log(updated / ratio[:, 0])) > TOLERANCE
        if not bool(moving.any()):
            break
        active[np.where(active)[0]] = moving

    return ratios

"""PACTran."""

import math
from numbers import Real

import numpy as np

from headstart.metrics.arrays import Array, check_choice
from headstart.metrics.transferability.feature_statistics import FeatureStatistics, Variant, statistics_of
from headstart.metrics.transferability.fisher_discriminant import all_components, of_own_class, softmax
from headstart.metrics.transferability.linear_probe import fit_logistic

# Two of the grid that the paper searches.
PENALTY_SHARE = 1.0
PRIOR_VARIANCE = 10.0
# The Hessian depends on the weights in the first order, so they must be more precise than for an accuracy.
TOLERANCE = 1e-8
# The score then changes by less than about 1e-6 of itself.
LOSS_TOLERANCE = 1e-11


def pactran(
    features: Array | FeatureStatistics,
    labels: Array | None = None,
    penalty_share: float = PENALTY_SHARE,
    prior_variance: float = PRIOR_VARIANCE,
    variant: Variant = "released",
) -> float:
    """Compute PACTran with a Gaussian prior, the negative of a PAC-Bayesian bound on the error of a linear classifier.

    Source: Nan Ding et al., "PACTran: PAC-Bayesian Metrics for Estimating the Transferability of Pretrained Models to
    Classification Tasks", ECCV 2022, PACTran-Gaussian. W are the weights of logistic regression on the centred
    features, whose intercepts are free. There are D features and K classes; the prior has the variance v, and the bound
    the parameter l. At the best variance of a Gaussian posterior around W, the bound is

    `cross-entropy + |W|^2 / (2 l v) + K D / (2 l) log(1 + l v t / (K D))`,

    where W minimises the first two terms and t is the trace of the cross-entropy's Hessian, the mean over samples of
    `|f|^2 sum(p (1 - p))`. Constants that do not depend on the source are left out. That is `published`. The released
    program, which computed the published scores, sums over the samples instead and adds the trace of the intercepts.
    Its t is the sum of `(|f|^2 + 1) sum(p (1 - p))`. That is `released`. Its optimiser begins at random weights and
    stops early, which moves its scores by some tenths of a percent. Here the minimum is exact.

    The paper searches a grid. In it, l v is a multiple of the number of samples, and v a constant divided by D. It is
    not clear which point of the grid it recommends.

    Args:
        features: `[samples, features]`, or their statistics.
        labels: `[samples]`.
        penalty_share: l v, divided by the number of samples.
        prior_variance: v, times the number of features.
        variant: `released` or `published`.

    Returns:
        The score, at most 0. It is 0 for a single class. For constant features, it is minus the entropy of the labels
        if `published`, and less if `released`.

    Raises:
        ValueError: An option is none of those above, or the features or labels do not fit.
    """
    check_choice("variant", variant, Variant)
    for name, value in (("penalty_share", penalty_share), ("prior_variance", prior_variance)):
        if not (isinstance(value, Real) and value > 0):
            raise ValueError(f"{name} must be above 0, not {value!r}")

    statistics = statistics_of(features, labels)
    if statistics.classes == 1:
        return 0.0

    # The penalty does not change under rotation, and without the axes of no spread there is less to fit.
    rows = all_components(statistics)
    samples, dimensions, classes = statistics.samples, statistics.dimensions, statistics.classes
    width = penalty_share * samples
    weights, intercepts = fit_logistic(rows, statistics.labels, classes, 1 / penalty_share, TOLERANCE, LOSS_TOLERANCE)
    probabilities = softmax(rows @ weights + intercepts)

    tiny = np.finfo(np.float64).tiny
    misfit = -float(np.mean([math.log(max(float(p), tiny)) for p in of_own_class(probabilities, statistics)]))
    curvatures = (probabilities * (1 - probabilities)).sum(1)
    squares = (rows**2).sum(1)
    released = variant == "released"
    trace = float(((squares + 1) * curvatures).sum() if released else (squares * curvatures).mean())
    number = classes * dimensions
    flatness = number / width * prior_variance / dimensions / 2 * math.log1p(width * trace / number)
    return float(0.0 - misfit - float((weights**2).sum()) / (2 * width) - flatness)

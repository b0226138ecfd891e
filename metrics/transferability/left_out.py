"""Uncertainty of scores: over samples, by a jackknife by groups, and over the random starts that a metric has."""

import numpy as np
import scipy  # imports its parts on first use
from numpy.typing import NDArray

from headstart.metrics.arrays import Flags, Floats
from headstart.metrics.ranking.aggregates import jackknife_error
from headstart.metrics.sample_efficiency.scores import holm
from headstart.metrics.transferability.linear_probe import sample_folds

LEVEL = 0.95
# Smaller differences of scores, relative or absolute, are rounding errors.
TOLERANCE = 1e-10
# The starts of a metric without random starts.
NO_STARTS: Floats = np.empty(0)


def divide(labels: NDArray[np.int64], parts: int, seed: int) -> NDArray[np.int64]:
    """Divide samples into parts that are left out in turn, class by class, give or take one sample.

    Args:
        labels: Integers from 0, `[samples]`.
        parts: Number of parts; at most as many as there are samples to leave out.
        seed: Seed of the division.

    Returns:
        The part of each sample, from 0, `[samples]`. It is -1 for the only sample of a class, which is always kept, and
        for all samples where there are no parts.
    """
    _, codes, sizes = np.unique(labels, return_inverse=True, return_counts=True)
    part_of = np.full(len(labels), -1)
    order = np.argsort(codes, kind="stable")
    several = order[sizes[codes[order]] > 1]
    if parts and len(several):
        part_of[several] = sample_folds(sizes[sizes > 1], min(parts, len(several)), seed)
    return part_of


def divide_groups(groups: NDArray[np.int64], labels: NDArray[np.int64], parts: int, seed: int) -> NDArray[np.int64]:
    """Divide groups of samples, such as the pixels of a photo, into parts that are left out in turn.

    Args:
        groups: The group of each sample, integers from 0, `[samples]`.
        labels: Integers from 0, `[samples]`.
        parts: Number of parts; at most as many as there are groups.
        seed: Seed of the division.

    Returns:
        The part of each sample, from 0, `[samples]`; the samples of a group have the same part. It is -1 for the
        samples of a class that is in one part alone, which are always kept, and for all samples where there are no
        parts.
    """
    _, codes = np.unique(groups, return_inverse=True)
    part_of = divide(np.zeros(codes.max() + 1, dtype=np.int64), parts, seed)[codes]
    for label in np.unique(labels):
        if len(np.unique(part_of[labels == label])) == 1:
            part_of[labels == label] = -1
    return part_of


def error_of_start(starts: Floats) -> Floats:
    """Estimate the standard error of the mean of the scores of several random starts, 0 where there are none.

    Args:
        starts: `[..., starts]`, none or two at least.
    """
    count = starts.shape[-1]
    if not count:
        return np.zeros(starts.shape[:-1])
    return np.asarray(starts.std(-1, ddof=1) / np.sqrt(count))


def add_errors(errors: Floats, freedom: Floats) -> tuple[Floats, Floats]:
    """Add independent standard errors, and estimate the degrees of freedom of their sum.

    The sum of variances v with degrees of freedom f has about `sum(v)^2 / sum(v^2 / f)` degrees of freedom. Source: F.
    E. Satterthwaite, "An Approximate Distribution of Estimates of Variance Components", Biometrics Bulletin, 1946.

    Args:
        errors: `[..., terms]`.
        freedom: Degrees of freedom of each, `[terms]`.

    Returns:
        The standard error and its degrees of freedom, both `[...]`; those of the first term where all errors are 0.
    """
    total = np.sqrt((errors**2).sum(-1))
    # Shares do not underflow.
    shares = errors / np.where(total > 0, total, 1)[..., None]
    pooled = (shares**4 / freedom).sum(-1)
    return total, np.where(total > 0, 1 / np.where(total > 0, pooled, 1), freedom[0])


def interval(score: float, left_out: Floats, starts: Floats = NO_STARTS) -> tuple[float, float]:
    """Compute the 95 % interval of a score, by Student's t.

    Args:
        score: On all samples; of a metric that depends on a random start, the mean over several.
        left_out: With each part left out, `[parts]`.
        starts: Of each start on all samples, `[starts]`; none by default.
    """
    errors = np.array([jackknife_error(left_out), error_of_start(starts)])
    error, freedom = add_errors(errors, np.array([len(left_out) - 1, max(len(starts) - 1, 1)]))
    half = float(scipy.special.stdtrit(freedom, (1 + LEVEL) / 2) * error)
    return score - half, score + half


def significant_differences(scores: Floats, left_out: Floats, starts: Floats = NO_STARTS) -> Flags:
    """Test which sources differ significantly, by t tests of all pairs at 5 %, adjusted for all pairs by Holm.

    The standard error is that of the difference, whose parts are the same samples for both sources. The random starts
    of two sources are independent, also those of the same seed, because they choose among different features.

    Args:
        scores: Of the sources by one metric, `[sources]`.
        left_out: With each part left out, the same for all sources, `[sources, parts]`.
        starts: Of each random start, `[sources, starts]`; none by default.

    Returns:
        Symmetric, `[sources, sources]`.
    """
    first, second = np.triu_indices(len(scores), 1)
    differences = scores[first] - scores[second]
    of_start = np.broadcast_to(error_of_start(starts), len(scores))
    terms = [jackknife_error(left_out[first] - left_out[second]), of_start[first], of_start[second]]
    more = max(starts.shape[-1] - 1, 1)
    errors, freedom = add_errors(np.stack(terms, -1), np.array([left_out.shape[1] - 1, more, more]))

    equal = np.isclose(scores[first], scores[second], rtol=TOLERANCE, atol=TOLERANCE)
    ratios = np.where(equal, 0, np.abs(differences) / np.maximum(errors, np.finfo(np.float64).tiny))
    p_values = holm((2 * scipy.special.stdtr(freedom, -ratios)).tolist())

    differ = np.zeros((len(scores), len(scores)), dtype=bool)
    differ[first, second] = differ[second, first] = np.array(p_values) < 1 - LEVEL
    return differ

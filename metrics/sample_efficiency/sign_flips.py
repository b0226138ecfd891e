"""Sign patterns of a permutation test in stages, and whether sampled patterns suffice for its decision."""

from collections.abc import Iterator

import numpy as np
import scipy  # loads its submodules when they are used
from numpy.typing import NDArray

from headstart.metrics.arrays import Flags, Floats
from headstart.metrics.sample_efficiency.scores import PERMUTATIONS, sign_patterns

Patterns = NDArray[np.int8]
# Numbers of orderings up to which all patterns are enumerated: in any case, and if sampled ones decide nothing.
ALWAYS_ENUMERATED, MAX_ENUMERATED = 16, 20
# Number of patterns of the first stage. Each further stage doubles the total, up to 640,000.
PATTERNS, STAGES, SEED = 9_999, 7, 0
# Patterns in a block, which fits into the cache of a CPU.
BLOCK = 2**13
# Limit of the probability that any decision of a table differs from that by all patterns.
RISK = 0.001


def stages(orderings: int) -> Iterator[tuple[Iterator[Patterns], bool]]:
    """Yield the sign patterns of each stage: all patterns, or sampled ones, and then all or more sampled ones.

    Yields:
        The patterns, in blocks of `[patterns, orderings]`; and whether they are all patterns, so that earlier stages do
        not count.
    """
    if orderings <= ALWAYS_ENUMERATED:
        yield iter([sign_patterns(orderings)]), True
        return
    first = np.random.default_rng(SEED).choice(PERMUTATIONS, PATTERNS, replace=False)
    yield iter([sign_patterns(orderings, first)]), False

    if orderings <= MAX_ENUMERATED:
        yield _all_patterns(orderings), True
        return
    for stage in range(1, STAGES):
        yield _sample(orderings, PATTERNS * 2 ** (stage - 1), stage), False


def _all_patterns(orderings: int) -> Iterator[Patterns]:
    """Yield the patterns that keep the last sign; the others are their opposites, with the same absolute sums."""
    for start in range(0, 2 ** (orderings - 1), BLOCK):
        numbers = np.arange(start, min(start + BLOCK, 2 ** (orderings - 1)))
        yield (1 - 2 * ((numbers[:, None] >> np.arange(orderings)) & 1)).astype(np.int8)


def _sample(orderings: int, count: int, stage: int) -> Iterator[Patterns]:
    generator = np.random.default_rng((SEED, stage))
    for start in range(0, count, BLOCK):
        size = min(BLOCK, count - start), -(-orderings // 8)
        bits = np.unpackbits(generator.integers(256, size=size, dtype=np.uint8), axis=1, count=orderings)
        yield 2 * bits.view(np.int8) - 1


def is_decided(exceeded: Floats, sampled: Floats, level: float) -> Flags:
    """Return whether sampled patterns decide on which side of the significance level the p values of tests lie.

    Robbins' confidence sequence of the p value, `p^s (1 - p)^(n - s) / B(s + 1, n - s + 1) > RISK / tests`, must
    exclude the level. It covers the p value at all n simultaneously, so the test may stop after any stage. The
    probability that any decision differs from that of all patterns is at most `RISK`.

    Source: Herbert Robbins, "Statistical Methods Related to the Law of the Iterated Logarithm", Annals of Mathematical
    Statistics, 1970; for Monte Carlo tests Dong Ding, Axel Gandy and Georg Hahn, "A Simple Method for Implementing
    Monte Carlo Tests", Computational Statistics, 2020.

    Args:
        exceeded: Number s of sampled patterns whose statistic is at least the observed one, `[tests]`.
        sampled: Number n of sampled patterns, `[tests]`.
        level: The significance level.
    """
    rest = sampled - exceeded
    logarithm = exceeded * np.log(level) + rest * np.log1p(-level) - scipy.special.betaln(exceeded + 1, rest + 1)
    return np.asarray(logarithm <= np.log(RISK / len(exceeded)))

"""Terms of the sources of a pool on one scale, for metrics that compare sources with each other."""

import numpy as np

from headstart.metrics.arrays import Floats

# Smaller differences of terms, relative or absolute, are rounding errors.
SAME = 1e-10


def scaled_over_pool(terms: Floats, pool: Floats | None = None) -> Floats:
    """Scale each term to run from 0 to 1 over the sources of a pool; a constant term becomes 0.

    Args:
        terms: `[..., sources, terms]`.
        pool: The terms that set the scale, `[..., sources, terms]`; by default the scaled ones.
    """
    pool = terms if pool is None else pool
    low, high = pool.min(-2, keepdims=True), pool.max(-2, keepdims=True)
    differ = ~np.isclose(low, high, rtol=SAME, atol=SAME)
    return np.asarray(np.divide(terms - low, high - low, out=np.zeros_like(terms), where=differ))

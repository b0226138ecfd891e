"""Terms of the sources of a pool, on one scale: for metrics that compare a source with the others."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def scaled_over_pool(terms: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scale each term to run from 0 to 1 over the sources of a pool; one that is the same for all of them is 0.

    Args:
        terms: `[..., sources, terms]`.
    """
    above = terms - terms.min(-2, keepdims=True)
    ranges = above.max(-2, keepdims=True)
    scaled: NDArray[np.float64] = np.divide(above, ranges, out=np.zeros_like(above), where=ranges > 0)
    return scaled

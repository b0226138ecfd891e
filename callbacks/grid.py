"""The evaluations of a comparison."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headstart.metrics.sample_efficiency.curves import Measure


@dataclass(frozen=True)
class Grid:
    """The evaluations of a comparison, and when a trace has met the criterion.

    Attributes:
        samples_seen: Samples that an ordering has fed at each evaluation up to the sample limit, `[evaluations]`.
        all_correct: The count if all predictions are correct.
        required: Lowest count that passes.
        consecutive: Number of passes in a row that meet the criterion.
        to_limit: Whether a trace that has met the criterion continues to the sample limit.
        measure: The measure of the counts.
    """

    samples_seen: NDArray[np.int64]
    all_correct: int
    required: int
    consecutive: int
    to_limit: bool = False
    measure: Measure = "accuracy"

"""The number of classes."""

import numpy as np
import pytest

from headstart.metrics.transferability.baselines import num_classes


def test_classes_that_occur_are_counted() -> None:
    assert num_classes(np.array([0, 5, 5, 9])) == 3
    assert type(num_classes(np.array([0]))) is float


def test_labels_that_are_refused() -> None:
    with pytest.raises(ValueError, match="labels must be \\[samples\\], at least one"):
        num_classes(np.zeros(0, dtype=int))
    with pytest.raises(ValueError, match="labels must be integers"):
        num_classes(np.array([0.5]))

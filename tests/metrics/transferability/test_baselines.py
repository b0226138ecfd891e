"""Baselines that know the classes of the target, or the source, alone."""

import numpy as np
import pytest

from headstart.metrics.transferability.baselines import SourceFacts, num_classes, parameter_count, source_accuracy


def test_classes_that_occur_are_counted() -> None:
    assert num_classes(np.array([0, 5, 5, 9])) == 3
    assert type(num_classes(np.array([0]))) is float


def test_wrong_labels_raise_an_error() -> None:
    with pytest.raises(ValueError, match="labels must be \\[samples\\], at least one"):
        num_classes(np.zeros(0, dtype=int))
    with pytest.raises(ValueError, match="labels must be integers"):
        num_classes(np.array([0.5]))


def test_a_known_fact_is_the_score() -> None:
    facts = SourceFacts(parameters=11_689_512, accuracy=0.69758)
    assert parameter_count(facts) == 11_689_512
    assert source_accuracy(facts) == 0.69758


def test_an_unknown_fact_has_no_score() -> None:
    with pytest.raises(ValueError, match="parameters is not known"):
        parameter_count(SourceFacts(accuracy=0.5))
    with pytest.raises(ValueError, match="accuracy of the source on its own task is not known"):
        source_accuracy(SourceFacts(parameters=5))

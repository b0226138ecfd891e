"""Baselines that know the source alone."""

import pytest

from headstart.metrics.transferability.baselines import SourceFacts, parameter_count, source_accuracy


def test_what_is_known_is_the_score() -> None:
    facts = SourceFacts(parameters=11_689_512, accuracy=0.69758)
    assert parameter_count(facts) == 11_689_512
    assert source_accuracy(facts) == 0.69758


def test_what_is_not_known_has_no_score() -> None:
    with pytest.raises(ValueError, match="parameters is not known"):
        parameter_count(SourceFacts(accuracy=0.5))
    with pytest.raises(ValueError, match="accuracy of the source on its own task is not known"):
        source_accuracy(SourceFacts(parameters=5))

"""Exchanges of stimuli, against double-centred Gram matrices."""

import numpy as np
import pytest

from headstart.metrics.similarity import stimulus_subset
from headstart.metrics.similarity.stimulus_subset import CentredCatalog, StimulusSubset
from headstart.tests.material.catalogs import make_catalog, mean_cka, with_copies


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have several chunks in small catalogs."""
    monkeypatch.setattr(stimulus_subset, "CHUNK", 5)


def test_values_after_joining_and_leaving() -> None:
    embeddings, members = make_catalog(30, seed=0), [3, 17, 8, 22, 5, 29, 11]
    subset = StimulusSubset(CentredCatalog(embeddings, 7), members)
    assert subset.value == pytest.approx(mean_cka(embeddings, members), abs=1e-9)
    others = np.setdiff1d(np.arange(30), members)
    joined = [mean_cka(embeddings, [*members, other]) for other in others]
    np.testing.assert_allclose(subset.values_after_adding(others), joined, atol=1e-5)
    left = [mean_cka(embeddings, [each for each in members if each != leaver]) for leaver in members]
    np.testing.assert_allclose(subset.values_after_leaving(), left, atol=1e-9)


@pytest.mark.parametrize("size", [2, 5, 20])
def test_every_exchange_keeps_the_value_true_and_lowers_it(size: int) -> None:
    embeddings = make_catalog(60, seed=size)
    subset, changes = StimulusSubset(CentredCatalog(embeddings, size), range(size)), 0
    generator = np.random.default_rng(0)
    for _ in range(20):
        before, value = subset.members.copy(), subset.value
        if subset.exchange(generator.choice(60, 20, replace=False)):
            changes += 1
            assert subset.value < value
        else:
            assert (subset.members.tolist(), subset.value) == (before.tolist(), value)
        assert len(set(subset.members.tolist())) == size
        assert subset.value == pytest.approx(mean_cka(embeddings, subset.members.tolist()), abs=1e-9)
    assert changes or size == 2


@pytest.mark.parametrize("noise", [0, 1e-7])
def test_copies_alone_are_worse_than_any_other_subset(noise: float) -> None:
    embeddings = with_copies(12, distinct=(7,), noise=noise)
    copies = StimulusSubset(CentredCatalog(embeddings, 3), [2, 5, 4])
    others = np.setdiff1d(np.arange(12), copies.members)
    assert copies.value > 1
    assert set(others[copies.values_after_adding(others) < 1]) == {7}
    mixed = StimulusSubset(CentredCatalog(embeddings, 4), [2, 5, 7, 4])
    assert np.flatnonzero(mixed.values_after_leaving() > 1).tolist() == [2]

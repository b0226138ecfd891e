"""Targets of very many photos are scored on a seeded sample, the same for every source."""

from pathlib import Path

import numpy as np
import pytest

from headstart.datamodules.photos.class_folders import UnsplitClassFolders
from headstart.evaluation.sources import targets
from headstart.evaluation.sources.targets import read_target, sample_photos
from headstart.tests.conftest import write_photos


def test_a_sample_has_every_class_by_its_share() -> None:
    labels = np.random.default_rng(0).permutation(np.repeat([0, 1, 2, 3], [600, 300, 99, 1]))
    chosen = sample_photos(labels, 100, seed=0)
    assert len(chosen) == 100
    assert np.all(np.diff(chosen) > 0)
    assert np.abs(np.bincount(labels[chosen]) - [60, 30, 9.9, 1]).max() <= 1
    assert np.bincount(labels[chosen])[3] == 1
    assert np.array_equal(sample_photos(labels, 100, seed=0), chosen)
    assert not np.array_equal(sample_photos(labels, 100, seed=1), chosen)
    assert sample_photos(labels, 2, seed=0).size == 4
    assert np.array_equal(sample_photos(labels, 1000, seed=0), np.arange(1000))


def test_a_sample_is_said_in_the_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = UnsplitClassFolders(str(write_photos(tmp_path / "photos") / "train"))
    whole = read_target("pets", source, "train", tmp_path / "cache", "targets.pets")
    assert whole.describe()["available"] == whole.describe()["photos"]
    assert not whole.remarks()
    monkeypatch.setattr(targets, "MOST_PHOTOS", 6)
    some = read_target("pets", source, "train", tmp_path / "cache", "targets.pets", seed=1)
    assert (len(some.photos), some.available) == (6, len(whole.photos))
    assert some.fingerprint != whole.fingerprint
    assert some.remarks() == [f"Scores are of a seeded sample, 6 of {len(whole.photos)} photos."]

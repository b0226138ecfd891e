"""Targets whose features do not fit in memory are scored on a seeded sample of their photos."""

import numpy as np
import pytest

from headstart.evaluation.sources import source_features
from headstart.evaluation.sources.source_features import sample_rows


def test_a_sample_has_every_class_by_its_share_and_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    labels = np.random.default_rng(0).permutation(np.repeat([0, 1, 2, 3], [600, 300, 99, 1]))
    rows = np.arange(1000.0)[:, None] * np.ones(4)
    monkeypatch.setattr(source_features, "IN_MEMORY", 8 * 4 * 100)
    chosen, own = sample_rows(rows, labels, "pets")

    assert len(own) == 100
    assert np.abs(np.bincount(own) - [60, 30, 9.9, 1]).max() <= 1
    assert np.bincount(own)[3] == 1
    assert np.all(np.diff(chosen[:, 0]) > 0)
    assert np.array_equal(labels[chosen[:, 0].astype(int)], own)
    assert "target 'pets': scores are of a seeded sample, 100 of 1,000 photos" in capsys.readouterr().out
    assert np.array_equal(sample_rows(rows, labels, "pets")[0], chosen)
    monkeypatch.setattr(source_features, "IN_MEMORY", 8 * 4 * 1000)
    assert sample_rows(rows, labels, "pets")[0] is rows

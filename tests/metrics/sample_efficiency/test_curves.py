"""Curves are kept whole on disk and give the criterion of their own settings."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

from metrics.sample_efficiency.curves import Curves


def draw_curves(**changes: object) -> Curves:
    generator = np.random.default_rng(0)
    values = {
        "methods": ["baseline", "nächster"],
        "orderings": np.arange(4, 9),
        "samples_seen": np.arange(8, 168, 8),
        "correct": generator.integers(0, 1001, (2, 5, 20)),
        "validation_size": 1000,
        "limit": 163,
        "threshold": 0.8,
        "consecutive": 3,
    }
    return Curves(**{**values, **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize("changes", [{}, {"methods": ["baseline"], "correct": np.zeros((1, 5, 20), dtype=np.int64)}])
def test_saved_curves_come_back(tmp_path: Path, changes: dict[str, object]) -> None:
    curves = draw_curves(**changes)
    curves.save(tmp_path / "curves.npz")
    loaded = Curves.load(tmp_path / "curves.npz")
    for field in fields(Curves):
        kept, read = getattr(curves, field.name), getattr(loaded, field.name)
        assert type(read) is type(kept), field.name
        assert np.array_equal(read, kept), field.name
    assert loaded.correct.dtype == loaded.samples_seen.dtype == loaded.orderings.dtype == np.int64


def test_file_is_written_under_the_very_name_given(tmp_path: Path) -> None:
    draw_curves().save(tmp_path / ".curves.npz.partial")
    assert [path.name for path in tmp_path.iterdir()] == [".curves.npz.partial"]


def test_accuracy() -> None:
    curves = draw_curves(correct=np.array([[[0, 500, 1000]]]))
    assert curves.accuracy.tolist() == [[[0, 0.5, 1]]]


@pytest.mark.parametrize(("threshold", "samples"), [(0.8, 32), (0.801, np.inf), (0.7, 24)])
def test_criterion_is_that_of_the_curves(threshold: float, samples: float) -> None:
    correct = np.zeros((1, 1, 20), dtype=np.int64)
    correct[..., :4] = [700, 800, 800, 800]
    curves = draw_curves(methods=["baseline"], correct=correct, threshold=threshold)
    assert [float(value.item()) for value in curves.samples_to_criterion()] == [samples, samples - 16]

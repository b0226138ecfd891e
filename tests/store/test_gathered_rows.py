"""Scattered rows are read when they are indexed, and measures of similarity read some of them at a time."""

from pathlib import Path

import numpy as np
import pytest

from headstart.metrics.similarity.catalogue import SIMILARITY_MEASURES
from headstart.store.gathered_rows import GatheredRows


@pytest.fixture
def scattered(tmp_path: Path) -> GatheredRows:
    np.random.default_rng(0).standard_normal((40, 5)).astype(np.float32).tofile(tmp_path / "rows")
    mapped = np.memmap(tmp_path / "rows", np.float32, "r", shape=(40, 5))
    order = np.random.default_rng(1).permutation(40)
    return GatheredRows([mapped[:30], mapped[30:]], order // 30, order % 30)


def test_columns_are_read_when_they_are_indexed(scattered: GatheredRows) -> None:
    for columns in (slice(2, 5), 1):
        chosen, whole = scattered[:, columns], np.asarray(scattered)[:, columns]
        assert isinstance(chosen, GatheredRows)
        assert (chosen.shape, chosen.ndim, chosen.nbytes) == (whole.shape, whole.ndim, whole.nbytes)
        assert np.array_equal(chosen[:], whole)
        assert np.array_equal(chosen[np.array([7, 3, 7])], whole[[7, 3, 7]])


def test_measures_of_scattered_rows_are_those_of_an_array(scattered: GatheredRows) -> None:
    whole = np.asarray(scattered)
    for name, measure in SIMILARITY_MEASURES.items():
        of_scattered, of_whole = (measure.pairwise([rows[:, :], rows[:, :3]])[0] for rows in (scattered, whole))
        assert np.array_equal(of_scattered, of_whole), name

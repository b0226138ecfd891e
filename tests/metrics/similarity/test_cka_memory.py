"""The memory that measures of many embeddings take besides them."""

import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from headstart.metrics import pairwise_cka
from headstart.metrics.similarity import cka
from headstart.metrics.similarity.rbf_cka import pairwise_rbf_cka
from headstart.metrics.similarity.rsa import pairwise_rsa_pearson


def _peak(function: Callable[[], object]) -> int:
    """Return the peak memory that a call allocates, in bytes."""
    tracemalloc.start()
    try:
        function()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_memory_stays_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cka, "BLOCK_BYTES", 2**20)
    n, width, m = 1000, 512, 8
    values = np.memmap(tmp_path / "rows", dtype=np.float32, mode="w+", shape=(m, n, width))
    values[:] = np.random.default_rng(0).standard_normal(values.shape, dtype=np.float32)
    # Two tiles, blocks of rows and what they are converted from; all Gram matrices would take 64 MB.
    assert _peak(lambda: pairwise_cka(values)) < 8e6
    # The distances of one embedding take 4 MB.
    assert _peak(lambda: pairwise_rbf_cka(values)) < 14e6
    # The dissimilarities would take 32 MB.
    assert _peak(lambda: pairwise_rsa_pearson(values)) < 8e6


def test_features_are_multiplied_in_chunks_of_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cka, "BLOCK_BYTES", 2**22)
    generator = np.random.default_rng(0)
    many = [generator.standard_normal((50_000, d), dtype=np.float32) for d in (8, 40)]
    # Chunks, their squares, and the diagonals; the wider embedding in float64 alone would take 16 MB.
    assert _peak(lambda: pairwise_cka(many)) < 3 * 2**22 + 2 * 8 * 50_000

"""The memory that linear CKA of many embeddings takes besides them."""

import math
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from headstart.metrics import mean_pairwise_cka, pairwise_cka
from headstart.metrics.similarity import cka


@pytest.mark.parametrize(("n", "m"), [(1001, 8), (700, 30)])
def test_tiles_take_the_memory_of_one_whatever_their_sizes(n: int, m: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cka, "BLOCK_BYTES", 2**22)
    side = math.isqrt(2**22 // (8 * m))
    assert n % math.ceil(n / math.ceil(n / side))
    generator = np.random.default_rng(0)
    many = [generator.standard_normal((n, d), dtype=np.float32) for d in np.linspace(300, 900, m).astype(int)]
    # A tile of all models, two blocks of rows in float64, the diagonals, and the bookkeeping.
    allowed = 2**22 + 2 * 8 * side * 900 + 8 * n * m + 2**18
    assert _peak(lambda: pairwise_cka(many)) < allowed


def test_features_are_multiplied_in_chunks_of_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cka, "BLOCK_BYTES", 2**22)
    generator = np.random.default_rng(0)
    many = [generator.standard_normal((50_000, d), dtype=np.float32) for d in (8, 40)]
    # Chunks, their squares, and the diagonals; the wider embedding in float64 would take 16 MB.
    assert _peak(lambda: pairwise_cka(many)) < 2 * 2**22 + 2 * 8 * 50_000


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
    # A tile, two blocks of rows and what they are converted from; one Gram matrix alone would take 8 MB.
    assert _peak(lambda: pairwise_cka(values)) < 6e6
    # Two Gram matrices and an embedding in float64, also where each is wider than the one before.
    assert _peak(lambda: mean_pairwise_cka(x[:, : 64 * (i + 1)] for i, x in enumerate(values))) < 21e6
    mean = pairwise_cka(values)[np.triu_indices(m, 1)].mean()
    assert mean_pairwise_cka(iter(values)) == pytest.approx(mean, abs=1e-12)

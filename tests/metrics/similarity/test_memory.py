"""The memory that measures and searches of many embeddings take besides them."""

import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from headstart.metrics import pairwise_cka
from headstart.metrics.similarity import cka
from headstart.metrics.similarity.rbf_cka import pairwise_rbf_cka
from headstart.metrics.similarity.rsa import pairwise_rsa_pearson
from headstart.metrics.similarity.stimulus_scores import StimulusScores
from headstart.tests.material.catalogs import Embeddings, make_catalog


def peak(function: Callable[[], object]) -> int:
    """Return the peak memory that a call allocates, in bytes."""
    tracemalloc.start()
    try:
        function()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_memory_stays_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cka, "BLOCK_BYTES", 2**20)
    values = np.memmap(tmp_path / "rows", dtype=np.float32, mode="w+", shape=(8, 1000, 512))
    values[:] = np.random.default_rng(0).standard_normal(values.shape, dtype=np.float32)
    # A tile, two blocks of rows and what they are converted from; one Gram matrix alone would take 8 MB.
    assert peak(lambda: pairwise_cka(values)) < 6e6
    # The distances of one embedding take 4 MB; all Gram matrices would take 64 MB.
    assert peak(lambda: pairwise_rbf_cka(values)) < 12e6
    # The dissimilarities would take 31 MB.
    narrow = np.random.default_rng(0).standard_normal((12, 800, 16), dtype=np.float32)
    assert peak(lambda: pairwise_rsa_pearson(narrow)) < 6e6


def test_memory_of_a_search_does_not_grow_with_the_square_of_the_catalog() -> None:
    embeddings: Embeddings = [rows.astype(np.float32) for rows in make_catalog(20_000, seed=0, widths=(16, 16))]

    def search() -> None:
        scores = StimulusScores(embeddings)
        scores.offer(np.arange(1024))
        scores.joining(np.arange(20), np.arange(1024))

    # About the embeddings, which are read in parts; a Gram matrix would have 1.6 GB.
    assert peak(search) < 3 * sum(rows.nbytes for rows in embeddings)

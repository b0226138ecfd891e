"""Curves in a temporary file are the same curves, and one array at a time is in memory."""

import gc
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

from headstart.evaluation.spooled_curves import SpooledCurves, spool
from headstart.metrics.sample_efficiency.curves import Curves
from headstart.output.errors import UserError
from headstart.tests.material.runs import curves_of


def curves(seed: int, largest: int = 100, evaluations: int = 50) -> Curves:
    correct = np.random.default_rng(seed).integers(-2, largest, (3, 4, evaluations))
    return curves_of(correct, ["a", "b", "c"], all_correct=largest)


@pytest.mark.parametrize("largest", [100, 2**15, 2**31 - 1])
def test_counts_come_back(largest: int) -> None:
    first, second = curves(0, largest), curves(1, largest)
    spooled = [spool(first), spool(second)]
    for each, original in (*zip(spooled, (first, second), strict=True), (spooled[0], first)):
        np.testing.assert_array_equal(each.correct, original.correct)
        np.testing.assert_array_equal(each.samples_to_criterion(), original.samples_to_criterion())
    # All curves that were made from the array share it.
    with pytest.raises(ValueError, match="read-only"):
        spooled[0].correct[0] = 3


def test_curves_made_from_them_are_spooled() -> None:
    first = curves(0)
    selected = replace(spool(first), limit=7).select(["c", "a"])
    spool(curves(1))
    assert isinstance(selected, SpooledCurves)
    assert selected.limit == 7
    np.testing.assert_array_equal(selected.correct, first.correct[[2, 0]])


def test_one_array_at_a_time_is_in_memory() -> None:
    size = 3 * 4 * 50_000 * 2
    tracemalloc.start()
    kept = [spool(curves(seed, evaluations=50_000)) for seed in range(20)]
    gc.collect()
    now, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(kept) == 20
    # Each keeps its small arrays, here as long as a trace.
    assert now < 20 * 50_000 * 8 + 2 * size


def test_a_full_disk_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    class Full:
        def seek(self, *_: object) -> int:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(SpooledCurves.__dict__["correct"], "_file", Full())
    with pytest.raises(UserError, match=r"runs: the traces do not fit into '.*' \(No space left on device\)"):
        spool(curves(2))

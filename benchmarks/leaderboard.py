"""Reading all traces of a ledger for a leaderboard: 100 methods in 100 orderings, 500 evaluations each."""

from __future__ import annotations

import contextlib
import io
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.command import timed
from evaluation.sample_efficiency import sample_efficiency
from evaluation.stored_traces import read_stored
from store.ledger import Ledger, Trace, TraceKey

METHODS, ORDERINGS, EVALUATIONS, VALIDATION = 100, 100, 500, 1_000


def fill(folder: Path) -> None:
    """Store traces that rise to 90 % by and by.

    Args:
        folder: Folder of the ledger.
    """
    generator = np.random.default_rng(0)
    fed = {"batch_size": 1, "evaluate_every": 1, "validation_size": VALIDATION, "weights_sha256": "0" * 64}
    with Ledger(folder) as ledger:
        stream = ledger.record(fed)
        for method in range(METHODS):
            name = "baseline" if method == 0 else f"method {method}"
            digest = ledger.record({"class": "modules.Mine", "hyperparameters": {"place": method}}, told={"name": name})
            rise = generator.uniform(50, 200, (ORDERINGS, 1))
            rate = 0.9 - 0.4 * np.exp(-np.arange(1, EVALUATIONS + 1) / rise)
            counts = generator.binomial(VALIDATION, rate)
            ledger.write({TraceKey(stream, digest, k): Trace(counts[k]) for k in range(ORDERINGS)})


def main() -> None:
    """Print the seconds of reading, and of the whole table in this process."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        fill(folder)
        seconds, run = timed(lambda: read_stored(folder, {}))
        assert run.curves.correct.shape == (METHODS, ORDERINGS, EVALUATIONS)
        size = (folder / "traces.sqlite").stat().st_size / 1e6
        print(f"{METHODS * ORDERINGS:,} traces of {EVALUATIONS} evaluations ({size:.0f} MB): read in {seconds:.2f} s")
        with contextlib.redirect_stdout(io.StringIO()):
            seconds, _ = timed(lambda: sample_efficiency(name))
        print(f"the table of {METHODS} methods, with intervals and {METHODS - 1} permutation tests: {seconds:.1f} s")


if __name__ == "__main__":
    main()

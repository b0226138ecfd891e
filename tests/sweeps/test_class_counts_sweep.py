"""Counts of classes are the same wherever runs of a sweep are, and whoever holds the ledger."""

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headstart.engines.task import Send
from headstart.store.ledger_reader import LedgerReader
from headstart.sweeps import measure
from headstart.sweeps.request import LedgerProxy, RunRequest
from headstart.tests.material.sweeps import run, traces, write

PER_CLASS = "--results.per_class=true"


def class_counts(output: Path) -> dict[tuple[str, str, int], list[list[int]]]:
    with LedgerReader(Path(f"{output}-ledger")) as ledger:
        return {
            (stream, method, ordering): counts.tolist()
            for stream in ledger.streams()
            for method, ordering, counts in ledger.class_counts(stream)
            if counts is not None
        }


def arrays(output: Path) -> dict[str, list[Any]]:
    counts = {}
    for path in sorted(output.glob("*/curves.npz")):
        with np.load(path) as stored:
            if "class_correct" in stored:
                counts[path.parent.name] = stored["class_correct"].tolist()
    return counts


def _lend(request: RunRequest, send: Send) -> LedgerProxy:
    """Hold no ledger, as a machine of a cluster, and copy what passes to and from it."""

    def call(method: str, *arguments: Any) -> Any:
        sent = pickle.loads(pickle.dumps(arguments))
        return pickle.loads(pickle.dumps(measure._call(send, method, *sent)))

    return LedgerProxy(Path(f"{request.folder}-lent"), call)


@pytest.mark.slow
def test_a_lent_ledger_gets_them(
    tmp_path: Path, small_comparison: Callable[[Path], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    options = small_comparison(tmp_path)
    counting = write(tmp_path, [*options, PER_CLASS])
    run(counting, tmp_path / "here")
    monkeypatch.setattr(measure, "_open_ledger", _lend)
    plain = write(tmp_path / "pictures", options)
    for file, computed in ((plain, 4), (plain, 0), (counting, 4), (counting, 0), (plain, 0)):
        rows = run(file, tmp_path / "lent").values()
        own = [row for row in rows if (PER_CLASS in row["options"]) == (file == counting)]
        assert [row["computed_traces"] for row in own] == [computed] * 2
    assert arrays(tmp_path / "lent") == arrays(tmp_path / "here")
    assert class_counts(tmp_path / "lent") == class_counts(tmp_path / "here")
    assert len(class_counts(tmp_path / "here")) == len(traces(tmp_path / "here")) == 8
    assert traces(tmp_path / "lent") == traces(tmp_path / "here")


@pytest.mark.slow
def test_by_workers_and_on_ray(tmp_path: Path, small_comparison: Callable[[Path], list[str]], cluster: Any) -> None:
    file = write(tmp_path, [*small_comparison(tmp_path), PER_CLASS])
    run(file, tmp_path / "serial")
    cluster.add_node(num_cpus=2)
    for name, option in (("workers", "--workers=2"), ("ray", f"--ray={cluster.address}")):
        run(file, tmp_path / name, option)
        assert class_counts(tmp_path / name) == class_counts(tmp_path / "serial")
        assert arrays(tmp_path / name) == arrays(tmp_path / "serial")

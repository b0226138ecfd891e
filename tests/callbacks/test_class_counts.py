"""Correct predictions of each class are kept with the traces, and change nothing else."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from headstart.callbacks import ComparisonRun
from headstart.output.errors import UserError
from headstart.store.ledger import Ledger
from headstart.store.ledger_file import FILE, Trace, TraceKey
from headstart.tests.material.scripted_runs import COUNTS, ScriptedRun

Script = Callable[..., ScriptedRun]


def arrays(run: ScriptedRun) -> dict[str, NDArray[Any]]:
    with np.load(run.folder / "curves.npz") as stored:
        return dict(stored)


def split(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the counts of both classes: the first samples are right, and their classes alternate."""
    return np.stack([(counts + 1) // 2, counts // 2], axis=-1)


def computed(run: ScriptedRun) -> int:
    count: int = run.results.document["times"]["computed_traces"]
    return count


def stored(run: ScriptedRun) -> dict[TraceKey, Trace]:
    with Ledger(run.criterion.traces.ledger.folder) as ledger:
        return ledger.read(key for keys in run.criterion.traces.keys for key in keys)


@pytest.mark.parametrize(("measure", "size"), [("accuracy", 20), ("balanced_accuracy", 23)])
def test_they_are_those_of_a_plain_loop_and_all_else_stays(
    script: Script, measure: str, size: int, tmp_path: Path
) -> None:
    options: dict[str, Any] = {"validation_size": size, "measure": measure}
    without = script(COUNTS, results=ComparisonRun(ledger=str(tmp_path / "one")), folder="without", **options)
    run = script(COUNTS, results=ComparisonRun(ledger=str(tmp_path / "two"), per_class=True), folder="with", **options)
    for part in ("methods", "criterion", "protocol"):
        assert run.results.document[part] == without.results.document[part]
    known = arrays(run)
    assert {*known} == {*arrays(without), "class_correct", "class_sizes"}
    assert all(np.array_equal(known[name], array) for name, array in arrays(without).items())
    assert known["class_sizes"].tolist() == [-(-size // 2), size // 2]
    assert known["class_correct"].tolist() == split(COUNTS).tolist()
    assert known["class_correct"].dtype == np.uint8

    for key, trace in stored(run).items():
        row = [method[0].method for method in run.criterion.traces.keys].index(key.method)
        assert trace.of_class is not None
        assert trace.of_class[1:].tolist() == split(COUNTS[row, key.ordering - 3]).tolist()
    assert {trace.of_class for trace in stored(without).values()} == {None}


def test_stored_traces_without_them_are_measured_again_and_then_serve_both(script: Script) -> None:
    options: dict[str, Any] = {"threshold": 1.0, "consecutive": 3}
    whole = script(COUNTS, results=ComparisonRun(), folder="whole", **options)
    counting = script(COUNTS, results=ComparisonRun(per_class=True), folder="counting", **options)
    plain = script(COUNTS, results=ComparisonRun(), folder="plain", **options)
    shorter = script(COUNTS, results=ComparisonRun(per_class=True), max_samples=7, folder="shorter", **options)
    assert [computed(run) for run in (whole, counting, plain, shorter)] == [6, 6, 0, 0]
    with pytest.raises(UserError, match=r"^results\.per_class: true .* give --criterion\.evaluation=every$"):
        script(COUNTS, results=ComparisonRun(per_class=True), evaluation="lazy")
    assert arrays(shorter)["class_correct"].tolist() == split(COUNTS[..., :7]).tolist()


def test_they_are_stored_as_they_are_and_take_little_room(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    shares = 1 - np.exp(-np.linspace(0, 2, 300))[:, None] * generator.uniform(0.5, 1, 1000)
    smooth = np.concatenate([np.full((1, 1000), 50), np.round(50 * shares)]).astype(np.uint8)
    kinds: tuple[Any, ...] = (np.uint8, np.uint16, np.uint32)
    rough = [generator.integers(0, np.iinfo(kind).max, (7, 3), dtype=kind, endpoint=True) for kind in kinds]
    every = {TraceKey("stream", "method", index): each for index, each in enumerate([smooth, *rough])}
    with Ledger(tmp_path) as ledger:
        ledger.write({key: Trace(each[1:].sum(1, dtype=np.int64), of_class=each) for key, each in every.items()})
        for key, trace in ledger.read(every).items():
            assert trace.of_class is not None
            assert trace.of_class.dtype == every[key].dtype
            assert np.array_equal(trace.of_class, every[key])
    assert (tmp_path / FILE).stat().st_size < smooth.size / 3

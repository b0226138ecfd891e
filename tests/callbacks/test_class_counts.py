"""Correct predictions of each class are kept with the traces, and change nothing else."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from headstart.callbacks import ComparisonRun
from headstart.output.errors import UserError
from headstart.store.class_counts import pack, unpack
from headstart.store.ledger import Ledger
from headstart.store.ledger_checks import checksum
from headstart.store.ledger_file import FILE, Trace, TraceKey
from headstart.tests.material.scripted_runs import COUNTS, Killed, ScriptedRun

Script = Callable[..., ScriptedRun]
CLASSES, TABLE = ("class_correct", "class_sizes"), "class_counts"


def arrays(run: ScriptedRun) -> dict[str, NDArray[Any]]:
    with np.load(run.folder / "curves.npz") as stored:
        return dict(stored)


def split(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the counts of both classes: the first samples are right, and their classes alternate."""
    return np.stack([(counts + 1) // 2, counts // 2], axis=-1)


def document(run: ScriptedRun) -> dict[str, Any]:
    return {key: value for key, value in run.results.document.items() if key != "times"}


def computed(run: ScriptedRun) -> int:
    count: int = run.results.document["times"]["computed_traces"]
    return count


def ledger_of(run: ScriptedRun) -> Path:
    return run.criterion.traces.ledger.folder


def stored(run: ScriptedRun) -> dict[TraceKey, Trace]:
    with Ledger(ledger_of(run)) as ledger:
        return ledger.read((key for keys in run.criterion.traces.keys for key in keys), of_class=True)


@pytest.mark.parametrize(("measure", "size"), [("accuracy", 20), ("balanced_accuracy", 23)])
def test_they_are_those_of_a_plain_loop_and_all_else_stays(
    script: Script, measure: str, size: int, tmp_path: Path
) -> None:
    options: dict[str, Any] = {"validation_size": size, "measure": measure}
    without = script(COUNTS, results=ComparisonRun(ledger=str(tmp_path / "one")), folder="without", **options)
    run = script(COUNTS, results=ComparisonRun(ledger=str(tmp_path / "two"), per_class=True), folder="with", **options)
    assert document(run) == document(without)
    known = arrays(run)
    assert {*known} == {*arrays(without), *CLASSES}
    assert all(np.array_equal(known[name], array) for name, array in arrays(without).items())
    assert known["class_sizes"].tolist() == [-(-size // 2), size // 2]
    assert known["class_correct"].tolist() == split(COUNTS).tolist()
    assert known["class_correct"].dtype == np.uint8

    for key, trace in stored(run).items():
        row = [method[0].method for method in run.criterion.traces.keys].index(key.method)
        assert trace.of_class is not None
        assert trace.of_class[1:].tolist() == split(COUNTS[row, key.ordering - 3]).tolist()
    with closing(sqlite3.connect(tmp_path / "one" / FILE)) as base:
        assert not base.execute(f"SELECT * FROM {TABLE}").fetchall()


@pytest.mark.slow
def test_stored_traces_without_them_are_measured_again_and_then_serve_both(script: Script) -> None:
    script(COUNTS, results=ComparisonRun(), folder="without")
    run = script(COUNTS, results=ComparisonRun(per_class=True), folder="with")
    assert computed(run) == 6
    for per_class in (True, False, True):
        again = script(COUNTS, results=ComparisonRun(per_class=per_class, overwrite=True), folder="again")
        assert computed(again) == 0
        assert document(again) == document(run)
    assert np.array_equal(arrays(again)["class_correct"], arrays(run)["class_correct"])


@pytest.mark.slow
def test_a_longer_trace_keeps_its_totals_and_gets_the_classes_of_its_beginning(script: Script) -> None:
    options: dict[str, Any] = {"threshold": 1.0, "consecutive": 3}
    whole = script(COUNTS, results=ComparisonRun(), folder="whole", **options)
    for expected in (6, 0):
        part = script(COUNTS, results=ComparisonRun(per_class=True), max_samples=7, folder="part", **options)
        assert computed(part) == expected
    for key, trace in stored(whole).items():
        assert len(trace.correct) == 12
        assert trace.of_class is not None
        assert trace.of_class[1:].sum(1).tolist() == trace.correct[:7].tolist(), key
    assert computed(script(COUNTS, results=ComparisonRun(), folder="again", **options)) == 0
    assert computed(script(COUNTS, results=ComparisonRun(per_class=True), folder="rest", **options)) == 6


def test_what_a_run_without_them_adds_leaves_those_that_are_there(script: Script) -> None:
    options: dict[str, Any] = {"threshold": 1.0, "consecutive": 3}
    script(COUNTS, results=ComparisonRun(per_class=True), max_samples=7, folder="part", **options)
    whole = script(COUNTS, results=ComparisonRun(), folder="whole", **options)
    for trace in stored(whole).values():
        assert trace.of_class is not None
        assert (len(trace.correct), len(trace.of_class[1:])) == (12, 7)


@pytest.mark.slow
@pytest.mark.parametrize("has_totals", [False, True])
def test_a_run_that_was_cut_off_ends_as_a_whole_one(script: Script, has_totals: bool, tmp_path: Path) -> None:
    whole = script(COUNTS, results=ComparisonRun(ledger=str(tmp_path / "other"), per_class=True), folder="whole")
    if has_totals:
        script(COUNTS, results=ComparisonRun(), folder="totals")
    for samples in (4, 9, None):
        killed = () if samples is None else (Killed(samples),)
        run = script(COUNTS, results=ComparisonRun(per_class=True), callbacks=killed)
    assert document(run) == document(whole)
    assert all(np.array_equal(array, arrays(run)[name]) for name, array in arrays(whole).items())


@pytest.mark.slow
def test_recomputed_traces_lose_the_counts_of_earlier_ones(script: Script) -> None:
    script(COUNTS, results=ComparisonRun(per_class=True), folder="counted")
    run = script(COUNTS, results=ComparisonRun(recompute=True), folder="recomputed")
    assert {trace.of_class for trace in stored(run).values()} == {None}
    assert computed(script(COUNTS, results=ComparisonRun(per_class=True), folder="again")) == 6


def change(run: ScriptedRun, by: NDArray[np.int64], seal: bool) -> TraceKey:
    """Change the stored counts of a trace's classes at one evaluation, with a checksum that fits or not."""
    key = run.criterion.traces.keys[1][2]
    where, row = "WHERE method = ? AND ordering = ?", (key.method, key.ordering)
    with closing(sqlite3.connect(ledger_of(run) / FILE)) as base:
        ((content,),) = base.execute(f"SELECT counts FROM {TABLE} {where}", row).fetchall()
        counts = unpack(content)
        counts[5] = counts[5] + by
        content = pack(counts)
        base.execute(f"UPDATE {TABLE} SET counts = ? {where}", (content, *row))
        if seal:
            sealed = checksum(key.stream, *row, content)
            base.execute(f"UPDATE {TABLE} SET checksum = ? {where}", (sealed, *row))
        base.commit()
    return key


@pytest.mark.slow
@pytest.mark.parametrize(
    ("by", "seal", "message"),
    [
        ([1, -1], False, "the count by class of the trace of method_0 in ordering 5 is damaged; it is not used."),
        ([1, 0], True, "a trace in ordering 5 has class counts that do not add up to its counts; it is measured again"),
        (
            [8, -8],
            True,
            "a trace in ordering 5 has class counts that do not add up to its counts; it is measured again",
        ),
    ],
)
def test_damaged_ones_are_named_and_measured_again(
    script: Script, by: list[int], seal: bool, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run = script(COUNTS, results=ComparisonRun(per_class=True))
    key = change(run, np.array(by), seal)
    capsys.readouterr()
    # Of no interest to a run without them.
    assert computed(script(COUNTS, results=ComparisonRun(), folder="without")) == 0
    assert capsys.readouterr().err == ""
    again = script(COUNTS, results=ComparisonRun(per_class=True), folder="again")
    assert computed(again) == 1
    assert message in capsys.readouterr().err
    assert np.array_equal(arrays(again)["class_correct"], arrays(run)["class_correct"])
    of_class = stored(again)[key].of_class
    assert of_class is not None
    assert of_class[1:].tolist() == split(COUNTS[1, 2]).tolist()


@pytest.mark.slow
def test_a_recomputation_compares_them(script: Script, capsys: pytest.CaptureFixture[str]) -> None:
    run = script(COUNTS, results=ComparisonRun(per_class=True))
    change(run, np.array([-1, 1]), seal=True)
    capsys.readouterr()
    again = script(COUNTS, results=ComparisonRun(per_class=True, recompute=True), folder="anew")
    assert "method_0 differs from its stored traces in 1 orderings" in capsys.readouterr().out
    assert arrays(again)["class_correct"].tolist() == split(COUNTS).tolist()


def test_lazy_evaluation_is_refused(script: Script) -> None:
    with pytest.raises(UserError, match=r"^results\.per_class: true .* give --criterion\.evaluation=every$"):
        script(COUNTS, results=ComparisonRun(per_class=True), evaluation="lazy")


def test_many_classes_take_little_room(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    shares = 1 - np.exp(-np.linspace(0, 2, 300))[:, None] * generator.uniform(0.5, 1, 1000)
    counts = np.concatenate([np.full((1, 1000), 50), np.round(50 * shares)]).astype(np.uint8)
    key = TraceKey("stream", "method", 0)
    with Ledger(tmp_path) as ledger:
        ledger.write({key: Trace(counts[1:].sum(1, dtype=np.int64), of_class=counts)})
        (trace,) = ledger.read([key], of_class=True).values()
        assert trace.of_class is not None
        assert np.array_equal(trace.of_class, counts)
        (plain,) = ledger.read([key]).values()
        assert plain.of_class is None
    assert (tmp_path / FILE).stat().st_size < counts.size / 3


@pytest.mark.parametrize("kind", [np.uint8, np.uint16, np.uint32])
def test_packed_counts_are_unpacked(kind: type[np.unsignedinteger[Any]]) -> None:
    counts = np.random.default_rng(0).integers(0, np.iinfo(kind).max, (7, 3), dtype=kind, endpoint=True)
    for part in (counts, counts[:1]):
        again = unpack(pack(part))
        assert again.dtype == kind
        assert again.tolist() == part.tolist()

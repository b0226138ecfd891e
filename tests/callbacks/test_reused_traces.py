"""Traces that are there are not measured again, but for those that are too short or of another measure."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from headstart.callbacks import ComparisonRun
from headstart.store.ledger import Ledger
from headstart.store.ledger_file import Trace
from headstart.store.ledger_reader import LedgerReader
from headstart.tests.material.scripted_runs import COUNTS, read

Script = Callable[..., Any]


def test_only_missing_traces_are_measured(script: Script) -> None:
    script(COUNTS[:, :2], results=ComparisonRun(), folder="two")
    more = script(COUNTS, results=ComparisonRun(), folder="three")
    times = read(more.folder)["times"]
    assert (times["computed_traces"], times["reused_traces"]) == (2, 4)
    assert more.criterion.traces.measured.tolist() == [[False, False, True]] * 2
    alone = script(COUNTS, results=ComparisonRun(ledger=str(more.folder / "own")), folder="alone")
    assert read(alone.folder)["methods"] == read(more.folder)["methods"]
    assert alone.correct.tolist() == more.correct.tolist()


def test_a_trace_that_is_too_short_is_measured_again(script: Script) -> None:
    counts = np.array([[[16] * 9 + [0] * 3, [0] * 12]])
    script(counts, max_samples=6, results=ComparisonRun(), folder="short", consecutive=5)
    whole = script(counts, results=ComparisonRun(), folder="long", consecutive=5)
    assert whole.criterion.traces.measured.tolist() == [[False, True]]
    assert whole.criterion.traces.lengths.tolist() == [[6, 12]]
    assert read(whole.folder)["methods"]["baseline"]["samples_to_criterion"] == [5, None]
    stricter = script(counts, results=ComparisonRun(), folder="strict", consecutive=7)
    assert stricter.criterion.traces.measured.tolist() == [[True, False]]
    assert read(stricter.folder)["methods"]["baseline"]["samples_to_criterion"] == [7, None]


def test_recomputed_traces_take_the_place_of_stored_ones(script: Script) -> None:
    run = script(COUNTS, results=ComparisonRun(), consecutive=3)
    with Ledger(run.criterion.traces.ledger.folder) as ledger:
        ledger.write({run.criterion.traces.keys[1][2]: Trace(COUNTS[1, 2] - 1)})
    for recompute, computed in ((True, 6), (False, 0)):
        again = script(COUNTS, results=ComparisonRun(recompute=recompute), consecutive=3)
        assert read(again.folder)["times"]["computed_traces"] == computed
        assert again.correct.tolist() == run.correct.tolist()


def test_a_run_that_was_cut_off_is_finished_by_the_same_command(script: Script) -> None:
    undisturbed = script(COUNTS, results=ComparisonRun(), folder="whole")
    for fail_at in (9, 4, None):
        run = script(COUNTS, results=ComparisonRun(ledger=str(undisturbed.folder.parent / "own")), fail_at=fail_at)
        assert read(run.folder)["complete"] == (fail_at is None)
    written = [read(folder) for folder in (run.folder, undisturbed.folder)]
    for document in written:
        document.pop("times")
    assert written[0] == written[1]


def test_runs_of_one_folder_share_a_ledger_beside_them(script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HEADSTART_LEDGER")
    first = script(COUNTS, results=ComparisonRun(), folder="runs/a")
    second = script(COUNTS, results=ComparisonRun(), folder="runs/b")
    assert first.criterion.traces.ledger.folder == second.folder.parent / "ledger"
    assert read(second.folder)["times"]["computed_traces"] == 0


def test_stored_traces_of_another_measure_are_not_taken(script: Script) -> None:
    # Classes of one size have the same counts by both measures, and other traces nevertheless.
    for measure in ("accuracy", "balanced_accuracy", "balanced_accuracy"):
        run = script(COUNTS, results=ComparisonRun(), measure=measure, folder=measure)
    assert read(run.folder)["times"].items() >= {"computed_traces": 0, "reused_traces": 6}.items()
    with LedgerReader(run.criterion.traces.ledger.folder) as ledger:
        measures = sorted(document["measure"] for document in ledger.streams().values())
    assert measures == ["accuracy", "balanced_accuracy"]


def test_a_lower_limit_than_where_a_method_diverged(script: Script) -> None:
    run = script(COUNTS, results=ComparisonRun(), folder="high", consecutive=9)
    keys = run.criterion.traces.keys
    with Ledger(run.criterion.traces.ledger.folder) as ledger:
        ledger.write({keys[0][0]: Trace(COUNTS[0, 0], diverged=5)})
    low = script(COUNTS, results=ComparisonRun(), folder="low", max_samples=4, consecutive=3)
    assert read(low.folder)["methods"]["baseline"]["diverged_at"][0] is None
    high = script(COUNTS, results=ComparisonRun(), folder="again", consecutive=9)
    assert read(high.folder)["methods"]["baseline"]["diverged_at"][0] == 6

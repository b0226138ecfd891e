"""Warnings of photos are printed below the table of a run, and stand in its results and in the ledger."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from headstart.callbacks import ComparisonRun
from headstart.store.ledger_file import DESCRIPTION
from headstart.store.ledger_reader import LedgerReader
from headstart.tests.material.scripted_runs import COUNTS, IndexStream

Script = Callable[..., Any]
PAIRS = [["train/1.jpg", "validation/2.jpg"]]


def test_near_duplicates_stand_in_the_results_and_in_the_ledger(
    script: Script, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    describe = IndexStream.describe
    monkeypatch.setattr(IndexStream, "describe", lambda self: {**describe(self), "near_duplicate_photos": PAIRS})
    run = script(COUNTS, results=ComparisonRun())
    document = json.loads((run.folder / "results.json").read_text())
    warning = "1 validation photos look like a training photo: accuracies may be too high"
    assert f"{warning}: train/1.jpg ~ validation/2.jpg." in document["warnings"]
    printed = " ".join(capsys.readouterr().out.split())
    assert all(f"WARNING: {each}" in printed for each in document["warnings"])
    with LedgerReader(run.results.traces.ledger.folder) as ledger:
        [fed] = ledger.streams().values()
    assert fed[DESCRIPTION]["near_duplicate_photos"] == PAIRS
    assert "near_duplicate_photos" not in {**fed, DESCRIPTION: {}}

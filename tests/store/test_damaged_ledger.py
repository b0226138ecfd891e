"""A flipped bit anywhere in a ledger is an error or a trace that is missing, and never another number."""

import re
import sqlite3
from pathlib import Path

import numpy as np
import pytest

from headstart.store.ledger import Ledger
from headstart.store.ledger_file import FILE, LedgerError, Trace, TraceKey
from headstart.store.ledger_reader import LedgerReader
from headstart.tests.material.ledgers import store

NAMES = ("baseline", "mine")
COUNTS = np.random.default_rng(0).integers(0, 100, (2, 6, 40))


def fill(folder: Path) -> dict[TraceKey, Trace]:
    store(folder, dict(zip(NAMES, COUNTS, strict=True)))
    with LedgerReader(folder) as reader:
        (stream,) = reader.streams()
        documents = reader.traces(stream).methods
        methods = [digest for name in NAMES for digest, document in documents.items() if name in str(document)]
        return reader.read(TraceKey(stream, method, k) for method in methods for k in range(6))


def as_lists(trace: Trace) -> list[object]:
    return [trace.correct.tolist(), trace.diverged, trace.drew]


def read_in_both_ways(folder: Path, expected: dict[TraceKey, Trace]) -> bool:
    """Check that what is read of a ledger is right; return whether all that is missing is named."""
    stream = next(iter(expected)).stream
    with LedgerReader(folder) as reader:
        assert all(document["validation_size"] == 100 for document in reader.streams().values())
        traces = reader.traces(stream)
    assert {document["told"]["name"] for document in traces.methods.values()} <= {*NAMES}
    for (method, ordering), counts in traces.counts.items():
        assert counts.tolist() == expected[TraceKey(stream, method, ordering)].correct.tolist()

    with Ledger(folder) as ledger:
        found = ledger.read(expected)
        assert all(as_lists(trace) == as_lists(expected[key]) for key, trace in found.items())
        # What is missing is measured again, and then is there.
        ledger.write({key: trace for key, trace in expected.items() if key not in found})
        assert ledger.read(expected).keys() == expected.keys()
    return len(traces.counts) + len(traces.damaged) == len(expected)


def test_flipped_bits_are_noticed_or_harmless(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    expected = fill(tmp_path)
    whole, generator = (tmp_path / FILE).read_bytes(), np.random.default_rng(1)
    assert len(expected) == 12

    results = []
    for place in generator.integers(len(whole), size=200).tolist():
        content = bytearray(whole)
        content[place] ^= 1 << int(generator.integers(8))
        (tmp_path / FILE).write_bytes(content)
        try:
            is_named = read_in_both_ways(tmp_path, expected)
            is_told = is_named or "is damaged" in capsys.readouterr().err
            results.append("read" if is_told else f"silent at {place}")
        except LedgerError:
            results.append("an error")
    assert {*results} == {"read", "an error"}


def test_a_damaged_trace_is_named_and_written_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    expected = fill(tmp_path)
    with sqlite3.connect(tmp_path / FILE) as base:
        base.execute(
            "UPDATE traces SET correct = zeroblob(160) WHERE ordering = 3 AND method = ?", [next(iter(expected)).method]
        )
    with Ledger(tmp_path) as ledger:
        (lost,) = expected.keys() - ledger.read(expected).keys()
        assert re.search("the trace of baseline in ordering 3 is damaged; it is not used", capsys.readouterr().err)
        ledger.write({lost: expected[lost]})
        assert ledger.read(expected).keys() == expected.keys()


def test_a_damaged_description_is_named_and_recorded_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    expected = fill(tmp_path)
    with sqlite3.connect(tmp_path / FILE) as base:
        base.execute("UPDATE documents SET document = replace(document, 'resnet18', 'resnet50')")
    with LedgerReader(tmp_path) as reader:
        assert not reader.streams()
    stream = next(iter(expected)).stream
    assert f"the description of {stream[:8]} is damaged; traces of this stream are left out" in capsys.readouterr().err
    assert fill(tmp_path).keys() == expected.keys()


def test_what_is_no_ledger_of_this_format_is_an_error(tmp_path: Path) -> None:
    fill(tmp_path / "other")
    with sqlite3.connect(tmp_path / "other" / FILE) as base:
        base.execute("PRAGMA user_version = 99")
    (tmp_path / "text").mkdir()
    (tmp_path / "text" / FILE).write_text("no database" * 1000)
    (tmp_path / "folder" / FILE).mkdir(parents=True)

    reasons = {"other": "has format 99, but .* reads format 5$", "text": "not a database", "folder": "unable to open"}
    for name, reason in reasons.items():
        for opened in (Ledger, LedgerReader):
            with pytest.raises(LedgerError, match=reason):
                opened(tmp_path / name)

"""A flipped bit anywhere in a ledger is an error or a trace that is missing, and never another number."""

import re
import shutil
import sqlite3
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from headstart.store.ledger import Ledger
from headstart.store.ledger_file import FILE, LedgerError, Trace, TraceKey
from headstart.store.ledger_reader import LedgerReader
from headstart.tests.material.ledgers import store

COUNTS = np.random.default_rng(0).integers(0, 100, (2, 6, 40))
NAMES = ("baseline", "mine")


# Sizes of three classes, and the correct predictions of each.
OF_CLASS = dict(zip(NAMES, np.random.default_rng(2).integers(0, 100, (2, 6, 41, 3), dtype=np.uint8), strict=True))


def fill(folder: Path, of_class: bool = False) -> Path:
    return store(folder, dict(zip(NAMES, COUNTS, strict=True)), of_class=OF_CLASS if of_class else {})


def keys_of(folder: Path) -> dict[TraceKey, list[int]]:
    with LedgerReader(folder) as reader:
        (stream,) = reader.streams()
        return {TraceKey(stream, *key): counts.tolist() for key, counts in reader.traces(stream).counts.items()}


def check(folder: Path, expected: dict[TraceKey, list[int]]) -> str:
    """Read a ledger in both ways; return what came of it, of which none may be a wrong trace without a word."""
    (stream,) = {key.stream for key in expected}
    try:
        with LedgerReader(folder) as reader:
            documents = reader.streams()
            traces = reader.traces(stream)
            names = {digest: document["told"]["name"] for digest, document in reader.methods(stream).items()}
            for method, ordering, counts_of_class in reader.class_counts(stream):
                if counts_of_class is not None:
                    assert np.array_equal(counts_of_class, OF_CLASS[names[method]][ordering])
        for (method, ordering), counts in traces.counts.items():
            assert counts.tolist() == expected[TraceKey(stream, method, ordering)]
        assert len(traces.counts) + len(traces.damaged) == len(expected)
        assert documents[stream]["validation_size"] == 100
        assert sorted(names.values()) == sorted(NAMES)
        result = "damaged" if traces.damaged else "intact"
    except LedgerError:
        result = "error"
    with suppress(LedgerError), Ledger(folder) as ledger:
        for key, trace in ledger.read(expected, of_class=True).items():
            assert trace.correct.tolist() == expected[key]
            assert trace.diverged is None
            if trace.of_class is not None:
                assert any(np.array_equal(trace.of_class, each[key.ordering]) for each in OF_CLASS.values())
    return result


@pytest.mark.parametrize("flips", [80, pytest.param(3000, marks=pytest.mark.slow)])
def test_a_flipped_bit_is_noticed(flips: int, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    expected = keys_of(fill(tmp_path / "whole", of_class=True))
    whole = (tmp_path / "whole" / FILE).read_bytes()
    generator, results = np.random.default_rng(1), []
    for _ in range(flips):
        shutil.rmtree(tmp_path / "flipped", ignore_errors=True)
        (tmp_path / "flipped").mkdir()
        content, position = bytearray(whole), int(generator.integers(len(whole)))
        content[position] ^= 1 << int(generator.integers(8))
        (tmp_path / "flipped" / FILE).write_bytes(content)
        results.append(check(tmp_path / "flipped", expected))
    # Half of the file is free space, whose bits mean nothing.
    assert {*results} == {"intact", "damaged", "error"}
    assert "Traceback" not in capfd.readouterr().err


def test_a_damaged_trace_is_named_and_written_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    expected = keys_of(fill(tmp_path))
    with sqlite3.connect(tmp_path / FILE) as base:
        base.execute(
            "UPDATE traces SET correct = zeroblob(160) WHERE ordering = 3 AND method = ?", [next(iter(expected)).method]
        )
    with Ledger(tmp_path) as ledger:
        traces = ledger.read(expected)
        (lost,) = expected.keys() - traces.keys()
        assert re.search("the trace of (baseline|mine) in ordering 3 is damaged", capsys.readouterr().err)
        ledger.write({lost: Trace(np.array(expected[lost]))})
    assert keys_of(tmp_path) == expected


def test_a_damaged_description_is_recorded_again(tmp_path: Path) -> None:
    expected = keys_of(fill(tmp_path))
    with sqlite3.connect(tmp_path / FILE) as base:
        base.execute("UPDATE origins SET document = replace(document, 'pets', 'vets')")
    with pytest.raises(LedgerError, match="is damaged in the descriptions of"):
        keys_of(tmp_path)
    fill(tmp_path)
    assert keys_of(tmp_path) == expected


@pytest.mark.parametrize("other", [1, 2, 4])
def test_ledgers_of_another_format_are_refused(tmp_path: Path, other: int) -> None:
    fill(tmp_path)
    with sqlite3.connect(tmp_path / FILE) as base:
        base.execute(f"PRAGMA user_version = {other}")
    for opened in (Ledger, LedgerReader):
        with pytest.raises(LedgerError, match=f"has format {other}, but this version of Headstart reads format 3$"):
            opened(tmp_path)


def test_damaged_indices_are_made_again(tmp_path: Path) -> None:
    expected = keys_of(fill(tmp_path))
    with sqlite3.connect(tmp_path / FILE) as base:
        base.execute("PRAGMA writable_schema = ON")
        base.execute("CREATE INDEX more ON traces (ordering)")
        base.execute("UPDATE sqlite_master SET sql = 'CREATE INDEX more ON traces (method)' WHERE name = 'more'")
    with pytest.raises(LedgerError, match="is damaged"):
        keys_of(tmp_path)
    Ledger(tmp_path).close()
    assert keys_of(tmp_path) == expected


def test_a_flipped_bit_in_a_key_loses_nothing_without_a_word(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    expected = keys_of(fill(tmp_path))
    with Ledger(tmp_path) as ledger:
        draws = ledger.record({"draws": NAMES})
    whole, warned = (tmp_path / FILE).read_bytes(), 0
    keys = {draws, *(key.stream for key in expected), *(key.method for key in expected)}
    for index in [each.start() for key in sorted(keys) for each in re.finditer(key.encode(), whole)]:
        (tmp_path / FILE).write_bytes(whole[:index] + bytes([whole[index] ^ 1]) + whole[index + 1 :])
        with Ledger(tmp_path) as ledger:
            assert ledger.is_recorded(draws)
        lost = len(re.findall("is damaged; it is removed", capsys.readouterr().err))
        found = keys_of(tmp_path)
        assert len(found) == len(expected) - lost
        assert found.items() <= expected.items()
        with LedgerReader(tmp_path) as reader:
            assert len(reader.methods(next(iter(expected)).stream)) == len(NAMES)
        warned += lost
    # Each trace has two digests in its key; documents get theirs again.
    assert warned == 2 * len(expected)

"""The log of scores: whole lines, on the disk, whatever comes between."""

import errno
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headstart.evaluation.alignment.score_log import ScoreFile, append_score, log_folder
from headstart.output.errors import UserError

ROOT = Path(__file__).parents[3]

WRITER = """
import sys
from pathlib import Path
from headstart.evaluation.alignment.score_log import append_score
folder, writer = Path(sys.argv[1]), int(sys.argv[2])
for i in range(20):
    append_score(folder, {"writer": writer, "i": i, "padding": "x" * (1 + 997 * i)})
"""


def read(path: Path) -> list[dict[str, Any]]:
    text = path.read_text()
    assert text.endswith("\n")
    return [json.loads(line) for line in text.splitlines()]


def test_scores_are_appended_as_lines(tmp_path: Path) -> None:
    records: list[dict[str, Any]] = [
        {"score": 0.1 + 0.2, "team": "blue", "note": "two\nlines, \u2028 and 鳥"},
        {"score": -1e-17, "b": None},
    ]
    for record in records:
        path = append_score(tmp_path / "deep" / "folder", record)
    assert path == tmp_path / "deep" / "folder" / "scores.jsonl"
    assert read(path) == records
    assert path.read_bytes().count(b"\n") == 2


def test_order_of_keys_is_without_effect(tmp_path: Path) -> None:
    append_score(tmp_path, {"a": 1, "b": {"c": 2, "d": 3}})
    path = append_score(tmp_path, {"b": {"d": 3, "c": 2}, "a": 1})
    first, second = path.read_text().splitlines()
    assert first == second


@pytest.mark.parametrize("there", [None, b'{"score": 1}\n', b'{"score": 1}\n{"sco'])
def test_one_write_then_sync(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there: bytes | None) -> None:
    path = tmp_path / "scores.jsonl"
    if there is not None:
        path.write_bytes(there)
    calls: list[tuple[str, Any]] = []
    flags: list[int] = []
    open_, write, sync = os.open, os.write, os.fsync

    def record_open(name: Any, flag: int, *rest: Any, **options: Any) -> int:
        if Path(name) == path:
            flags.append(flag)
        return open_(name, flag, *rest, **options)

    def record_write(descriptor: int, data: bytes) -> int:
        calls.append(("write", data))
        return write(descriptor, data)

    def record_sync(descriptor: int) -> None:
        target = "log" if os.path.samestat(os.fstat(descriptor), path.stat()) else "other"
        calls.append(("sync", "folder" if os.path.samestat(os.fstat(descriptor), tmp_path.stat()) else target))
        sync(descriptor)

    monkeypatch.setattr(os, "open", record_open)
    monkeypatch.setattr(os, "write", record_write)
    monkeypatch.setattr(os, "fsync", record_sync)
    append_score(tmp_path, {"score": 2})
    line = b'{"score": 2}\n'
    torn = there is not None and not there.endswith(b"\n")
    expected: list[tuple[str, Any]] = [("write", b"\n" + line if torn else line), ("sync", "log")]
    assert calls == (expected if there else [*expected, ("sync", "folder")])
    assert len(flags) == 1
    assert flags[0] & os.O_APPEND
    assert path.read_bytes() == (there or b"") + expected[0][1]


def test_torn_line_costs_no_other(tmp_path: Path) -> None:
    path = append_score(tmp_path, {"score": 1})
    with path.open("ab") as file:
        file.write(b'{"score": 2, "te')
    append_score(tmp_path, {"score": 3})
    append_score(tmp_path, {"score": 4})
    first, torn, *rest = path.read_text().splitlines()
    assert [json.loads(line)["score"] for line in (first, *rest)] == [1, 3, 4]
    assert torn == '{"score": 2, "te'


def test_processes_do_not_interleave(tmp_path: Path) -> None:
    commands = [[sys.executable, "-c", WRITER, str(tmp_path), str(writer)] for writer in range(4)]
    running = [subprocess.Popen(command, cwd=ROOT) for command in commands]
    assert [process.wait() for process in running] == [0] * 4
    records = read(tmp_path / "scores.jsonl")
    assert sorted((record["writer"], record["i"]) for record in records) == [
        (w, i) for w in range(4) for i in range(20)
    ]
    assert all(len(record["padding"]) == 1 + 997 * record["i"] for record in records)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_score_that_is_not_json_is_not_logged(tmp_path: Path, value: float) -> None:
    with pytest.raises(ValueError, match="JSON compliant"):
        append_score(tmp_path, {"score": value})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("before", [b"", b'{"score": 1}\n', b'{"torn'])
@pytest.mark.parametrize("failure", ["short", "all but its end", "no space", "sync"])
def test_failed_write_leaves_the_log_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failure: str, before: bytes
) -> None:
    path = tmp_path / "scores.jsonl"
    path.write_bytes(before)
    write = os.write

    def fail(*args: Any) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    if failure == "sync":
        monkeypatch.setattr(os, "fsync", fail)
    elif failure == "no space":
        monkeypatch.setattr(os, "write", fail)
    else:
        missing = 5 if failure == "short" else 1
        monkeypatch.setattr(os, "write", lambda descriptor, data: write(descriptor, data[:-missing]))
    with pytest.raises(UserError) as caught:
        append_score(tmp_path, {"score": 2})
    message = str(caught.value)
    assert message.startswith(f"log_dir: no score can be appended to {str(path)!r} (")
    assert "\n" not in message
    monkeypatch.undo()
    assert path.read_bytes() == before


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_a_note_that_is_no_file_raises_an_error(tmp_path: Path, make: Callable[[Path], None]) -> None:
    make(tmp_path / "scores.pending.json")
    file = ScoreFile(tmp_path / "score.json", "digest", lambda: None)
    with pytest.raises(
        UserError, match=r"^log_dir: .* \(scores\.pending\.json is not a regular file\); choose another"
    ):
        append_score(tmp_path, {"score": 1}, file)
    assert not (tmp_path / "scores.jsonl").exists()


def test_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(
        UserError, match=r"^log_dir: .*scores\.jsonl' .*choose another folder with --log_dir or HACKATH"
    ):
        append_score(tmp_path / "file" / "log", {"score": 1})


@pytest.mark.parametrize(
    ("chosen", "environment", "folder"),
    [
        ("option", "environment", "option"),
        (None, "environment", "environment"),
        (None, "", "output"),
        (None, None, "output"),
        (None, "~/logs", "home/logs"),
    ],
)
def test_folder_of_the_log(
    monkeypatch: pytest.MonkeyPatch, chosen: str | None, environment: str | None, folder: str
) -> None:
    monkeypatch.setenv("HOME", "home")
    monkeypatch.delenv("HACKATHON_LOG_DIR", raising=False)
    if environment is not None:
        monkeypatch.setenv("HACKATHON_LOG_DIR", environment)
    assert log_folder(chosen, Path("output")) == Path(folder)

"""The log of scores: whole lines, on the disk, whatever comes between."""

import errno
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from headstart.evaluation.alignment.score_log import append_score, log_folder
from headstart.output.errors import UserError
from headstart.tests.material.root import ROOT

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
        {"score": -1e-17, "b": {"c": 2, "a": None}},
        # The order of keys has no effect.
        {"b": {"a": None, "c": 2}, "score": -1e-17},
    ]
    paths = [append_score(tmp_path / "deep" / "folder", record) for record in records]
    assert set(paths) == {tmp_path / "deep" / "folder" / "scores.jsonl"}
    assert read(paths[0]) == records
    assert len({*paths[0].read_bytes().splitlines()}) == 2


def test_a_cut_line_costs_no_other(tmp_path: Path) -> None:
    for index, cut in enumerate([b'{"score": 2, "te', b"\xff\xfe", b"x" * 100_000]):
        path = append_score(tmp_path / str(index), {"score": 1})
        with path.open("ab") as file:
            file.write(cut)
        append_score(path.parent, {"score": 3})
        assert path.read_bytes() == b'{"score": 1}\n{"score": 3}\n'
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "scores.jsonl").write_bytes(b"cut")
    assert append_score(tmp_path / "new", {"score": 3}).read_bytes() == b'{"score": 3}\n'


def test_line_is_on_the_disk_before_the_command_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synchronised = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: synchronised.append(os.fstat(descriptor).st_size))
    path = append_score(tmp_path, {"score": 2})
    append_score(tmp_path, {"score": 3})
    # The file, the folder in which it is new, and the file again.
    assert synchronised[::2] == [path.stat().st_size // 2, path.stat().st_size]
    assert len(synchronised) == 3


def test_processes_do_not_interleave(tmp_path: Path) -> None:
    commands = [[sys.executable, "-c", WRITER, str(tmp_path), str(writer)] for writer in range(4)]
    running = [subprocess.Popen(command, cwd=ROOT) for command in commands]
    assert [process.wait() for process in running] == [0] * 4
    records = read(tmp_path / "scores.jsonl")
    assert sorted((record["writer"], record["i"]) for record in records) == [
        (w, i) for w in range(4) for i in range(20)
    ]
    assert all(len(record["padding"]) == 1 + 997 * record["i"] for record in records)


def test_scores_that_cannot_be_logged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="JSON compliant"):
        append_score(tmp_path, {"score": float("nan")})
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "pipe").mkdir()
    os.mkfifo(tmp_path / "pipe" / "scores.jsonl")
    (tmp_path / "file").touch()

    def fail(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", fail)
    for name, reason in {"pipe": "it is not a regular file", "file/log": "", "full": "No space left on device"}.items():
        with pytest.raises(
            UserError, match=rf"^log_dir: no score can be .*{reason}.*; choose another folder with --log"
        ):
            append_score(tmp_path / name, {"score": 1})


def test_folder_of_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "home")
    for option, environment, folder in (
        ("option", "environment", "option"),
        (None, "environment", "environment"),
        (None, "", "output"),
        (None, "~/logs", "home/logs"),
    ):
        monkeypatch.setenv("HACKATHON_LOG_DIR", environment)
        assert log_folder(option, Path("output")) == Path(folder)

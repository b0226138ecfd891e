"""`headstart portal` as a user starts it: with the embedded default, killed, interrupted, and with wrong settings."""

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from headstart.__main__ import main
from headstart.tests.material.mistakes import error_line

PATIENCE = 120.0


@contextmanager
def started(folder: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Start a portal in a folder of its own, and yield its process and its address once it is ready."""
    environment = dict(os.environ)
    environment.pop("HACKATHON_DATASET_ROOT", None)
    command = [sys.executable, "-m", "headstart", "portal", "--port=0", *options]
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=log, text=True, start_new_session=True
        )
    assert process.stdout is not None
    try:
        address = re.search(r"http://\S+:\d+", process.stdout.readline())
        assert address is not None, (folder / "log").read_text()
        yield process, address[0]
    finally:
        process.kill()
        process.wait()


def workers(process: subprocess.Popen[str]) -> list[int]:
    """Return the ids of the processes that score."""
    processes = subprocess.run(["ps", "-ww", "-eo", "pid,ppid,args"], capture_output=True, text=True, check=True).stdout
    lines = [line.split(maxsplit=2) for line in processes.splitlines()[1:]]
    return [int(pid) for pid, parent, args in lines if int(parent) == process.pid and "portal worker" in args]


@pytest.mark.slow
def test_the_embedded_default(tmp_path: Path) -> None:
    with started(tmp_path) as (process, address), httpx.Client(base_url=address, timeout=30) as client:
        assert process.stdout is not None
        token = process.stdout.readline().split("token ")[1].split(",")[0]
        client.headers["Authorization"] = f"Bearer {token}"

        def score(content: str) -> dict[str, Any]:
            record = client.post("/api/submissions?team=blue", content=content).json()
            end = time.monotonic() + PATIENCE
            while record["state"] != "scored" and time.monotonic() < end:
                time.sleep(0.2)
                record = client.get(f"/api/submissions/{record['id']}").json()
            assert record["state"] == "scored", record
            return dict(record)

        first = score('{"models": ["drawn_objects", "random"]}')
        (worker,) = workers(process)
        os.kill(worker, signal.SIGKILL)
        # The same models in another document: the same score, from a process that was started again.
        assert score('{"models":  ["drawn_objects", "random"]}')["score"] == first["score"]
        (worker,) = workers(process)
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == 0
        with pytest.raises(ProcessLookupError):
            os.kill(worker, 0)
    assert "Traceback" not in (tmp_path / "log").read_text()
    with started(tmp_path) as (process, address):
        assert process.stdout is not None
        assert "teams revoke demo" in process.stdout.readline()
        board = httpx.get(f"{address}/api/leaderboard?team=blue", timeout=30).json()["standings"]
        assert [(line["score"], line["submissions"]) for line in board] == [(first["score"], 2)]
        process.terminate()
        assert process.wait(PATIENCE) == 0


@pytest.mark.slow
def test_a_server_that_cannot_start_says_why_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)

    def refuse(*options: str) -> str:
        return error_line(capsys, lambda: main(["portal", *options]))

    with socket.create_server(("127.0.0.1", 0)) as occupied:
        port = occupied.getsockname()[1]
        assert refuse(f"--port={port}").startswith(f"error: port: cannot listen at 127.0.0.1 {port}")
    (tmp_path / "stimuli.jsonl").write_text('{"dataset_name": "birds", "image_identifier": "0.png"}')
    more = ("--port=0", "--demonstration=false", f"--catalog={tmp_path / 'stimuli.jsonl'}")
    assert refuse("--datasets=none", *more).startswith("error: datasets: 'none' is not a folder")
    # Files of the process that scores are checked, too: without it, submissions would wait for ever.
    for option, what in (("--registry", "model registry"), ("--catalog", "stimuli catalog")):
        message = refuse(f"--datasets={tmp_path}", *more, f"{option}=none")
        assert f"{what} none: 1 problem: there is no such file" in message

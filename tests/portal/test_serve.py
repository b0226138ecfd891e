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

from headstart.portal.serve import CONNECTIONS, _allow_connections, _listen
from headstart.portal.settings import Settings

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
    processes = subprocess.run(["ps", "-eo", "pid,ppid,args"], capture_output=True, text=True, check=True).stdout
    lines = [line.split(maxsplit=2) for line in processes.splitlines()[1:]]
    return [int(pid) for pid, parent, args in lines if int(parent) == process.pid and "portal worker" in args]


def wait_until_scored(address: str, headers: dict[str, str], number: int) -> dict[str, Any]:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        document: dict[str, Any] = httpx.get(f"{address}/api/submissions/{number}", headers=headers, timeout=30).json()
        if document["state"] == "scored":
            return document
        time.sleep(0.2)
    raise AssertionError(document)


@pytest.mark.slow
def test_the_embedded_default(tmp_path: Path) -> None:
    began = time.monotonic()
    with started(tmp_path) as (process, address):
        # It starts within a minute where nothing else runs.
        assert time.monotonic() - began < PATIENCE
        assert process.stdout is not None
        token = process.stdout.readline().split("token ")[1].split(",")[0]
        headers = {"Authorization": f"Bearer {token}"}
        url = f"{address}/api/submissions?team=blue"
        content = '{"models": ["drawn_objects", "random"]}'
        assert httpx.post(url, content=content, headers=headers, timeout=30).status_code == 201
        first = wait_until_scored(address, headers, 1)
        (worker,) = workers(process)
        os.kill(worker, signal.SIGKILL)
        assert httpx.post(f"{url}&again=true", content=content, headers=headers, timeout=30).status_code == 201
        assert wait_until_scored(address, headers, 2)["score"] == first["score"]
        (worker,) = workers(process)
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == 0
        with pytest.raises(ProcessLookupError):
            os.kill(worker, 0)
    assert "Traceback" not in (tmp_path / "log").read_text()
    with started(tmp_path) as (process, address):
        assert process.stdout is not None
        assert "teams renew demo" in process.stdout.readline()
        assert httpx.get(f"{address}/api/submissions/2", headers=headers, timeout=30).json()["score"] == first["score"]
        process.terminate()
        assert process.wait(PATIENCE) == 0


def run(folder: Path, *options: str, code: str = "pass") -> str:
    """Return the error line of `headstart portal`."""
    command = [sys.executable, "-c", f"import sys; {code}; from headstart.__main__ import main; main()", "portal"]
    done = subprocess.run([*command, *options], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode in (1, 2)
    assert done.stderr.count("\n") == 1, done.stderr
    return done.stderr


def test_answers_do_not_wait_for_acknowledgements() -> None:
    with _listen(Settings(port=0)) as listening, socket.create_connection(listening.getsockname()):
        connection, _ = listening.accept()
        with connection:
            assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_connections_that_say_nothing_keep_nobody_out() -> None:
    resource = pytest.importorskip("resource")
    usual, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(usual, 1024), most))
    try:
        _allow_connections()
        allowed = resource.getrlimit(resource.RLIMIT_NOFILE)
        assert allowed == (CONNECTIONS if most == resource.RLIM_INFINITY else min(most, CONNECTIONS), most)
        _allow_connections()
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == allowed
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (usual, most))


@pytest.mark.slow
def test_a_server_that_cannot_start_says_why_in_one_line(tmp_path: Path) -> None:
    without = "sys.modules['fastapi'] = None"
    assert "pip install 'headstart[portal]'" in run(tmp_path, code=without)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert run(tmp_path, f"--port={port}").startswith(f"error: port: cannot listen at 127.0.0.1 {port}")
        assert "attempting" not in run(tmp_path, f"--port={port}")
    assert [path.name for path in tmp_path.iterdir()] in ([], ["runs"])
    without_datasets = run(tmp_path, "--port=0", "--datasets=none", "--demonstration=false", f"--catalog={__file__}")
    assert without_datasets.startswith("error: datasets: 'none' is not a folder")
    # Files of the process that scores are checked, too: without it, submissions would wait for ever.
    (tmp_path / "stimuli.jsonl").write_text('{"dataset_name": "birds", "image_identifier": "0.png"}')
    more = ("--port=0", "--demonstration=false", f"--datasets={tmp_path}", f"--catalog={tmp_path / 'stimuli.jsonl'}")
    for option, what in (("--held_out_registry", "model registry"), ("--held_out_catalog", "stimuli catalog")):
        assert f"{what} none: 1 problem: there is no such file" in run(tmp_path, f"{option}=none", *more)

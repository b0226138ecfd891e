"""Whatever is killed, all rows are there in the end, and at most the pieces in work are computed twice."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headstart.datamodules import row_policy, row_request
from headstart.datamodules.row_policy import Resources
from headstart.datamodules.row_request import TABLES, RowRequest
from headstart.datamodules.rows import find
from headstart.store.row_store import RowStore
from headstart.tests.material.slow_pictures import COUNT, PIECE, slow_request

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not Path("/proc").is_dir(), reason="finds processes in /proc")]

WORKERS = 2


@pytest.fixture
def request_rows(monkeypatch: pytest.MonkeyPatch) -> RowRequest:
    monkeypatch.setattr(row_request, "piece_size", row_policy.piece_size)
    return slow_request()


def start(cache: Path, *engine: str) -> "subprocess.Popen[str]":
    code = "import sys; from headstart.tests.material.slow_pictures import main; main(*sys.argv[1:])"
    command = [sys.executable, "-c", code, str(cache), *engine]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def workers_of(command: int) -> list[int]:
    """Return the worker processes of a command."""
    children = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            status, line = (folder / "stat").read_text(), (folder / "cmdline").read_bytes()
        except OSError:
            continue
        if int(status.rpartition(")")[2].split()[1]) == command and b"spawn_main" in line:
            children.append(int(folder.name))
    return sorted(children)


def stored_names(request: RowRequest, cache: Path) -> list[bytes]:
    """Return the names of all rows in all segments."""
    table = RowStore(cache / TABLES).table(request.key)
    return [name for segment in table.segments(of_any_origin=True) for name in segment.names.tolist()]


def require_all(request: RowRequest, cache: Path, whole: Path, kills: int) -> None:
    """Check that all rows are there and right, and that at most the pieces in work were computed twice."""
    both = [find(request, Resources(each, "features", 0, only_stored=each == cache)).rows for each in (cache, whole)]
    assert np.array_equal(np.asarray(both[0]), np.asarray(both[1]))
    twice = len(stored_names(request, cache)) - COUNT
    assert 0 <= twice <= kills * WORKERS * PIECE
    # Chunks are kept, so that it is far less: a piece of this size is one chunk.
    assert twice < COUNT / 4


def test_commands_and_workers_are_killed(request_rows: RowRequest, tmp_path: Path) -> None:
    cache, generator = tmp_path / "cache", np.random.default_rng(0)
    kills, output = {"command": 0, "worker": 0}, ""
    while len(set(stored_names(request_rows, cache))) < COUNT:
        command = start(cache, "workers", str(WORKERS))
        before, victim = len(stored_names(request_rows, cache)), "command" if sum(kills.values()) % 2 else "worker"
        while command.poll() is None and len(stored_names(request_rows, cache)) < before + PIECE:
            time.sleep(0.01)
        time.sleep(generator.uniform(0, 0.3))
        workers = workers_of(command.pid)
        if victim == "command" and command.poll() is None:
            command.kill()
            kills[victim] += 1
        elif workers and command.poll() is None:
            os.kill(workers[int(generator.integers(len(workers)))], signal.SIGKILL)
            kills[victim] += 1
            # A worker is killed in a command that goes on, until this is ended as well.
            while command.poll() is None and len(stored_names(request_rows, cache)) < before + 4 * PIECE:
                time.sleep(0.01)
            command.kill()
        output += command.communicate(timeout=120)[0]
    assert min(kills.values()) > 2
    assert "Traceback" not in output
    require_all(request_rows, cache, tmp_path / "whole", sum(kills.values()))


def test_machines_of_a_cluster_are_killed(request_rows: RowRequest, tmp_path: Path) -> None:
    pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    cluster: Any = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    try:
        nodes, kills = [cluster.add_node(num_cpus=1) for _ in range(WORKERS)], 0
        cache = tmp_path / "cache"
        command = start(cache, "ray", cluster.address)
        while command.poll() is None and kills < 4:
            before = len(stored_names(request_rows, cache))
            while command.poll() is None and len(stored_names(request_rows, cache)) < before + PIECE:
                time.sleep(0.05)
            if command.poll() is None:
                cluster.remove_node(nodes.pop(0), allow_graceful=False)
                nodes.append(cluster.add_node(num_cpus=1))
                kills += 1

        output = command.communicate(timeout=300)[0]
        assert command.returncode == 0, output
        assert kills == 4
        require_all(request_rows, cache, tmp_path / "whole", kills)
    finally:
        cluster.shutdown()

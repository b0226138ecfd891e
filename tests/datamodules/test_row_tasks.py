"""Parts as tasks: workers and machines compute the rows of a plain loop, each part once, whatever is killed."""

import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from headstart.datamodules import row_tasks
from headstart.datamodules.feature_stream import FeatureStream
from headstart.datamodules.photos.photo_source import Photos
from headstart.datamodules.row_request import ComputeSettings, RowRequest
from headstart.datamodules.row_tasks import _cut_runs, compute_run
from headstart.datamodules.rows import find
from headstart.datamodules.sample_stream import SampleStream
from headstart.engines.options import EngineOptions
from headstart.output.errors import UserError
from headstart.store.feature_table import pack
from headstart.store.part_file import Part
from headstart.tests.material.slow_photos import COUNT, SlowPhotos
from headstart.tests.material.stored_rows import NumberedPhotos, features_of, find_in, parts_in


def start(cache: Path, *engine: str) -> "subprocess.Popen[str]":
    code = "import sys; from headstart.tests.material.slow_photos import main; main(*sys.argv[1:])"
    command = [sys.executable, "-c", code, str(cache), *engine]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )


def require_right(cache: Path) -> None:
    """Check that all rows are there once, and those that this process computes."""
    request = features_of(SlowPhotos(COUNT))
    stored = find(request, ComputeSettings(cache, "features", 0))
    assert stored.computed == 0
    some = np.arange(0, COUNT, 40)
    part = RowRequest(NumberedPhotos(COUNT).subset(some), request.preprocessing, request.settings, request.network)
    assert np.array_equal(stored.rows[some], find_in(cache.parent / "again", part).rows)
    assert sum(len(Part(path).digests) for path in parts_in(cache)) == COUNT


def test_runs_hold_all_missing_rows(tmp_path: Path) -> None:
    request = features_of(NumberedPhotos(1000))
    for engines in (EngineOptions(workers=2), EngineOptions(ray="auto")):
        runs = _cut_runs(request, ComputeSettings(tmp_path, "", 0, engines=engines))
        assert (len(runs) >= 8, {run.cache for run in runs}) == (True, {None if engines.ray else tmp_path})
        parts = [part for run in runs for part in run.parts]
        assert np.array_equal(np.concatenate(parts), np.arange(1000))
        assert max(map(len, parts)) == 64


def test_a_task_stores_rows_or_returns_them(photos: Photos, tmp_path: Path) -> None:
    request, alone = features_of(photos), find_in(tmp_path / "alone", features_of(photos))
    digests = pack(photos.digests())
    (run,) = _cut_runs(request, ComputeSettings(tmp_path / "stored", "", 0, engines=EngineOptions(workers=1)))
    received = pickle.loads(pickle.dumps(run))
    assert compute_run(received) == 24
    assert compute_run(received) == 0
    assert np.array_equal(find_in(tmp_path / "stored", request).rows, alone.rows)
    ((names, part),) = compute_run(replace(received, cache=None))  # type: ignore[misc]
    assert names == digests.tobytes()
    assert np.array_equal(part.rows, alone.rows)
    with pytest.raises(UserError, match=r"^ray: this machine has other versions of torch"):
        compute_run(replace(received, cache=None, key={**received.key, "torch": "0.1"}))


def test_a_stream_leaves_its_missing_rows_to_workers(
    set_up: Callable[..., SampleStream], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    computed: list[int] = []

    def compute(requests: Mapping[str, RowRequest], resources: ComputeSettings) -> dict[str, int]:
        [(name, request)] = requests.items()
        computed.extend(compute_run(run) for run in _cut_runs(request, resources))  # type: ignore[misc]
        return {name: computed[-1]}

    monkeypatch.setattr(row_tasks, "compute_elsewhere", compute)
    alone, workers = (set_up(FeatureStream, cache_dir=str(tmp_path / f"{count}"), workers=count) for count in (None, 2))
    assert computed == [24, 12]
    assert torch.equal(workers.train_inputs, alone.train_inputs)
    assert torch.equal(workers.validation_inputs, alone.validation_inputs)


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc").is_dir(), reason="finds processes in /proc")
def test_twenty_kills(tmp_path: Path) -> None:
    cache, random = tmp_path / "cache", np.random.default_rng(0)
    for kill in range(20):
        command = start(cache, "workers", "2")
        time.sleep(float(random.uniform(1, 8)))
        children = Path(f"/proc/{command.pid}/task/{command.pid}/children")
        workers = [int(each) for each in children.read_text().split()] if command.poll() is None else []
        if kill % 2 and workers:
            # The command goes on without one of its workers.
            os.kill(workers[int(random.integers(len(workers)))], signal.SIGKILL)
            time.sleep(1)
        if command.poll() is None:
            os.killpg(command.pid, signal.SIGKILL)
        assert "Traceback" not in command.communicate(timeout=60)[0]
        for path in parts_in(cache):
            Part(path).verify()
    command = start(cache, "workers", "2")
    output = command.communicate(timeout=120)[0]
    assert command.returncode == 0, output
    require_right(cache)
    assert {path.suffix for path in cache.glob("features/*/*")} == {".json", ".safetensors"}


@pytest.mark.slow
def test_machines_of_a_cluster_are_killed(tmp_path: Path) -> None:
    pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    cluster: Any = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    try:
        nodes, cache = [cluster.add_node(num_cpus=1) for _ in range(2)], tmp_path / "cache"
        command = start(cache, "ray", cluster.address)
        while command.poll() is None and len(parts_in(cache)) < 2:
            time.sleep(0.05)
        cluster.remove_node(nodes.pop(0), allow_graceful=False)
        cluster.add_node(num_cpus=1)
        output = command.communicate(timeout=300)[0]
        assert command.returncode == 0, output
        require_right(cache)
    finally:
        cluster.shutdown()

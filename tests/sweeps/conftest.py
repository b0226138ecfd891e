"""Fixtures for sweeps."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from headstart.tests.material.in_process import InProcess
from headstart.tests.material.sweeps import write


@pytest.fixture
def file(tmp_path: Path, small_comparison: Callable[[Path], list[str]]) -> Path:
    """Write a sweep of two runs of a second each."""
    return write(tmp_path, [*small_comparison(tmp_path), "--trainer.logger=false"])


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    try:
        yield cluster
    finally:
        cluster.shutdown()


@pytest.fixture(autouse=True)
def tasks_in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run tasks without workers, which would import torch again, and would not have what a test replaces."""
    monkeypatch.setattr("headstart.engines.options.Workers", lambda count, gpus: InProcess())

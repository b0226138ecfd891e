"""Fixtures for sweeps."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

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
    for _ in range(2):
        cluster.add_node(num_cpus=1)
    yield cluster
    cluster.shutdown()

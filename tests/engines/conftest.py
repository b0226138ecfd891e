"""The engines."""

from collections.abc import Iterator
from typing import Any

import pytest

from headstart.engines.ray_cluster import RayCluster
from headstart.engines.task import TaskResources
from headstart.engines.workers import Workers
from headstart.tests.material.listeners import Open


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    try:
        for _ in range(2):
            cluster.add_node(num_cpus=1)
        yield cluster
    finally:
        cluster.shutdown()


@pytest.fixture(
    params=["one worker", "workers", pytest.param("ray", marks=pytest.mark.slow)],
)
def open_engine(request: pytest.FixtureRequest) -> Open:
    if request.param == "ray":
        address = request.getfixturevalue("cluster").address
        return lambda: RayCluster(address, TaskResources(), {})
    return lambda: Workers(1 if request.param == "one worker" else 2, [])

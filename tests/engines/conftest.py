"""The engines."""

from collections.abc import Callable, Iterator

import pytest

from headstart.engines.options import EngineOptions

Choose = Callable[[], EngineOptions]


@pytest.fixture(scope="session")
def ray_address() -> Iterator[str]:
    """Start a cluster of two processors."""
    pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 2})
    yield cluster.address
    cluster.shutdown()


@pytest.fixture(params=["here", "workers", pytest.param("ray", marks=pytest.mark.slow)])
def engine(request: pytest.FixtureRequest) -> EngineOptions:
    if request.param == "ray":
        return EngineOptions(ray=request.getfixturevalue("ray_address"))
    return EngineOptions(workers=2 if request.param == "workers" else None)

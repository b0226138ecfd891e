"""Which engine options ask for."""

from __future__ import annotations

from typing import Any

from headstart.engines.ray_cluster import Needs, RayCluster
from headstart.engines.serial import Serial
from headstart.engines.task import Engine
from headstart.engines.workers import Workers
from headstart.output.errors import UserError
from headstart.output.printable import say
from headstart.output.processors import count_processors, list_gpus


def choose_engine(
    workers: int | None, ray: str | None, needs: Needs, runtime_environment: dict[str, Any] | None = None
) -> Engine:
    """Open an engine.

    Args:
        workers: Number of processes beside.
        ray: Address of a Ray cluster.
        needs: What each task needs.
        runtime_environment: Ray's, for the tasks.

    Raises:
        UserError: Both are given, or there is no such cluster.
    """
    require_one_engine(workers, ray)
    if ray is not None:
        return RayCluster(ray, needs, runtime_environment or {})
    there, used = count_processors(), needs.cpus * (workers or 1)
    if used < there:
        say(f"{used} of {there} processors are used; --workers runs more side by side")
    return Serial() if workers is None else Workers(workers, list_gpus())


def require_one_engine(workers: int | None, ray: str | None) -> None:
    """Refuse both; a UserError says so."""
    if workers is not None and ray is not None:
        raise UserError("ray: it runs in workers of this machine or on a cluster; leave out --workers or --ray")

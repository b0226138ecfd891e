"""The options that choose where independent tasks run."""

from typing import Any

from jsonargparse.typing import PositiveInt

from headstart.engines.ray_cluster import RayCluster
from headstart.engines.task import Engine, TaskResources
from headstart.engines.workers import Workers
from headstart.output.errors import UserError
from headstart.output.printable import say
from headstart.output.processors import count_processors, list_gpus


class EngineOptions:
    """Where independent tasks run: one after the other by default.

    As a base class, it adds its options to those of the next base class.

    Args:
        workers: Number of worker processes. By default tasks run one after the other in this process.
        ray: Address of a Ray cluster that runs the tasks; `auto` is the cluster of this machine.
        **options: Options of the next base class.

    Raises:
        UserError: Two engines are chosen.
    """

    def __init__(self, workers: PositiveInt | None = None, ray: str | None = None, **options: Any) -> None:
        super().__init__(**options)
        if workers is not None and ray is not None:
            raise UserError("ray: tasks run in workers of this machine or on a cluster; leave out --workers or --ray")
        self.workers, self.ray = workers, ray

    @property
    def is_serial(self) -> bool:
        """Whether tasks run one after the other."""
        return self.workers is None and self.ray is None

    @property
    def cpus_per_task(self) -> int:
        """Number of processors for each task, if the workers share those of this machine evenly."""
        return max(1, count_processors() // self.workers) if self.workers else 1

    def open_engine(self, resources: TaskResources, runtime_environment: dict[str, Any] | None = None) -> Engine:
        """Open the engine.

        Args:
            resources: What each task needs.
            runtime_environment: Ray's runtime environment of the tasks.

        Raises:
            UserError: There is no such cluster.
        """
        if self.ray is not None:
            return RayCluster(self.ray, resources, runtime_environment or {})

        available, used = count_processors(), resources.cpus * (self.workers or 1)
        if used < available:
            say(f"{used} of {available} processors are used; --workers runs more tasks at once")
        # A single worker sees all GPUs.
        return Workers(1, []) if self.workers is None else Workers(self.workers, list_gpus())

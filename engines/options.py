"""The options that choose where independent tasks run."""

from dataclasses import dataclass
from typing import Any

from jsonargparse.typing import PositiveInt

from headstart.output.errors import UserError


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
        """Return whether tasks run one after the other, in this process."""
        return self.workers is None and self.ray is None


@dataclass(frozen=True)
class Needs:
    """What each task needs.

    Attributes:
        cpus: Processors; by default, workers share those of this machine evenly, and a task of a cluster gets one.
        gpus: GPUs of a task of a cluster; a part of one where several tasks share it.
    """

    cpus: int | None = None
    gpus: float = 0.0

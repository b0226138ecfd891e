"""Run tasks on a Ray cluster, with Ray Core only."""

import os
import signal
import socket
import sys
from collections.abc import Mapping, Sequence
from contextlib import chdir
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from headstart.engines.options import Needs
from headstart.engines.perform import Outcome, Task, perform
from headstart.output.errors import UserError, explain_write_errors, reason_of
from headstart.output.printable import say
from headstart.output.processors import limit_processors

# Limit of submitted tasks. It is more than most clusters have room for, so that their autoscalers see the demand.
MAX_SUBMITTED = 250
SECONDS_TO_WAIT = 1.0
SECONDS_TO_CONNECT = 10.0


class RayCluster:
    """Runs as many tasks at once as a cluster has room for. Its machines need not share a disk with the command.

    Args:
        address: The cluster's address, or `auto` for the one that runs on this machine.
        needs: What each task needs.
        shared: The second argument of the tasks' functions, unless it is None.

    Raises:
        UserError: Ray is not installed, or there is no cluster at the address.
    """

    def __init__(self, address: str, needs: Needs, shared: Any = None) -> None:  # noqa: ANN401 - whatever tasks share
        try:
            import ray
        except ImportError as error:
            raise UserError("ray: Ray is not installed; pip install 'headstart[ray]'") from error
        self.ray = ray
        self._connect(address)
        self.cpus, self.gpus, self.shared = needs.cpus or 1, needs.gpus, ray.put(shared)
        _warn_of_no_room(ray.nodes(), {"CPU": self.cpus, "GPU": self.gpus})
        # The command restarts a task that died, and reports it, so Ray does not retry.
        self.remote = ray.remote(num_cpus=self.cpus, num_gpus=self.gpus, max_retries=0)(_perform)
        self.running: dict[Any, tuple[Task, Path | None]] = {}

    def _connect(self, address: str) -> None:
        _require_reachable(address)
        # `ray.init` replaces the command's handler of SIGTERM.
        on_sigterm = signal.getsignal(signal.SIGTERM)
        try:
            self.ray.init(address, log_to_driver=False, logging_level="error")
        except (ConnectionError, ValueError, RuntimeError, self.ray.exceptions.AuthenticationError) as error:
            raise UserError(
                f"ray: cannot join a cluster at {address!r} ({reason_of(error)}); ray start --head starts one here; a "
                "running one requires its version of Ray, and its token, if it has one, as RAY_AUTH_TOKEN"
            ) from error
        finally:
            signal.signal(signal.SIGTERM, on_sigterm)

    def has_room(self) -> bool:
        """Return whether another task can be submitted."""
        return len(self.running) < MAX_SUBMITTED

    def start(self, task: Task, log: Path | None) -> None:
        """Submit a task, which waits until the cluster has room for it."""
        reference = self.remote.remote(task, log is not None, self.shared, str(Path.cwd()), self.cpus, self.gpus)
        self.running[reference] = task, log

    def wait(self) -> list[Outcome]:
        """Wait until a task ends, for at most a second; return the outcomes of tasks that ended."""
        try:
            ended, _ = self.ray.wait(list(self.running), timeout=SECONDS_TO_WAIT)
        except self.ray.exceptions.RayError as error:
            raise UserError(f"ray: the cluster was lost ({reason_of(error)}); run the command again") from error
        return [self._outcome(reference, *self.running.pop(reference)) for reference in ended]

    def _outcome(self, reference: Any, task: Task, log: Path | None) -> Outcome:  # noqa: ANN401 - Ray's own class
        try:
            outcome: Outcome
            outcome, printed = self.ray.get(reference)
        except self.ray.exceptions.RayTaskError as error:
            return Outcome(task, error=f"{type(error).__name__}: {str(error).splitlines()[-1]}")
        except self.ray.exceptions.RayError as error:
            lost = f"its process or machine was lost ({type(error).__name__}: {reason_of(error)})"
            return Outcome(task, error=lost, died=True)

        if log is not None:
            with explain_write_errors(f"logs: {str(log)!r}", "make room there"):
                log.write_bytes(printed)
        return replace(outcome, task=task)

    def close(self) -> None:
        """Disconnect from the cluster, which stops all tasks of this command."""
        self.ray.shutdown()


def _require_reachable(address: str) -> None:
    """Raise a UserError if nothing listens at an address; Ray would wait for minutes."""
    if address == "auto":
        return
    host, _, port = address.rpartition(":")
    try:
        if "/" in host or not port.isdecimal():
            raise ValueError("it does not have the form HOST:PORT")
        socket.create_connection((host, int(port)), SECONDS_TO_CONNECT).close()
    except (OSError, ValueError, OverflowError) as error:
        raise UserError(
            f"ray: no cluster answers at {address!r} ({reason_of(error)}); give the address that `ray start` printed, "
            "on a machine of the cluster"
        ) from error


def _warn_of_no_room(nodes: Sequence[Mapping[str, Any]], needs: Mapping[str, float]) -> None:
    """Warn if no machine has the resources of a task; Ray waits for one without a message."""
    machines = [node["Resources"] for node in nodes if node["Alive"]]
    if not any(all(machine.get(kind, 0) >= needed for kind, needed in needs.items()) for machine in machines):
        listed = ", ".join(f"{needed:g} {kind}" for kind, needed in needs.items() if needed)
        say(f"warning: no machine of the cluster has {listed}; tasks wait until one joins it", sys.stderr)


# `shared` may be of any type.
def _perform(task: Task, is_logged: bool, shared: Any, folder: str, cpus: int, gpus: float) -> tuple[Outcome, bytes]:  # noqa: ANN401
    """Perform a task on a machine of the cluster; return its outcome and what it printed."""
    if not gpus:
        # Ray would leave all GPUs visible.
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
    if not Path(folder).is_dir():
        error = f"ray: the working folder {folder!r} is not on {socket.gethostname()}; put the same files there"
        return Outcome(task, error=error, is_mistake=True), b""
    # Paths are relative to the command's working folder.
    with TemporaryDirectory(prefix="headstart-") as scratch, chdir(folder), limit_processors(cpus):
        log = Path(scratch) / "log"
        log.touch()
        return perform(task, log if is_logged else None, shared), log.read_bytes()

"""Tasks on a Ray cluster, by Ray Core alone."""

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
from headstart.output.processors import processors

# More submitted tasks than most clusters have room for show its autoscaler what is needed.
SUBMITTED = 250
SECONDS_TO_WAIT = 1.0
SECONDS_TO_CONNECT = 10.0


class RayCluster:
    """Runs as many tasks at once as a cluster has room for. Its machines may share no disk with the command.

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
        self._connect(address, needs.environment)
        cpus, memory = needs.cpus or 1, None if needs.memory is None else int(needs.memory * 1e9)
        _warn_of_no_room(ray.nodes(), {"CPU": cpus, "GPU": needs.gpus, "memory": memory or 0})

        # Files that Ray brings lie where a task starts.
        self.folder = "." if "working_dir" in needs.environment else str(Path.cwd())
        self.cpus, self.gpus, self.shared = cpus, needs.gpus, ray.put(shared)
        # A task that died is started again by the command, which reports it.
        self.remote = ray.remote(num_cpus=cpus, num_gpus=needs.gpus, memory=memory, max_retries=0)(_perform)
        self.running: dict[Any, tuple[Task, Path | None]] = {}

    def _connect(self, address: str, environment: dict[str, Any]) -> None:
        try:
            self.ray.runtime_env.RuntimeEnv(**environment)
        except (TypeError, ValueError) as error:
            raise UserError(
                f"runtime_env: {reason_of(error)}; see Ray's documentation of runtime environments"
            ) from error

        _require_reachable(address)
        # Ray replaces the command's handler by its own.
        on_sigterm = signal.getsignal(signal.SIGTERM)
        try:
            self.ray.init(address, log_to_driver=False, logging_level="error", runtime_env=environment)
        except (ConnectionError, ValueError, RuntimeError, self.ray.exceptions.AuthenticationError) as error:
            raise UserError(
                f"ray: no cluster takes this process at {address!r} ({reason_of(error)}); ray start --head starts one "
                "here, and a running one wants its version of Ray, and its token as RAY_AUTH_TOKEN if it has one"
            ) from error
        finally:
            signal.signal(signal.SIGTERM, on_sigterm)

    def has_room(self) -> bool:
        """Return whether another task can be submitted."""
        return len(self.running) < SUBMITTED

    def start(self, task: Task, log: Path | None) -> None:
        """Submit a task, which waits until the cluster has room for it."""
        reference = self.remote.remote(task, log is not None, self.shared, self.folder, self.cpus, self.gpus)
        self.running[reference] = task, log

    def wait(self) -> list[Outcome]:
        """Wait until a task ends, or for a second."""
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
        """Leave the cluster, which ends everything that still runs for this command."""
        self.ray.shutdown()


def _require_reachable(address: str) -> None:
    """Raise a UserError at once where Ray would wait for minutes."""
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
    """Warn if no machine has what a task needs, because Ray waits for one in silence."""
    machines = [node["Resources"] for node in nodes if node["Alive"]]
    if not any(all(machine.get(kind, 0) >= needed for kind, needed in needs.items()) for machine in machines):
        listed = ", ".join(f"{needed:g} {kind}" for kind, needed in needs.items() if needed)
        say(f"warning: no machine of the cluster has {listed}; tasks wait until one joins it", sys.stderr)


# `shared` is whatever tasks share.
def _perform(task: Task, is_logged: bool, shared: Any, folder: str, cpus: int, gpus: float) -> tuple[Outcome, bytes]:  # noqa: ANN401
    """Perform a task on a machine of the cluster; return how it ended, and what it printed."""
    if not gpus:
        # Ray would show all of them.
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
    if not Path(folder).is_dir():
        error = f"ray: the working folder {folder!r} is not on {socket.gethostname()}; put the same files there"
        return Outcome(task, error=error, is_mistake=True), b""
    # Paths are relative to the command's working folder.
    with TemporaryDirectory(prefix="headstart-") as scratch, chdir(folder), processors(cpus):
        log = Path(scratch) / "log"
        log.touch()
        return perform(task, log if is_logged else None, shared), log.read_bytes()

"""Tasks on a Ray cluster, by Ray Core alone."""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headstart.engines.deferred_signals import deferred_signals
from headstart.engines.task import Outcome, Started, Task, perform
from headstart.output.errors import UserError, reason_of
from headstart.output.import_paths import ROOT
from headstart.output.printable import say

# Tasks that Ray knows of: more than any cluster has room for shows its autoscaler what is needed.
SUBMITTED = 1000
SECONDS_TO_WAIT = 1.0
SECONDS_TO_STOP = 15.0
SECONDS_TO_ANSWER = 10.0


@dataclass(frozen=True)
class Needs:
    """What a task needs of its machine, by which Ray finds it one.

    Attributes:
        cpus: Processors.
        gpus: GPUs; a part of one where several tasks are to share it.
        memory: Gigabytes.
    """

    cpus: int = 1
    gpus: float = 0.0
    memory: float | None = None


class RayCluster:
    """Does as many tasks at once as a cluster has room for.

    Args:
        address: The cluster's address, or `auto` for that which runs on this machine.
        needs: What each task needs.
        runtime_environment: Ray's runtime environment for the tasks: files, packages, environment variables.

    Raises:
        UserError: Ray is not installed, or there is no cluster at the address.
    """

    def __init__(self, address: str, needs: Needs, runtime_environment: dict[str, Any]) -> None:
        try:
            import ray
        except ImportError as error:
            raise UserError("ray: Ray is not installed; pip install 'headstart[ray]'") from error
        self.ray = ray
        try:
            ray.runtime_env.RuntimeEnv(**runtime_environment)
        except (TypeError, ValueError) as error:
            raise UserError(
                f"runtime_env: {reason_of(error)}; see Ray's documentation of runtime environments"
            ) from error
        _require_reachable(address)
        # Ray puts a handler of its own in place of the command's.
        on_sigterm = signal.getsignal(signal.SIGTERM)
        try:
            ray.init(address, log_to_driver=False, logging_level="error", runtime_env=_with_code(runtime_environment))
        except (ConnectionError, ValueError, RuntimeError) as error:
            raise UserError(
                f"ray: no cluster answers at {address!r} ({reason_of(error)}); ray start --head begins one here"
            ) from error
        finally:
            signal.signal(signal.SIGTERM, on_sigterm)
        memory = None if needs.memory is None else int(needs.memory * 1e9)
        _warn_of_no_room(ray.nodes(), {"CPU": needs.cpus, "GPU": needs.gpus, "memory": memory or 0})
        here = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(
            ray.get_runtime_context().get_node_id(), soft=False
        )
        self.mailbox = ray.remote(_Mailbox).options(num_cpus=0, scheduling_strategy=here).remote()
        # Retries are counted by the command, for those who look at its table.
        self.remote = ray.remote(_perform).options(
            num_cpus=needs.cpus, num_gpus=needs.gpus, memory=memory, max_retries=0
        )
        self.running: dict[Any, Task] = {}
        self.places: dict[str, str] = {}
        self._stopping: float | None = None
        self._told: set[str] = set()

    def room(self) -> int:
        """Tell how many more tasks can be submitted."""
        return SUBMITTED - len(self.running)

    def start(self, task: Task) -> None:
        """Submit a task."""
        self.running[self.remote.remote(task, self.mailbox)] = task

    def wait(self, answer: Callable[[Task, Any], Any]) -> list[tuple[Task, Outcome]]:
        """Answer what tasks ask, for a second or until one ends; see `Engine`."""
        try:
            with deferred_signals():
                return self._wait(answer)
        except self.ray.exceptions.RayError as error:
            raise UserError(
                f"ray: the cluster was lost ({reason_of(error)}); what the ledger has is kept, the same command goes on"
            ) from error

    def _wait(self, answer: Callable[[Task, Any], Any]) -> list[tuple[Task, Outcome]]:
        if self._stopping is not None and time.monotonic() > self._stopping:
            for reference in self.running:
                self.ray.cancel(reference, force=True)
        tasks = {task.name: task for task in self.running.values()}
        # What tasks have said before they ended is heard before their end.
        ended, _ = self.ray.wait(list(self.running), num_returns=len(self.running), timeout=0)
        for number, name, message in self.ray.get(self.mailbox.take.remote(0.0 if ended else SECONDS_TO_WAIT)):
            # One that was given up as lost may not know it yet.
            if name in tasks:
                self._answer(answer, tasks[name], number, message)
            else:
                self.mailbox.reply.remote(number, (None, KeyboardInterrupt()))
        return [(self.running[each], self._outcome(each, self.running.pop(each))) for each in ended]

    def _answer(self, answer: Callable[[Task, Any], Any], task: Task, number: int, message: Any) -> None:  # noqa: ANN401 - whatever a task asks
        if isinstance(message, Started):
            self.places[task.name] = message.where
        said: tuple[Any, BaseException | None]
        try:
            said = answer(task, message), None
        except Exception as error:
            said = None, error
        if self._stopping is not None and task.name not in self._told:
            # A task that Ray cancels could not ask any more, and not write what it has.
            said = None, KeyboardInterrupt()
            self._told.add(task.name)
        self.mailbox.reply.remote(number, said)

    def _outcome(self, reference: Any, task: Task) -> Outcome:  # noqa: ANN401 - Ray's own class
        where = self.places.get(task.name, "")
        errors = self.ray.exceptions
        try:
            outcome: Outcome = self.ray.get(reference)
            return outcome
        except (errors.TaskCancelledError, KeyboardInterrupt):
            return Outcome("stopped", where=where)
        except errors.OutOfMemoryError:
            return Outcome("memory", error="Ray ended it because the machine's memory was full", where=where)
        except (
            errors.WorkerCrashedError,
            errors.NodeDiedError,
            errors.ObjectLostError,
            errors.LocalRayletDiedError,
        ) as error:
            kind = "lost" if self._stopping is None else "stopped"
            return Outcome(kind, error=f"its process or machine was lost ({type(error).__name__})", where=where)  # type: ignore[arg-type]
        except errors.RayError as error:
            return Outcome("failed", error=f"{type(error).__name__}: {str(error).splitlines()[-1]}", where=where)

    def stop(self) -> None:
        """Ask the tasks that run to end; they are killed where they take too long."""
        self._stopping = time.monotonic() + SECONDS_TO_STOP
        for reference, task in self.running.items():
            if task.name not in self.places:
                self.ray.cancel(reference)

    def close(self) -> None:
        """Leave the cluster; what still runs for this command ends."""
        self.ray.shutdown()


def _require_reachable(address: str) -> None:
    """Refuse at once what Ray would wait minutes for."""
    if address == "auto":
        return
    host, _, port = address.rpartition(":")
    try:
        if "/" in host or not port.isdecimal():
            raise ValueError("it has not the form HOST:PORT")
        socket.create_connection((host, int(port)), SECONDS_TO_ANSWER).close()
    except (OSError, ValueError, OverflowError) as error:
        raise UserError(
            f"ray: no cluster answers at {address!r} ({reason_of(error)}); give the address that `ray start` printed, "
            "on a machine of the cluster"
        ) from error


def _warn_of_no_room(nodes: Sequence[Mapping[str, Any]], needs: Mapping[str, float]) -> None:
    """Say that no machine has what a task needs, which Ray waits for in silence."""
    machines = [node["Resources"] for node in nodes if node["Alive"]]
    if not any(all(has.get(kind, 0) >= needed for kind, needed in needs.items()) for has in machines):
        listed = ", ".join(f"{needed:g} {kind}" for kind, needed in needs.items() if needed)
        say(f"warning: no machine of the cluster has {listed}; tasks wait until one joins it", sys.stderr)


def _with_code(environment: dict[str, Any]) -> dict[str, Any]:
    """Let tasks import the suite that this command is of: where it is a checkout, that on this machine's disk.

    Where it is installed like any other package, it is to be so on every machine.
    """
    if not (ROOT / "pyproject.toml").is_file():
        return environment
    variables = environment.get("env_vars") or {}
    paths = [*filter(None, [variables.get("PYTHONPATH")]), str(_link_to_checkout())]
    return {**environment, "env_vars": {**variables, "PYTHONPATH": os.pathsep.join(paths)}}


def _link_to_checkout() -> Path:
    """Give a folder in which the checkout has the name of the package; in the checkout, so that all machines see it."""
    folder = ROOT / ".import"
    link = folder / "headstart"
    try:
        if not link.is_symlink():
            folder.mkdir(exist_ok=True)
            with suppress(FileExistsError):  # another command was faster
                link.symlink_to("..", target_is_directory=True)
    except OSError as error:
        raise UserError(f"ray: {str(folder)!r} cannot be written ({reason_of(error)}); make it writable") from error
    return folder


class _Mailbox:
    """Takes what tasks say to the command, and its answers."""

    def __init__(self) -> None:
        self.said: asyncio.Queue[tuple[int, str, Any]] = asyncio.Queue()
        self.answers: dict[int, asyncio.Future[Any]] = {}
        self.numbers = itertools.count()

    async def ask(self, name: str, message: Any) -> Any:  # noqa: ANN401 - whatever a task asks
        number = next(self.numbers)
        self.answers[number] = asyncio.get_running_loop().create_future()
        await self.said.put((number, name, message))
        return await self.answers[number]

    async def take(self, seconds: float) -> list[tuple[int, str, Any]]:
        try:
            first = await asyncio.wait_for(self.said.get(), seconds) if seconds else self.said.get_nowait()
        except (TimeoutError, asyncio.QueueEmpty):
            return []
        return [first, *(self.said.get_nowait() for _ in range(self.said.qsize()))]

    async def reply(self, number: int, said: Any) -> None:  # noqa: ANN401 - whatever is answered
        self.answers.pop(number).set_result(said)


def _perform(task: Task, mailbox: Any) -> Outcome:  # noqa: ANN401 - Ray's own class
    def ask(message: object) -> Any:  # noqa: ANN401 - whatever is answered
        # A task that waits by `ray.get` would lend its processors to others.
        answer, error = mailbox.ask.remote(task.name, message).future().result()
        if error is not None:
            raise error
        return answer

    try:
        return perform(task, ask)
    except KeyboardInterrupt:
        return Outcome("stopped")

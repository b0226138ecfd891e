"""Tasks on a Ray cluster, by Ray Core alone."""

import asyncio
import itertools
import os
import signal
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from headstart.engines.task import Outcome, Receive, Task, TaskMessage, TaskResources, deferred_signals, perform
from headstart.output.errors import UserError, reason_of
from headstart.output.import_paths import ROOT
from headstart.output.printable import say

# More submitted tasks than any cluster has room for show its autoscaler what is needed.
SUBMITTED = 1000
SECONDS_TO_WAIT = 1.0
SECONDS_TO_STOP = 15.0
SECONDS_TO_CONNECT = 10.0


class RayCluster:
    """Runs as many tasks at once as a cluster has room for.

    Its machines may share no disk with the command, so tasks wait for answers to their messages.

    Args:
        address: The cluster's address, or `auto` for the one that runs on this machine.
        resources: What each task needs.
        runtime_environment: Ray's runtime environment for the tasks: files, packages, environment variables.

    Raises:
        UserError: Ray is not installed, or there is no cluster at the address.
    """

    def __init__(self, address: str, resources: TaskResources, runtime_environment: dict[str, Any]) -> None:
        try:
            import ray
        except ImportError as error:
            raise UserError("ray: Ray is not installed; pip install 'headstart[ray]'") from error
        self.ray = ray
        self._connect(address, runtime_environment)
        memory = None if resources.memory is None else int(resources.memory * 1e9)
        _warn_of_no_room(ray.nodes(), {"CPU": resources.cpus, "GPU": resources.gpus, "memory": memory or 0})

        here = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(
            ray.get_runtime_context().get_node_id(), soft=False
        )
        self.mailbox = ray.remote(_Mailbox).options(num_cpus=0, scheduling_strategy=here).remote()
        # The command counts retries itself, for its table of runs.
        self.remote = ray.remote(_perform).options(
            num_cpus=resources.cpus, num_gpus=resources.gpus, memory=memory, max_retries=0
        )
        self.running: dict[Any, Task] = {}
        self.hosts: dict[str, str] = {}
        self._deadline: float | None = None
        self._interrupted: set[str] = set()

    def _connect(self, address: str, runtime_environment: dict[str, Any]) -> None:
        try:
            self.ray.runtime_env.RuntimeEnv(**runtime_environment)
        except (TypeError, ValueError) as error:
            raise UserError(
                f"runtime_env: {reason_of(error)}; see Ray's documentation of runtime environments"
            ) from error

        _require_reachable(address)
        # Ray replaces the command's handler by its own.
        on_sigterm = signal.getsignal(signal.SIGTERM)
        environment = _with_code(runtime_environment)
        try:
            self.ray.init(address, log_to_driver=False, logging_level="error", runtime_env=environment)
        except (ConnectionError, ValueError, RuntimeError) as error:
            raise UserError(
                f"ray: no cluster answers at {address!r} ({reason_of(error)}); ray start --head begins one here"
            ) from error
        finally:
            signal.signal(signal.SIGTERM, on_sigterm)

    def room(self) -> int:
        """Return how many more tasks can be submitted."""
        return SUBMITTED - len(self.running)

    def start(self, task: Task) -> None:
        """Submit a task."""
        self.running[self.remote.remote(task, self.mailbox)] = task

    def wait(self, receive: Receive) -> list[tuple[Task, Outcome]]:
        """Answer the messages of tasks, for a second or until a task ends; see `Engine.wait`."""
        try:
            with deferred_signals():
                return self._wait(receive)
        except self.ray.exceptions.RayError as error:
            raise UserError(
                f"ray: the cluster was lost ({reason_of(error)}); what the ledger has is kept, the same command goes on"
            ) from error

    def _wait(self, receive: Receive) -> list[tuple[Task, Outcome]]:
        if self._deadline is not None and time.monotonic() > self._deadline:
            for reference in self.running:
                self.ray.cancel(reference, force=True)

        tasks = {task.name: task for task in self.running.values()}
        # Found before messages are taken, so that a task's messages are received before its end.
        ended, _ = self.ray.wait(list(self.running), num_returns=len(self.running), timeout=0)
        for number, name, message in self.ray.get(self.mailbox.take.remote(0.0 if ended else SECONDS_TO_WAIT)):
            # A task that was given up as lost may still run.
            is_known = name in tasks
            answer = self._answer(receive, tasks[name], message) if is_known else (None, KeyboardInterrupt())
            self.mailbox.reply.remote(number, answer)
        return [(self.running[each], self._outcome(each, self.running.pop(each))) for each in ended]

    def _answer(self, receive: Receive, task: Task, message: TaskMessage) -> tuple[Any, BaseException | None]:
        if message.kind == "started":
            self.hosts[task.name] = message.content

        result, raised = None, None
        try:
            result = receive(task, message)
        except Exception as error:
            raised = error

        if self._deadline is not None and task.name not in self._interrupted:
            # Cancelled by Ray, a task could not send messages any more, and not store its results.
            self._interrupted.add(task.name)
            return None, KeyboardInterrupt()
        return result, raised

    def _outcome(self, reference: Any, task: Task) -> Outcome:  # noqa: ANN401 - Ray's own class
        where = self.hosts.get(task.name, "")
        errors = self.ray.exceptions
        lost = errors.WorkerCrashedError, errors.NodeDiedError, errors.ObjectLostError, errors.LocalRayletDiedError
        try:
            outcome: Outcome = self.ray.get(reference)
            return outcome
        except (errors.TaskCancelledError, KeyboardInterrupt):
            return Outcome("stopped", where=where)
        except errors.OutOfMemoryError:
            return Outcome("memory", error="Ray ended it because the machine's memory was full", where=where)
        except lost as error:
            reason = f"its process or machine was lost ({type(error).__name__})"
            return Outcome("lost" if self._deadline is None else "stopped", error=reason, where=where)
        except errors.RayError as error:
            return Outcome("failed", error=f"{type(error).__name__}: {str(error).splitlines()[-1]}", where=where)

    def stop(self) -> None:
        """Ask the running tasks to end; they are killed where they take too long."""
        self._deadline = time.monotonic() + SECONDS_TO_STOP
        for reference, task in self.running.items():
            if task.name not in self.hosts:
                self.ray.cancel(reference)

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
            raise ValueError("it has not the form HOST:PORT")
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


def _with_code(environment: dict[str, Any]) -> dict[str, Any]:
    """Return a runtime environment in which tasks import this command's checkout from its path on their own disk.

    An installed package has to be installed on every machine instead.
    """
    if not (ROOT / "pyproject.toml").is_file():
        return environment
    variables = environment.get("env_vars") or {}
    paths = [*filter(None, [variables.get("PYTHONPATH")]), str(_link_to_checkout())]
    return {**environment, "env_vars": {**variables, "PYTHONPATH": os.pathsep.join(paths)}}


def _link_to_checkout() -> Path:
    """Return a folder of the checkout, seen by all machines, in which a link to it has the name of the package."""
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
    """Keeps the messages of tasks for the command, and its answers for the tasks."""

    def __init__(self) -> None:
        self.messages: asyncio.Queue[tuple[int, str, TaskMessage]] = asyncio.Queue()
        self.answers: dict[int, asyncio.Future[Any]] = {}
        self.numbers = itertools.count()

    async def ask(self, name: str, message: TaskMessage) -> Any:  # noqa: ANN401 - as the message demands
        number = next(self.numbers)
        self.answers[number] = asyncio.get_running_loop().create_future()
        await self.messages.put((number, name, message))
        return await self.answers[number]

    async def take(self, seconds: float) -> list[tuple[int, str, TaskMessage]]:
        try:
            first = await asyncio.wait_for(self.messages.get(), seconds) if seconds else self.messages.get_nowait()
        except (TimeoutError, asyncio.QueueEmpty):
            return []
        return [first, *(self.messages.get_nowait() for _ in range(self.messages.qsize()))]

    async def reply(self, number: int, answer: tuple[Any, BaseException | None]) -> None:
        self.answers.pop(number).set_result(answer)


def _perform(task: Task, mailbox: Any) -> Outcome:  # noqa: ANN401 - Ray's own class
    def ask(message: TaskMessage) -> Any:  # noqa: ANN401 - as the message demands
        # While a task waits by `ray.get`, Ray lends its processors to others.
        result, error = mailbox.ask.remote(task.name, message).future().result()
        if error is not None:
            raise error
        return result

    try:
        return perform(task, ask)
    except KeyboardInterrupt:
        return Outcome("stopped")

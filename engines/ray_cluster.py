"""Tasks on a Ray cluster, by Ray Core alone."""

import asyncio
import math
import os
import signal
import socket
import sys
import time
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from headstart.engines.task import Outcome, Receive, Task, TaskMessage, TaskResources, deferred_signals, perform
from headstart.output.errors import UserError, explain_write_errors, reason_of
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
        if resources.reuses_processes and not resources.gpus:
            _tell_of_unused_gpus(ray.cluster_resources().get("GPU", 0))

        here = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(
            ray.get_runtime_context().get_node_id(), soft=False
        )
        # If its process is killed, it restarts, and tasks ask again.
        self.mailbox = (
            ray.remote(_Mailbox)
            .options(num_cpus=0, scheduling_strategy=here, max_restarts=-1, max_task_retries=-1)
            .remote()
        )
        # The command counts retries itself, for its table of runs. Unless it need not, each task has a process of its
        # own, so that it does not lack what another one has not freed.
        calls = 0 if resources.reuses_processes else 1
        decorate = ray.remote(
            num_cpus=resources.cpus, num_gpus=resources.gpus, memory=memory, max_retries=0, max_calls=calls
        )
        self.remote = decorate(_perform)
        self.running: dict[Any, Task] = {}
        self.hosts: dict[str, str] = {}
        # The times at which tasks that are told to end are killed, by name, and the tasks that have been told.
        self._deadlines: dict[str, float] = {}
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
        except (ConnectionError, ValueError, RuntimeError, self.ray.exceptions.AuthenticationError) as error:
            # At an address something answers, as was seen before.
            is_refused = address != "auto" or isinstance(error, self.ray.exceptions.AuthenticationError)
            refused = "the cluster refuses this process", "give its token as RAY_AUTH_TOKEN, and its version of Ray"
            problem, remedy = refused if is_refused else ("no cluster answers", "ray start --head starts one here")
            raise UserError(f"ray: {problem} at {address!r} ({reason_of(error)}); {remedy}") from error
        finally:
            signal.signal(signal.SIGTERM, on_sigterm)

    def room(self) -> int:
        """Return how many more tasks can be submitted."""
        return SUBMITTED - len(self.running)

    def start(self, task: Task) -> bool:
        """Submit a task, which waits until the cluster has room for it."""
        self._deadlines.pop(task.name, None)
        self._interrupted.discard(task.name)
        self.hosts.pop(task.name, None)
        self.running[self.remote.remote(task, self.mailbox)] = task
        return False

    def wait(self, receive: Receive, ended: list[tuple[Task, Outcome]]) -> None:
        """Answer the messages of tasks, for a second or until a task ends; see `Engine.wait`."""
        try:
            with deferred_signals():
                self._wait(receive, ended)
        except self.ray.exceptions.RayError as error:
            raise UserError(
                f"ray: the cluster was lost ({reason_of(error)}); the ledger is kept; run the command again to continue"
            ) from error

    def _wait(self, receive: Receive, ended: list[tuple[Task, Outcome]]) -> None:
        tasks = {task.name: task for task in self.running.values()}
        # Ends are looked for before messages are taken, so that a task's messages are received before its end.
        finished, _ = self.ray.wait(list(self.running), num_returns=len(self.running), timeout=0)
        for number, name, message in self.ray.get(self.mailbox.take.remote(0.0 if finished else SECONDS_TO_WAIT)):
            # A task that is counted as lost may still run.
            answer = self._answer(receive, tasks[name], message) if name in tasks else (None, True)
            self.mailbox.reply.remote(number, answer)

        for reference in finished:
            task = self.running.pop(reference)
            ended.append((task, self._outcome(reference, task)))
        for reference, task in list(self.running.items()):
            overdue = time.monotonic() - self._deadlines.get(task.name, math.inf)
            if overdue > 0:
                self.ray.cancel(reference, force=True)
            # A process that is suspended does not answer Ray.
            if overdue > SECONDS_TO_STOP:
                del self.running[reference]
                ended.append((task, self._stopped(task)))

    def _answer(self, receive: Receive, task: Task, message: TaskMessage) -> tuple[Any, bool]:
        """Return the answer to a message, and whether its task is to end."""
        if message.kind == "started":
            self.hosts[task.name] = message.content
        answer = receive(task, message)
        if task.name in self._deadlines and task.name not in self._interrupted:
            # A task that Ray cancels can send no more messages, and so not store its results.
            self._interrupted.add(task.name)
            return None, True
        return answer, False

    def _outcome(self, reference: Any, task: Task) -> Outcome:  # noqa: ANN401 - Ray's own class
        where = self.hosts.get(task.name, "")
        errors = self.ray.exceptions
        lost = errors.WorkerCrashedError, errors.NodeDiedError, errors.ObjectLostError, errors.LocalRayletDiedError
        try:
            outcome: Outcome = self.ray.get(reference)
            return outcome
        except (errors.TaskCancelledError, KeyboardInterrupt):
            return self._stopped(task)
        except errors.OutOfMemoryError:
            return Outcome("memory", error="Ray ended it because the machine's memory was full", where=where)
        except lost as error:
            reason = f"its process or machine was lost ({type(error).__name__})"
            return self._stopped(task) if task.name in self._deadlines else Outcome("lost", error=reason, where=where)
        except errors.RayError as error:
            return Outcome("failed", error=f"{type(error).__name__}: {str(error).splitlines()[-1]}", where=where)

    def _stopped(self, task: Task) -> Outcome:
        return Outcome("stopped", where=self.hosts.get(task.name, ""))

    def end(self, task: Task) -> None:
        """Ask a running task to end; it is killed where that takes too long."""
        self._deadlines.setdefault(task.name, time.monotonic() + SECONDS_TO_STOP)
        for reference, each in self.running.items():
            if each is task and task.name not in self.hosts:
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


def _tell_of_unused_gpus(gpus: float) -> None:
    """Warn that GPUs of the cluster stay unused: the command's own machine decides which device `auto` is."""
    if gpus:
        say(f"tasks run on processors only; give the device cuda to use the cluster's {gpus:g} GPU{'s' * (gpus != 1)}")


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
    with explain_write_errors(f"ray: {str(folder)!r}", "make it writable"):
        if not link.is_symlink():
            folder.mkdir(exist_ok=True)
            with suppress(FileExistsError):  # another command was faster
                link.symlink_to("..", target_is_directory=True)
    return folder


class _Mailbox:
    """Keeps the messages of tasks for the command, and its answers for the tasks."""

    def __init__(self) -> None:
        self.messages: asyncio.Queue[tuple[str, str, TaskMessage]] = asyncio.Queue()
        self.answers: dict[str, asyncio.Future[Any]] = {}

    async def ask(self, name: str, message: TaskMessage) -> Any:  # noqa: ANN401 - as the message demands
        # A counter would start again with this process.
        number = uuid.uuid4().hex
        self.answers[number] = asyncio.get_running_loop().create_future()
        await self.messages.put((number, name, message))
        return await self.answers[number]

    async def take(self, seconds: float) -> list[tuple[str, str, TaskMessage]]:
        try:
            first = await asyncio.wait_for(self.messages.get(), seconds) if seconds else self.messages.get_nowait()
        except (TimeoutError, asyncio.QueueEmpty):
            return []
        return [first, *(self.messages.get_nowait() for _ in range(self.messages.qsize()))]

    async def reply(self, number: str, answer: tuple[Any, bool]) -> None:
        # A message that an earlier process took is asked again under another number.
        if number in self.answers:
            self.answers.pop(number).set_result(answer)


def _perform(task: Task, mailbox: Any) -> Outcome:  # noqa: ANN401 - Ray's own class
    def ask(message: TaskMessage) -> Any:  # noqa: ANN401 - as the message demands
        # While a task waits by `ray.get`, Ray lends its processors to others.
        answer, is_to_end = mailbox.ask.remote(task.name, message).future().result()
        if is_to_end:
            raise KeyboardInterrupt
        return answer

    try:
        return perform(task, ask)
    except KeyboardInterrupt:
        return Outcome("stopped")

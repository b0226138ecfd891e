"""Whatever goes wrong in a task or a listener, a command ends, and tells how its tasks ended."""

import os
import signal
import subprocess
import threading
import time
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any

import pytest

from headstart.engines.ray_cluster import RayCluster
from headstart.engines.scheduler import run_tasks
from headstart.engines.task import Outcome, Task, TaskMessage, TaskResources
from headstart.engines.workers import Workers
from headstart.output.errors import UserError
from headstart.tests.material.listeners import TASKS, Notes, Open, run
from headstart.tests.material.tasks import Suspending


class Failing(Notes):
    """Raises an error when one of its methods is called for the first time."""

    def __init__(self, method: str) -> None:
        super().__init__()
        self.method, self.calls = method, 0

    def _fail_in(self, method: str) -> None:
        if method == self.method:
            self.calls += 1
            if self.calls == 1:
                raise OSError(28, "No space left on device")

    def receive(self, task: Task, message: TaskMessage) -> Any:
        answer = super().receive(task, message)
        self._fail_in(message.kind)
        return answer

    def ended(self, task: Task, outcome: Outcome, again: bool) -> None:
        super().ended(task, outcome, again)
        self._fail_in("ended")

    def waited(self) -> None:
        super().waited()
        self._fail_in("waited")


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kill tasks that do not end within a second."""
    for engine in ("workers", "ray_cluster"):
        monkeypatch.setattr(f"headstart.engines.{engine}.SECONDS_TO_STOP", 1.0)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("way", ["end_when_asked", "refuse_to_end", "suspend_itself"])
@pytest.mark.parametrize("method", ["started", "printed", "progress", "ended", "waited"])
def test_an_error_of_the_listener_ends_the_command(method: str, way: str, open_engine: Open) -> None:
    notes = Failing(method)
    tasks = [Task("quick", f"{TASKS}:send_and_add", 1), *(Task(str(n), f"{TASKS}:{way}", None) for n in range(4))]
    with pytest.raises(OSError, match="No space left on device"):
        run_tasks(open_engine(), tasks, notes, 3, 1)
    # Each task that was started has one end, and none is started again.
    names = [name for name, _, _ in notes.ends]
    assert len(set(names)) == len(names)
    assert set(names) >= set(notes.hosts)
    assert not any(again for _, _, again in notes.ends)
    assert {outcome.kind for name, outcome, _ in notes.ends if name != "quick"} <= {"stopped"}


@pytest.mark.usefixtures("impatient")
def test_a_process_that_dies_while_the_disk_is_full(tmp_path: Path) -> None:
    notes = Failing("ended")
    with pytest.raises(OSError, match="No space left on device"):
        run_tasks(Workers(1, []), [Task("dies", f"{TASKS}:die_at_first", str(tmp_path / "mark"))], notes, 3, 1)
    assert len(notes.ends) == 1


@pytest.mark.slow
@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("way", ["end_when_asked", "refuse_to_end", "suspend_itself"])
def test_a_task_that_takes_too_long_fails_and_the_rest_goes_on(way: str, open_engine: Open) -> None:
    tasks = [Task("hangs", f"{TASKS}:{way}", None), *(Task(str(n), f"{TASKS}:send_and_add", n) for n in range(3))]
    notes = Notes()
    outcomes = run_tasks(open_engine(), tasks, notes, timeout=0.02)
    assert (outcomes["hangs"].kind, outcomes["hangs"].error) == ("failed", "it ran longer than 0.02 minutes")
    assert [outcomes[str(n)].result[0] for n in range(3)] == [111, 112, 113]
    assert ("wrote what there was" in notes.progress) == (way == "end_when_asked")


@pytest.mark.slow
@pytest.mark.usefixtures("impatient")
def test_a_task_whose_process_is_suspended_before_it_begins_takes_too_long() -> None:
    notes, tasks = Notes(), [Task("0", f"{TASKS}:send_and_add", Suspending()), Task("1", f"{TASKS}:send_and_add", 1)]
    outcomes = run_tasks(Workers(1, []), tasks, notes, timeout=0.02)
    assert (outcomes["0"].kind, outcomes["0"].error) == ("failed", "it ran longer than 0.02 minutes")
    assert outcomes["1"].result[0] == 112


@pytest.mark.parametrize("way", ["memory", "memory, explained", "memory of a thread"])
def test_a_fresh_process_follows_a_lack_of_memory(way: str) -> None:
    before, after = (Task(name, f"{TASKS}:send_and_add", 1) for name in ("before", "after"))
    notes = run(Workers(1, []), before, Task("bad", f"{TASKS}:fail", way), after)
    assert notes.results["before"][1] != notes.results["after"][1]


@pytest.mark.slow
def test_tasks_of_a_cluster_have_processes_of_their_own(cluster: Any) -> None:
    tasks = [Task(str(n), f"{TASKS}:send_and_add", n) for n in range(4)]
    notes = run(RayCluster(cluster.address, TaskResources(), {}), *tasks)
    assert len({process for _, process in notes.results.values()}) == 4


def test_a_process_that_has_used_much_memory_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    tasks = [Task(str(n), f"{TASKS}:send_and_add", n) for n in range(3)]
    monkeypatch.setattr("headstart.engines.workers.count_memory", lambda: 2 * 2**20)
    assert len({process for _, process in run(Workers(1, []), *tasks).results.values()}) == 3
    monkeypatch.setattr("headstart.engines.workers.count_memory", lambda: 2**50)
    assert len({process for _, process in run(Workers(1, []), *tasks).results.values()}) == 1


@pytest.mark.slow
def test_the_process_of_the_messages_may_die(cluster: Any) -> None:
    engine, notes = RayCluster(cluster.address, TaskResources(), {}), Notes()
    killed: list[int] = []

    def receive(task: Task, message: TaskMessage) -> Any:
        if not killed:
            processes = subprocess.run(["pgrep", "-f", "^ray::_Mailbox"], capture_output=True, text=True, check=True)
            killed.append(int(processes.stdout.split()[0]))
            os.kill(killed[0], signal.SIGKILL)
        return Notes.receive(notes, task, message)

    notes.receive = receive  # type: ignore[method-assign]
    outcomes = run_tasks(engine, [Task(str(n), f"{TASKS}:ask_and_add", n) for n in range(4)], notes, retries=0)
    assert killed
    assert [outcomes[str(n)].result for n in range(4)] == [n + 111 for n in range(4)]


def test_a_signal_loses_no_end(monkeypatch: pytest.MonkeyPatch) -> None:
    notes = Notes()

    def interrupt(task: Task, outcome: Outcome, again: bool) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.05)
        Notes.ended(notes, task, outcome, again)

    monkeypatch.setattr(notes, "ended", interrupt)
    with pytest.raises(KeyboardInterrupt):
        run_tasks(Workers(1, []), [Task(str(n), f"{TASKS}:send_and_add", n) for n in range(3)], notes)
    assert [name for name, _, _ in notes.ends] == ["0"]


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_signal_that_comes_while_a_process_is_started(moment: str, monkeypatch: pytest.MonkeyPatch) -> None:
    start, notes = SpawnProcess.start, Notes()

    def interrupt(process: SpawnProcess) -> None:
        if moment == "before":
            os.kill(os.getpid(), signal.SIGINT)
        start(process)
        if moment == "after":
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(SpawnProcess, "start", interrupt)
    with pytest.raises(KeyboardInterrupt):
        run_tasks(Workers(2, []), [Task(str(n), f"{TASKS}:end_when_asked", None) for n in range(3)], notes)
    assert [(name, outcome.kind) for name, outcome, _ in notes.ends] == [("0", "stopped")]


@pytest.mark.usefixtures("impatient")
def test_a_process_that_cannot_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    start, notes = SpawnProcess.start, Notes()
    started: list[SpawnProcess] = []

    def fail(process: SpawnProcess) -> None:
        if started:
            raise BlockingIOError(11, "Resource temporarily unavailable")
        started.append(process)
        start(process)

    monkeypatch.setattr(SpawnProcess, "start", fail)
    with pytest.raises(UserError, match=r"^workers: a process cannot be started \(Resource temporarily unavailable\);"):
        run_tasks(Workers(2, []), [Task(str(n), f"{TASKS}:end_when_asked", None) for n in range(3)], notes)
    assert [(name, outcome.kind) for name, outcome, _ in notes.ends] == [("0", "stopped")]


@pytest.mark.slow
def test_a_second_signal_ends_everything_at_once_and_loses_no_end(open_engine: Open) -> None:
    notes = Notes()

    def interrupt_twice() -> None:
        while "begun" not in notes.progress:
            time.sleep(0.05)
        for _ in range(2):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(2)

    thread = threading.Thread(target=interrupt_twice)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        run_tasks(open_engine(), [Task(str(n), f"{TASKS}:suspend_itself", None) for n in range(3)], notes)
    thread.join()
    names = [name for name, _, _ in notes.ends]
    assert set(notes.hosts) <= set(names)
    assert len(set(names)) == len(names)
    assert {outcome.kind for _, outcome, _ in notes.ends} == {"stopped"}


def test_a_stopped_command_restarts_nothing() -> None:
    notes = Notes()

    def interrupt() -> None:
        while "begun" not in notes.progress:
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        run_tasks(Workers(1, []), [Task("0", f"{TASKS}:lack_memory_at_the_end", None)], notes)
    thread.join()
    assert [(outcome.kind, again) for _, outcome, again in notes.ends] == [("memory", False)]

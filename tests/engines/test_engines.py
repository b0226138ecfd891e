"""Whatever engine runs a task, it does the same, and says the same of how it ended."""

import logging
import os
import signal
import socket
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from headstart.engines.ray_cluster import RayCluster
from headstart.engines.scheduler import run_tasks
from headstart.engines.task import Outcome, Task, TaskResources
from headstart.engines.workers import SECONDS_TO_STOP, Workers
from headstart.output.errors import Terminated, UserError
from headstart.tests.material.listeners import TASKS, Notes, Open, run


def test_every_task_is_done_once_and_its_messages_are_received(open_engine: Open) -> None:
    notes = run(open_engine(), *(Task(str(n), f"{TASKS}:send_and_add", n) for n in range(5)))
    assert {name: total for name, (total, _) in notes.results.items()} == {str(n): n + 111 for n in range(5)}
    assert all(outcome.kind == "done" and not again for _, outcome, again in notes.ends)
    assert sorted(notes.printed) == [(str(n), f"adding to {n}") for n in range(5)]
    assert sorted(notes.numbers) == sorted([1, 10, 100] * 5)
    assert all(notes.hosts.values())
    assert {outcome.where for _, outcome, _ in notes.ends} == set(notes.hosts.values())


def test_processes_live_for_all_tasks() -> None:
    notes = run(Workers(2, []), *(Task(str(n), f"{TASKS}:send_and_add", n) for n in range(6)))
    processes = {process for _, process in notes.results.values()}
    assert 1 <= len(processes) <= 2
    assert os.getpid() not in processes


@pytest.mark.parametrize(
    ("way", "kind", "error"),
    [
        ("user", "failed", "root: there is no folder"),
        ("defect", "failed", "ZeroDivisionError: by nothing"),
        ("memory", "memory", "memory does not suffice (MemoryError)"),
        ("memory of torch", "memory", "memory does not suffice ([enforce fail"),
        ("memory, explained", "memory", "data.batch_size: a batch does not fit"),
        ("memory of a thread", "memory", "memory does not suffice (can't start new thread)"),
        ("network", "failed", "ConnectionResetError: Connection reset by peer"),
        ("library", "failed", "it ended by SystemExit(3)"),
    ],
)
def test_failures_are_reported_and_the_rest_goes_on(way: str, kind: str, error: str, open_engine: Open) -> None:
    notes = run(open_engine(), Task("bad", f"{TASKS}:fail", way), Task("good", f"{TASKS}:send_and_add", 1))
    ends = {name: outcome for name, outcome, _ in notes.ends}
    assert ends["bad"].kind == kind
    assert ends["bad"].error.startswith(error)
    assert ends["good"].result[0] == 112
    lines = [line for name, line in notes.printed if name == "bad"]
    assert "about to fail" in lines
    assert any("Traceback" in line for line in lines) == (way in ("defect", "network"))


def test_a_lost_task_is_restarted_as_often_as_configured(tmp_path: Path) -> None:
    tasks = [Task("dies", f"{TASKS}:die_at_first", str(tmp_path / "mark")), Task("lives", f"{TASKS}:send_and_add", 1)]
    notes = run(Workers(1, []), *tasks)
    assert [(name, outcome.kind) for name, outcome, _ in notes.ends] == [("dies", "lost"), ("lives", "done")]
    assert "SIGKILL" in notes.ends[0][1].error
    (tmp_path / "mark").unlink()
    notes = run(Workers(1, []), *tasks, retries=1)
    assert [(name, outcome.kind, again) for name, outcome, again in notes.ends] == [
        ("dies", "lost", True),
        ("lives", "done", False),
        ("dies", "done", False),
    ]


def test_the_end_of_a_process_is_heard_while_those_that_it_forked_live(tmp_path: Path) -> None:
    mark, ended = tmp_path / "mark", tmp_path / "mark.ended"
    mark.touch()
    notes = run(Workers(1, []), Task("dies", f"{TASKS}:die_beside_a_child", str(mark)))
    assert [outcome.kind for _, outcome, _ in notes.ends] == ["lost"]
    assert not ended.exists()
    mark.unlink()
    while not ended.exists():
        time.sleep(0.05)


def test_tasks_without_memory_are_counted_separately() -> None:
    notes = run(Workers(1, []), Task("bad", f"{TASKS}:fail", "memory"), retries=5, memory_retries=2)
    assert [again for _, _, again in notes.ends] == [True, True, False]


def test_processes_that_a_task_forks_may_print(open_engine: Open) -> None:
    notes = run(open_engine(), Task("forks", f"{TASKS}:print_in_a_child", ""))
    assert notes.results == {"forks": 0}
    assert notes.printed == [("forks", "from the task")]


def test_threads_of_a_task_may_print_at_once(open_engine: Open) -> None:
    tasks = [Task(str(n), f"{TASKS}:print_from_threads", 40) for n in range(3)]
    notes = run(open_engine(), *tasks)
    assert [outcome.kind for _, outcome, _ in notes.ends] == ["done"] * 3
    for task in tasks:
        lines = [line for name, line in notes.printed if name == task.name]
        assert set(lines) >= {f"{name} {number}" for name in "abc" for number in range(40)}


def test_messages_may_print() -> None:
    notes = run(Workers(1, []), Task("a", f"{TASKS}:send_what_warns", None))
    assert (notes.ends[0][1].kind, notes.printed, notes.progress) == ("done", [("a", "it is old")], ["loud"])


def test_a_handler_that_an_earlier_task_made_writes_for_the_next(
    open_engine: Open, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    names = [str(n) for n in range(4)]
    notes = run(open_engine(), *(Task(name, f"{TASKS}:log", f"line of {name}") for name in names))
    logging.getLogger(TASKS).handlers.clear()
    assert sorted(notes.printed) == [(name, f"line of {name}") for name in names]
    assert capfd.readouterr().err == ""


def test_a_task_that_is_ended_in_the_middle_of_a_message_is_not_waited_for() -> None:
    engine, notes = Workers(1, []), Notes()
    task = Task("speaks", f"{TASKS}:send_much", 2**22)
    engine.start(task)
    ended: list[tuple[Task, Outcome]] = []
    while not notes.progress:
        engine.wait(notes.receive, ended)
    # It waits for its message to be read to the end.
    time.sleep(0.5)
    engine.end(task)
    time.sleep(0.5)
    began = time.monotonic()
    while not ended:
        engine.wait(notes.receive, ended)
    engine.close()
    assert [outcome.kind for _, outcome in ended] == ["stopped"]
    assert time.monotonic() - began < SECONDS_TO_STOP


@pytest.mark.parametrize(("number", "error"), [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, Terminated)])
def test_tasks_of_a_stopped_command_write_what_they_have(
    number: signal.Signals, error: type[BaseException], open_engine: Open
) -> None:
    notes, engine = Notes(), open_engine()

    def stop() -> None:
        while "begun" not in notes.progress:
            time.sleep(0.05)
        time.sleep(0.3)
        os.kill(os.getpid(), number)

    def terminate(*_: object) -> None:
        raise Terminated

    before = signal.signal(signal.SIGTERM, terminate)
    thread = threading.Thread(target=stop)
    thread.start()
    try:
        with pytest.raises(error):
            run_tasks(engine, [Task(str(n), f"{TASKS}:end_when_asked", n) for n in range(3)], notes, 1, 1)
    finally:
        signal.signal(signal.SIGTERM, before)
        thread.join()
    assert notes.progress.count("begun") == notes.progress.count("wrote what there was")
    assert {name for name, _, _ in notes.ends} >= set(notes.hosts)
    assert {outcome.kind for _, outcome, _ in notes.ends} == {"stopped"}


def test_tasks_work_in_the_folder_of_the_command(
    open_engine: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    tasks = [Task(name, f"{TASKS}:give_folder", None, name) for name in ("", "/no/such")]
    notes = run(open_engine(), Task("here", f"{TASKS}:give_folder", None), *tasks)
    assert notes.results["here"] == str(tmp_path)
    assert Path(notes.results[""]).is_dir()
    (error,) = [outcome.error for name, outcome, _ in notes.ends if name == "/no/such"]
    assert error.startswith("the working folder '/no/such' is not on ")


def test_workers_share_the_gpus() -> None:
    assert [worker.gpu for worker in Workers(5, ["0", "3"]).workers] == ["0", "3", "0", "3", "0"]


@pytest.mark.slow
def test_tasks_on_a_cluster_are_answered(cluster: Any) -> None:
    notes = run(RayCluster(cluster.address, TaskResources(), {}), Task("good", f"{TASKS}:ask_and_add", 1))
    assert notes.results == {"good": 112}


@pytest.mark.slow
def test_a_machine_that_is_lost(cluster: Any, tmp_path: Path) -> None:
    tasks = [Task("dies", f"{TASKS}:die_at_first", str(tmp_path / "mark"))]
    notes = run(RayCluster(cluster.address, TaskResources(), {}), *tasks, retries=1)
    assert [(outcome.kind, again) for _, outcome, again in notes.ends] == [("lost", True), ("done", False)]


@pytest.mark.slow
def test_missing_resources_are_reported(cluster: Any, capfd: pytest.CaptureFixture[str]) -> None:
    large, full, small = TaskResources(64), TaskResources(1, memory=10**6), TaskResources(1)
    for resources, message in ((large, "64 CPU"), (full, "1 CPU, 1e+15 memory"), (small, "")):
        RayCluster(cluster.address, resources, {}).close()
        assert capfd.readouterr().err.startswith(f"warning: no machine of the cluster has {message};") == bool(message)


@pytest.mark.slow
def test_unused_gpus_of_a_cluster_are_told(cluster: Any, capfd: pytest.CaptureFixture[str]) -> None:
    node = cluster.add_node(num_cpus=0, num_gpus=2)
    for gpus in (0, 1):
        RayCluster(cluster.address, TaskResources(1, gpus, reuses_processes=True), {}).close()
        assert ("give the device cuda to use the cluster's 2 GPUs" in capfd.readouterr().out) == (gpus == 0)
    cluster.remove_node(node)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("environment", "words"),
    [
        ({"env_vars": {"A": 1}}, "runtime_env: runtime_env['env_vars'] must be of type Dict[str, str]"),
        ({"working_dir": "/no/such"}, "runtime_env: /no/such is not a valid path"),
    ],
)
def test_mistakes_in_the_runtime_environment(environment: dict[str, Any], words: str, cluster: Any) -> None:
    with pytest.raises(UserError) as refused:
        RayCluster(cluster.address, TaskResources(), environment)
    assert str(refused.value).startswith(words)
    engine = RayCluster(cluster.address, TaskResources(), {"env_vars": None})
    assert run(engine, Task("a", f"{TASKS}:send_and_add", 1)).results


@pytest.mark.slow
def test_no_cluster() -> None:
    pytest.importorskip("ray")
    with pytest.raises(UserError, match=r"^ray: no cluster answers at '127\.0\.0\.1:1'"):
        RayCluster("127.0.0.1:1", TaskResources(), {})


@pytest.mark.slow
def test_a_cluster_that_refuses_is_told_from_none(monkeypatch: pytest.MonkeyPatch) -> None:
    ray = pytest.importorskip("ray")

    errors = [ConnectionError("failed"), ray.exceptions.AuthenticationError("no token")]

    def refuse(*_: object, **__: object) -> None:
        raise errors.pop()

    monkeypatch.setattr(ray, "init", refuse)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = f"127.0.0.1:{listening.getsockname()[1]}"
        words = f"^ray: the cluster refuses this process at '{address}'.*RAY_AUTH_TOKEN"
        while errors:
            with pytest.raises(UserError, match=words):
                RayCluster(address, TaskResources(), {})

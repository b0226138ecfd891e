"""Whatever engine runs tasks, they give the same, and how each ended is told."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from headstart.engines.options import EngineOptions, Needs
from headstart.engines.tasks import Task, run_tasks
from headstart.engines.workers import Workers
from headstart.output.errors import UserError

TASKS = "headstart.tests.material.tasks"


@pytest.fixture(params=["here", "workers", pytest.param("ray", marks=pytest.mark.slow)])
def engine(request: pytest.FixtureRequest) -> EngineOptions:
    return choose(request.param, request)


def choose(name: str, request: pytest.FixtureRequest) -> EngineOptions:
    if name == "ray":
        return EngineOptions(ray=request.getfixturevalue("cluster").address)
    return EngineOptions(workers=2 if name == "workers" else None)


def tasks(function: str, *arguments: object) -> list[Task]:
    return [Task(str(number), f"{TASKS}:{function}", argument) for number, argument in enumerate(arguments)]


def test_every_engine_gives_what_a_loop_gives(engine: EngineOptions) -> None:
    outcomes = list(run_tasks(tasks("square", *range(7)), engine))
    assert [outcome.error for outcome in outcomes] == [""] * 7
    assert {outcome.task.argument: outcome.value for outcome in outcomes} == {n: n**2 for n in range(7)}
    shared = run_tasks(tasks("add", *range(5)), engine, shared=100)
    assert sorted(outcome.require() for outcome in shared) == [100, 101, 102, 103, 104]
    assert list(run_tasks([], EngineOptions(ray="nowhere:1"))) == []


def test_errors_are_one_line_and_the_others_go_on(engine: EngineOptions, tmp_path: Path) -> None:
    every = [*tasks("fail", "mistake", "defect", "exit"), Task("good", f"{TASKS}:square", 3)]
    ends = {outcome.task.name: outcome for outcome in run_tasks(every, engine, logs=tmp_path)}
    assert [ends[name].error for name in ("0", "1", "2", "good")] == [
        "root: there is no folder",
        "ZeroDivisionError: by nothing",
        "it ended by SystemExit(3)",
        "",
    ]
    logs = {path.stem: path.read_text() for path in tmp_path.iterdir()}
    assert all("about to fail" in logs[name] for name in "012")
    assert ["Traceback" in logs[name] for name in "012"] == [False, True, False]
    assert logs["good"] == "squaring 3\n"
    for name, message in (("0", "^root: there is no folder$"), ("1", "^1: ZeroDivisionError: by nothing$")):
        with pytest.raises(UserError, match=message):
            ends[name].require()


def test_logs_have_all_that_a_task_prints(engine: EngineOptions, tmp_path: Path) -> None:
    for _ in range(2):
        # A log of an earlier command is not continued.
        list(run_tasks(tasks("print_in_all_ways", *"abc"), engine, logs=tmp_path))
    for number, text in enumerate("abc"):
        lines = (tmp_path / f"{number}.log").read_text().splitlines()
        assert sorted(lines) == [f"{text} {how}" for how in ("below Python", "by a child", "logged", "printed")]


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("workers", signal.SIGKILL),
        ("workers", signal.SIGTERM),
        pytest.param("ray", signal.SIGKILL, marks=pytest.mark.slow),
    ],
)
def test_a_task_whose_process_is_ended_is_tried_again_once_and_named(
    name: str,
    number: signal.Signals,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    capfd: pytest.CaptureFixture[str],
) -> None:
    deaths = []
    for each, times in (("once", 1), ("ever", 9)):
        (tmp_path / each).mkdir()
        deaths.append(Task(each, f"{TASKS}:die", (str(tmp_path / each), times, number)))
    outcomes = run_tasks([*deaths, *tasks("square", *range(6))], choose(name, request), logs=tmp_path / "logs")
    ends = {outcome.task.name: outcome for outcome in outcomes}
    assert {each: outcome.error for each, outcome in ends.items() if outcome.error}.keys() == {"ever"}
    assert ends["once"].value == "2 attempts"
    assert ends["ever"].died
    assert len(list((tmp_path / "ever").iterdir())) == 2
    assert capfd.readouterr().err.count("it is started again") == 2
    with pytest.raises(UserError, match=r"^ever: it"):
        ends["ever"].require()
    if name == "workers":
        assert ("it was terminated" in ends["ever"].error) == (number == signal.SIGTERM)
        assert (f"see {tmp_path / 'logs' / 'ever.log'}" in ends["ever"].error) == (number == signal.SIGKILL)
        assert (tmp_path / "logs" / "ever.log").read_text() == "attempt 0\nattempt 1\n"


def test_workers_live_for_all_tasks_and_share_processors_and_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headstart.engines.tasks.count_processors", lambda: 7)
    monkeypatch.setattr("headstart.engines.tasks.list_gpus", lambda: ["3", "5"])
    seen = [outcome.require() for outcome in run_tasks(tasks("show", *[None] * 6), EngineOptions(workers=2))]
    processes = {each["process"]: each["gpu"] for each in seen}
    assert sorted(processes.values()) == ["3", "5"]
    assert os.getpid() not in processes
    # Two of this machine's processors cannot be more than it has.
    assert {each["cpus"] for each in seen} == {min(3, os.cpu_count() or 1)}
    assert {each["folder"] for each in seen} == {str(Path.cwd())}
    assert [worker.gpu for worker in Workers(3, 1, ["0", "3"]).workers] == ["0", "3", "0"]
    (here,) = run_tasks(tasks("show", None), EngineOptions(), needs=Needs(cpus=1))
    assert (here.value["process"], here.value["cpus"]) == (os.getpid(), 1)


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self").exists(), reason="finds processes in /proc")
def test_whatever_ends_the_command_leaves_no_process(tmp_path: Path) -> None:
    ends = {"SIGINT": 130, "SIGTERM": 143, "SIGKILL": -9, "suspended": 130}
    for name, code in ends.items():
        command, processes = start_waiting(tmp_path / name)
        if name == "suspended":
            for process in processes:
                os.kill(process, signal.SIGSTOP)
        command.send_signal(signal.SIGINT if name == "suspended" else signal.Signals[name])
        if name == "suspended":
            # The first signal is not heard, and nobody waits after the second.
            time.sleep(1)
            command.send_signal(signal.SIGINT)
        assert command.wait(14) == code, name
        while code == -9 and any(map(runs, processes)):
            time.sleep(0.05)
        assert not any(map(runs, processes)), name
        told = {path.read_text() for path in (tmp_path / name).iterdir()}
        assert told == {"runs" if name == "suspended" else "ended in order"}


def start_waiting(folder: Path) -> "tuple[subprocess.Popen[bytes], list[int]]":
    """Start a command whose tasks wait for their end; return it, and the processes of the tasks that run."""
    folder.mkdir()
    code = (
        "import sys; from contextlib import closing; from headstart.engines.tasks import *\n"
        "from headstart.output.parser import one_line_errors\n"
        f"tasks = [Task(str(n), '{TASKS}:wait_for_the_end', sys.argv[1]) for n in range(3)]\n"
        "with one_line_errors(), closing(run_tasks(tasks, EngineOptions(workers=2))) as outcomes: list(outcomes)"
    )
    command = subprocess.Popen([sys.executable, "-c", code, str(folder)])
    while len(marks := [path for path in folder.iterdir() if path.read_text()]) < 2:
        time.sleep(0.05)
    return command, [int(path.name) for path in marks]


def runs(process: int) -> bool:
    state = Path(f"/proc/{process}/stat")
    return state.exists() and state.read_text().rpartition(")")[2].split()[0] != "Z"

"""Sweeps with faults drawn at random end, tell how, and are completed by the same command."""

import contextlib
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from headstart.tests.material import faults
from headstart.tests.material.root import ROOT
from headstart.tests.material.sweeps import results, table, traces, write

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="finds processes in /proc, which Linux has"),
]

SWEEPS, RUNS, BATCHES = 30, 3, 20
ENGINES = ("serial", "workers", "ray")
# Minutes after which a run ends; a whole command takes a few times as long at most.
TIMEOUT, SECONDS = 0.7, 400
# Faults inside of a run, and faults from outside of a sweep.
INSIDE = ("hang", "suspend", "crash", "fill_disk", "leak")
OUTSIDE = ["kill command", "terminate command", "interrupt command", "close output", "fill disk"]
OF_WORKERS, OF_RAY = ["kill worker", "suspend worker"], ["kill task", "kill actor", "lose node"]
SIGNALS = {"kill": signal.SIGKILL, "terminate": signal.SIGTERM, "interrupt": signal.SIGINT, "suspend": signal.SIGSTOP}
# Exit codes of a command that ended early, besides those of runs that did not complete.
ENDED_EARLY = {
    "kill command": -signal.SIGKILL,
    "terminate command": 128 + signal.SIGTERM,
    "interrupt command": 128 + signal.SIGINT,
    "close output": 128 + signal.SIGPIPE,
    "fill disk": 1,
}
# By which the processes of a test are found.
MARK = "HEADSTART_TEST_OF_FAULTS"


class Work:
    """The folder in which all sweeps run, and the results of one that nothing disturbed."""

    def __init__(self, folder: Path, options: list[str]) -> None:
        self.folder = folder
        shutil.copy(faults.__file__, folder / "faults.py")
        options = [*options, "--trainer.logger=false", "--trainer.callbacks=faults.Faults"]
        self.file = write(folder, options, seed_everything={"values": [*range(RUNS)]})
        self.undisturbed = folder / "undisturbed"
        assert self.start(self.undisturbed).wait(SECONDS) == 0

    def start(self, output: Path, *options: str, **process: Any) -> "subprocess.Popen[bytes]":
        command = [sys.executable, str(ROOT / "sweep.py"), str(self.file), f"--output={output}"]
        environment = {**os.environ, "HEADSTART_CACHE": str(self.folder / "cache"), MARK: str(output)}
        return subprocess.Popen(
            [*command, f"--ledger={output}-ledger", *options], cwd=self.folder, env=environment, **process
        )

    def plan(self, kinds: list[str], chance: random.Random) -> None:
        shutil.rmtree(self.folder / "plan", ignore_errors=True)
        (self.folder / "plan").mkdir()
        for kind in kinds:
            (self.folder / "plan" / f"{chance.randrange(BATCHES)}.{kind}").touch()


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory, small_comparison: Callable[[Path], list[str]]) -> Work:
    folder = tmp_path_factory.mktemp("faults")
    return Work(folder, small_comparison(folder))


def processes(output: Path, words: str = "") -> list[int]:
    """Return the processes that a command has started, itself included, whose command lines have these words."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            environment = (folder / "environ").read_bytes().split(b"\0")
            if f"{MARK}={output}".encode() in environment and words.encode() in (folder / "cmdline").read_bytes():
                found.append(int(folder.name))
    return found


@pytest.fixture
def output(work: Work, tmp_path: Path) -> Iterator[Path]:
    """Name the folder of a sweep, and end whatever it leaves running."""
    yield tmp_path / "sweep"
    for process in processes(tmp_path / "sweep"):
        os.kill(process, signal.SIGKILL)


def disturb(fault: str, process: "subprocess.Popen[bytes]", output: Path, cluster: Any, chance: random.Random) -> None:
    """Do something to a sweep that runs; nothing if it has ended in the meantime."""
    verb, _, whom = fault.partition(" ")
    targets: list[int] = []
    if whom == "command":
        targets = [process.pid]
    elif whom == "worker":
        targets = processes(output, "spawn_main")
    elif whom in ("task", "actor"):
        words = "^ray::_perform" if whom == "task" else "^ray::_Mailbox"
        found = subprocess.run(["pgrep", "-f", words], capture_output=True, text=True, check=False)
        targets = [int(line) for line in found.stdout.split()]
    elif fault == "close output":
        assert process.stdout is not None
        process.stdout.close()
    elif fault == "lose node":
        node = chance.choice([each for each in cluster.list_all_nodes() if each is not cluster.head_node])
        cluster.remove_node(node, allow_graceful=False)
        cluster.add_node(num_cpus=1)
    if targets and process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(chance.choice(targets), SIGNALS[verb])


def require_truth(code: int, stderr: str, output: Path, work: Work, outside: list[str]) -> None:
    """Check that the exit code and the table say what happened to the runs."""
    killed = code == -signal.SIGKILL
    rows = table(output) if (output / "sweep.json").exists() else {}
    states = [row["state"] for row in rows.values()]
    early = [ENDED_EARLY[fault] for fault in outside if fault in ENDED_EARLY]
    if code not in early:
        assert len(rows) == RUNS
        assert code == (1 if set(states) - {"complete", "incomplete"} else 75 if "incomplete" in states else 0)
    assert killed or code in (0, 75, 141) or "error:" in stderr or set(states) & {"failed", "lost", "memory"}
    assert killed or "running" not in states, rows
    assert "Traceback" not in stderr
    expected = results(work.undisturbed)
    measured = results(output)
    for name, row in rows.items():
        if row["state"] == "complete":
            differing = {key for key, value in expected[name].items() if measured[name].get(key) != value}
            assert not differing, [(measured[name][key], expected[name][key]) for key in differing]
        assert row["error"] or row["state"] in ("complete", "waiting", "running", "stopped"), row


def draw(engine: str, number: int, chance: random.Random) -> tuple[list[str], list[str]]:
    """Draw the faults of a sweep: each one from outside comes once with each engine, and some sweeps have none."""
    deck = [[fault] for fault in (*OUTSIDE, *(OF_RAY if engine == "ray" else OF_WORKERS))]
    deck += [[] for _ in range(SWEEPS // len(ENGINES) - len(deck))]
    random.Random(engine).shuffle(deck)
    outside = deck[number]
    return outside, chance.sample(INSIDE, chance.randint(1 - len(outside), 2))


@pytest.mark.parametrize("number", range(SWEEPS))
def test_a_disturbed_sweep_ends_tells_the_truth_and_is_completed(
    number: int, work: Work, output: Path, request: pytest.FixtureRequest
) -> None:
    chance, engine, cluster = random.Random(number), ENGINES[number % len(ENGINES)], None
    options = ["--workers=2"] if engine == "workers" else []
    if engine == "ray":
        cluster = request.getfixturevalue("cluster")
        while len(cluster.list_all_nodes()) < 3:
            cluster.add_node(num_cpus=1)
        options += [f"--ray={cluster.address}"]

    outside, inside = draw(engine, number // len(ENGINES), chance)
    if "kill command" in outside:
        # Nobody is left who could end a process that is suspended.
        inside = [kind for kind in inside if kind != "suspend"]
    work.plan(inside, chance)

    limit = chance.randrange(100, 60_000)
    is_full = "fill disk" in outside
    set_limit = (lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))) if is_full else None
    process = work.start(
        output, *options, f"--timeout={TIMEOUT}", stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=set_limit
    )
    errors: list[bytes] = []
    assert process.stderr is not None
    reader = threading.Thread(target=errors.extend, args=(process.stderr,))
    reader.start()
    for fault in outside:
        deadline = time.monotonic() + chance.uniform(0, 25)
        while process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.1)
        disturb(fault, process, output, cluster, chance)
    try:
        code = process.wait(SECONDS)
    finally:
        process.kill()
        process.wait()
    reader.join(5)
    stderr = b"".join(errors).decode()
    print(f"{engine}: {', '.join((*outside, *inside))}: exit code {code}", stderr, sep="\n")
    require_truth(code, stderr, output, work, outside)

    work.plan([], chance)
    assert work.start(output, *options).wait(SECONDS) == 0
    assert {row["state"] for row in table(output).values()} == {"complete"}
    assert results(output) == results(work.undisturbed)
    assert traces(output) == traces(work.undisturbed)

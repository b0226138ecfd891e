"""A sweep that is killed, or whose machines die, ends with the same results."""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from headstart.tests.material.sweeps import results, run, traces, write

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_a_cluster_of_which_a_machine_dies_measures_the_same(file: Path, tmp_path: Path, cluster: Any) -> None:
    run(file, tmp_path / "a")
    nodes = [cluster.add_node(num_cpus=1) for _ in range(2)]
    command = [sys.executable, "sweep.py", str(file), f"--output={tmp_path / 'b'}", f"--ledger={tmp_path / 'b-ledger'}"]
    with subprocess.Popen(
        [*command, f"--ray={cluster.address}"], cwd=ROOT, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        lines = [process.stderr.readline()]
        while lines[-1] and "started on" not in lines[-1]:
            lines.append(process.stderr.readline())
        cluster.remove_node(nodes[0], allow_graceful=False)
        lines += process.stderr.readlines()
    assert process.returncode == 0, lines
    assert any("it is restarted" in line for line in lines)
    assert traces(tmp_path / "b") == traces(tmp_path / "a")
    assert results(tmp_path / "b") == results(tmp_path / "a")


@pytest.mark.slow
def test_results_come_into_a_relative_folder_where_ray_brings_the_files(
    file: Path, tmp_path: Path, cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = cluster.add_node(num_cpus=1)
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    Path("environment.yaml").write_text("working_dir: .")
    rows = run(file, Path("a"), f"--ray={cluster.address}", "--runtime_env=environment.yaml")
    assert set(results(Path("a"))) == set(rows) != set()
    cluster.remove_node(node)


@pytest.mark.slow
@pytest.mark.parametrize(("engine", "times"), [("serial", 6), ("workers", 7), ("ray", 7)])
def test_killed_again_and_again_it_ends_with_the_same_tables(
    engine: str,
    times: int,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    small_comparison: Callable[[Path], list[str]],
) -> None:
    file = write(
        tmp_path, [*small_comparison(tmp_path), "--trainer.logger=false"], seed_everything={"values": [*range(6)]}
    )
    run(file, tmp_path / "a")
    output, chance, kills = tmp_path / "b", random.Random(0), 0
    command = [sys.executable, "sweep.py", str(file), f"--output={output}", f"--ledger={output}-ledger"]
    killers: list[Callable[[int], bool]] = [lambda driver: end([driver], chance)]
    if engine == "workers":
        command += ["--workers=2"]
        killers += [lambda driver: end(processes("-P", str(driver), "-f", "spawn_main"), chance)]
    if engine == "ray":
        cluster = request.getfixturevalue("cluster")
        nodes = [cluster.add_node(num_cpus=1) for _ in range(2)]
        command += [f"--ray={cluster.address}"]

        def lose_a_node(_: int) -> bool:
            cluster.remove_node(nodes.pop(chance.randrange(2)), allow_graceful=False)
            nodes.append(cluster.add_node(num_cpus=1))
            return True

        def lose_a_task(_: int) -> bool:
            raylets = [str(each.process.pid) for node in nodes for each in node.all_processes["raylet"]]
            return end(processes("-P", ",".join(raylets), "-f", "^ray::_perform"), chance)

        killers += [lose_a_task, lose_a_node]
    while kills < times:
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(chance.uniform(0.2, 12))
        if process.poll() is None:
            kills += chance.choice(killers)(process.pid)
        process.wait(90)
        if process.returncode == 0:
            # Finished runs are restarted, so that there is something to kill.
            for path in output.glob("*/results.json"):
                path.unlink()
            Path(f"{output}-ledger/traces.sqlite").unlink()
            (output / "sweep.json").unlink()
    assert subprocess.run(command, cwd=ROOT, check=False).returncode == 0
    assert traces(output).keys() == traces(tmp_path / "a").keys()
    assert results(output) == results(tmp_path / "a")


def end(running: list[int], chance: random.Random) -> bool:
    """End one of several processes; say whether there was one."""
    with suppress(ProcessLookupError, IndexError):
        os.kill(chance.choice(running), chance.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT]))
        return True
    return False


def processes(*which: str) -> list[int]:
    output = subprocess.run(["pgrep", *which], capture_output=True, text=True, check=False)
    return [int(line) for line in output.stdout.split()]

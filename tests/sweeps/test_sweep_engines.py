"""Wherever the runs of a sweep are, and whatever is killed, it ends with the same."""

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

from headstart.contract.documents import read_registry
from headstart.engines.options import EngineOptions, Needs
from headstart.engines.tasks import Task, run_tasks
from headstart.output.errors import UserError
from headstart.store.ledger import Ledger
from headstart.sweeps.request import RunRequest, pack, unpack
from headstart.sweeps.run import measure_there
from headstart.tests.conftest import list_options
from headstart.tests.material.offline_runs import OfflineRun
from headstart.tests.material.sweeps import results, run, table, traces, write
from headstart.tests.material.training import CONFIGS, small_training

ROOT = Path(__file__).parents[2]
FINE_TUNING = [
    f"--config={CONFIGS / 'demo.yaml'}",
    "--data=headstart.datamodules.PhotoStream",
    "--data.photos.train_size=60",
    "--data.max_samples=8",
    "--data.validation_size=20",
    "--data.dropout=true",
    f"--model={CONFIGS / 'model' / 'fine_tuning.yaml'}",
    "--criterion.evaluation=lazy",
    "--criterion.consecutive=3",
    "--criterion.threshold=0.6",
    "--trainer.accelerator=cpu",
    "--trainer.logger=false",
]


def test_what_is_sent_replaces_a_folder_without_links(tmp_path: Path) -> None:
    (tmp_path / "there" / "wandb").mkdir(parents=True)
    (tmp_path / "there" / "wandb" / "core.log").symlink_to("/tmp/core.log")
    (tmp_path / "there" / "results.json").write_text("new")
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "old").touch()
    # A killed command leaves this.
    (tmp_path / ".here" / "new").mkdir(parents=True)
    unpack(pack(tmp_path / "there"), tmp_path / "here")
    assert {path.name for path in (tmp_path / "here").rglob("*")} == {"wandb", "results.json"}
    assert {path.name for path in tmp_path.iterdir()} == {"here", "there"}


@pytest.mark.slow
def test_a_source_that_would_be_registered_elsewhere_is_refused(photo_folder: Path, tmp_path: Path) -> None:
    options = [f"--config={CONFIGS / 'source_training.yaml'}", *small_training(photo_folder), "--trainer.max_epochs=1"]
    request = RunRequest((*options, f"--results.registry={tmp_path / 'pool.json'}"), tmp_path / "run", tmp_path, {})
    with pytest.raises(UserError, match=r"^results\.registry: "):
        measure_there(request, Ledger(tmp_path / "empty").content())
    assert not (tmp_path / "pool.json").exists()
    (row,) = run(write(tmp_path, options, seed_everything={"values": [0]}), tmp_path / "b").values()
    folder = tmp_path / "b" / row["name"]
    assert read_registry(folder / "registry.json").weights_file(folder.name) == folder / "weights.safetensors"


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["features", "fine tuning", "target accuracies"])
def test_every_engine_gives_the_same(kind: str, tmp_path: Path, photo_folder: Path, cluster: Any) -> None:
    orderings = {"data__first_ordering": {"values": [0, 1]}, "data__orderings": {"value": 1}}
    target = [f"--config={CONFIGS / 'target_accuracy.yaml'}", *small_training(photo_folder)]
    widths = {"data__backbone__model_args__width_mult": {"values": [0.25, 0.35]}}
    file = {
        "features": lambda: write(tmp_path, list_options(photo_folder)),
        "fine tuning": lambda: write(tmp_path, FINE_TUNING, **orderings),
        "target accuracies": lambda: write(tmp_path, [*target, "--trainer.max_epochs=1"], **widths),
    }[kind]()
    rows = run(file, tmp_path / "serial")
    assert traces(tmp_path / "serial")
    for name, option in (("workers", "--workers=2"), ("ray", f"--ray={cluster.address}")):
        run(file, tmp_path / name, option)
        assert traces(tmp_path / name) == traces(tmp_path / "serial")
        assert results(tmp_path / name) == results(tmp_path / "serial")
        assert {row["computed_traces"] for row in run(file, tmp_path / name, option).values()} == {0}
        assert {path.stem for path in (tmp_path / name / "logs").iterdir()} == set(rows)


@pytest.mark.slow
def test_runs_in_workers_are_in_the_dashboard_once_with_the_sweep_s_parameters(
    tmp_path: Path, small_comparison: Callable[[Path], list[str]]
) -> None:
    options = [each for each in small_comparison(tmp_path) if not each.startswith("--trainer.logger")]
    options += ["--trainer.logger.class_path=headstart.callbacks.DashboardLogger", "--trainer.logger.mode=offline"]
    file = write(tmp_path, options, seed_everything={"values": [0, 1]}, data__batch_size={"values": [1, 2]})
    for _ in range(2):
        # Finished runs are in the dashboard already.
        run(file, tmp_path / "a", "--workers=2")
    folders = sorted((tmp_path / "a").glob("*/wandb"))
    assert [len(list(folder.glob("offline-run-*"))) for folder in folders] == [1] * 4

    # A group holds the two seeds of one batch size; the sweep is a tag, and its parameters are in the configuration.
    mirrors = [OfflineRun(folder.parent) for folder in folders]
    configs = [mirror.whole["config"] for mirror in mirrors]
    groups = {(mirror.settings["run_group"], mirror.whole["config"]["data.batch_size"]) for mirror in mirrors}
    assert len(groups) == len({group for group, _ in groups}) == 2
    assert {mirror.settings["tags"][-1] for mirror in mirrors} == {config["sweep"] for config in configs} == {file.stem}
    assert {config["seed_everything"] for config in configs} == {0, 1}


@pytest.mark.slow
def test_what_a_cluster_lacks_is_told(
    cluster: Any, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    show = [Task("a", "headstart.tests.material.tasks:show", None)]
    engine = EngineOptions(ray=cluster.address)
    outcomes = run_tasks(show, engine, needs=Needs(64))
    monkeypatch.setattr("headstart.engines.ray_cluster.RayCluster.wait", lambda self: pytest.skip("waits for ever"))
    with pytest.raises(pytest.skip.Exception):
        next(outcomes)
    assert capfd.readouterr().err.startswith("warning: no machine of the cluster has 64 CPU;")
    with pytest.raises(UserError, match=r"^ray: no cluster answers at 'localhost:1'"):
        list(run_tasks(show, EngineOptions(ray="localhost:1")))


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["serial", "workers", "ray"])
def test_killed_again_and_again_it_ends_with_the_same(
    engine: str, tmp_path: Path, request: pytest.FixtureRequest, small_comparison: Callable[[Path], list[str]]
) -> None:
    file = write(tmp_path, small_comparison(tmp_path), seed_everything={"values": [*range(6)]})
    run(file, tmp_path / "a")
    output, chance, kills = tmp_path / "b", random.Random(0), 0
    command = [sys.executable, "sweep.py", str(file), f"--output={output}", f"--ledger={output}-ledger"]
    victims = {"serial": ["command"], "workers": ["command", "worker"], "ray": ["command", "node"]}[engine]
    command += ["--workers=2"] * (engine == "workers")
    if engine == "ray":
        cluster = request.getfixturevalue("cluster")
        command += [f"--ray={cluster.address}"]

    while kills < 6:
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(chance.uniform(0.2, 14))
        if process.poll() is None:
            victim = chance.choice(victims)
            if victim == "node":
                lost = next(each for each in cluster.list_all_nodes() if each is not cluster.head_node)
                cluster.remove_node(lost, allow_graceful=False)
                cluster.add_node(num_cpus=1)
                kills += 1
            else:
                kills += end([process.pid] if victim == "command" else workers_of(process.pid), chance)
        process.wait(200)
        if process.returncode == 0:
            # Finished runs are forgotten, so that there is something to kill.
            Path(f"{output}-ledger/traces.sqlite").unlink()
    assert subprocess.run(command, cwd=ROOT, check=False).returncode == 0
    assert {row["state"] for row in table(output).values()} == {"complete"}
    assert traces(output) == traces(tmp_path / "a")
    assert results(output) == results(tmp_path / "a")


def workers_of(command: int) -> list[int]:
    output = subprocess.run(["pgrep", "-P", str(command), "-f", "spawn_main"], capture_output=True, text=True)
    return [int(line) for line in output.stdout.split()]


def end(running: list[int], chance: random.Random) -> bool:
    """End one of several processes; say whether there was one."""
    with suppress(ProcessLookupError, IndexError):
        os.kill(chance.choice(running), chance.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT]))
        return True
    return False

"""A sweep measures what the ledger lacks, wherever it runs and however it is cut off."""

import json
import os
import random
import shlex
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
import yaml

from headstart import sweep
from headstart.contract.documents import read_registry
from headstart.engines.display import Display
from headstart.engines.task import Task, TaskMessage
from headstart.sweeps.measure import _pack
from headstart.sweeps.server import RunsTable, SweepServer
from headstart.sweeps.sweep import _conclude
from headstart.sweeps.sweep_file import Run, read_sweep
from headstart.tests.material.training import CONFIGS, small_training

ROOT = Path(__file__).parents[2]
Traces = dict[tuple[str, str, int], tuple[bytes, int | None]]


@pytest.fixture
def file(tmp_path: Path, small_comparison: Callable[[Path], list[str]]) -> Path:
    """Write a sweep of two runs of a second each."""
    return write(tmp_path, [*small_comparison(tmp_path), "--trainer.logger=false"])


def write(folder: Path, options: list[str], **parameters: Any) -> Path:
    parameters = parameters or {"criterion.evaluate_every": {"values": [1, 2]}}
    content = {
        "program": "train.py",
        "method": "grid",
        "command": ["${program}", *options, "${args}"],
        "parameters": {name.replace("__", "."): parameter for name, parameter in parameters.items()},
    }
    file = folder / f"{'-'.join(parameters)}.yaml"
    file.write_text(yaml.safe_dump(content, sort_keys=False))
    return file


def run(file: Path, output: Path, *options: str, code: int = 0) -> dict[str, dict[str, Any]]:
    """Run a sweep in this process; give its table."""
    try:
        sweep.main([str(file), f"--output={output}", f"--ledger={output}-ledger", *options])
        exit_code: Any = 0
    except SystemExit as ended:
        exit_code = ended.code
    assert exit_code == code
    return table(output)


def table(output: Path) -> dict[str, dict[str, Any]]:
    document = json.loads((output / "sweep.json").read_text())
    return {row["name"]: row for row in document["runs"]}


def traces(output: Path) -> Traces:
    with sqlite3.connect(f"{output}-ledger/traces.sqlite") as base:
        rows = base.execute("SELECT stream, method, ordering, correct, diverged FROM traces WHERE NOT open")
        return {(stream, method, ordering): (counts, end) for stream, method, ordering, counts, end in rows}


def results(output: Path) -> dict[str, dict[str, Any]]:
    """Read the results of all runs, without what differs between two that are equal."""
    documents = {path.parent.name: json.loads(path.read_text()) for path in output.glob("*/results.json")}
    for document in documents.values():
        del document["times"], document["environment"]
    return documents


def test_runs_are_those_of_train_py_and_are_not_run_again(
    file: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = run(file, tmp_path / "a")
    assert {row["state"] for row in rows.values()} == {"complete"}
    assert [row["computed_traces"] > 0 for row in rows.values()] == [True] * 2
    assert set(results(tmp_path / "a")) == set(rows)
    assert "2 runs: 2 complete" in capfd.readouterr().out
    # The same options have the same result.
    from headstart import train

    name, row = next(iter(rows.items()))
    monkeypatch.setenv("HEADSTART_LEDGER", str(tmp_path / "other"))
    train.main([*row["options"], f"--trainer.default_root_dir={tmp_path / 'alone' / name}"])
    assert results(tmp_path / "alone")[name] == results(tmp_path / "a")[name]
    stamps = {path: path.stat().st_mtime_ns for path in (tmp_path / "a").glob("*/*.*") if path.suffix != ".log"}
    again = run(file, tmp_path / "a")
    assert [row["computed_traces"] for row in again.values()] == [0] * 2
    assert {path: path.stat().st_mtime_ns for path in stamps} == stamps
    assert {path.name for path in (tmp_path / "a").iterdir()} == {*rows, "sweep.json", "logs"}
    # A folder that was removed is written again, from the ledger.
    before = results(tmp_path / "a")
    shutil.rmtree(tmp_path / "a" / name)
    assert run(file, tmp_path / "a")[name]["computed_traces"] == 0
    assert results(tmp_path / "a") == before


@pytest.mark.slow
def test_dry_run_tells_and_does_nothing(
    tmp_path: Path, small_comparison: Callable[[Path], list[str]], capfd: pytest.CaptureFixture[str]
) -> None:
    options = [*small_comparison(tmp_path), "--trainer.logger=false"]
    file = write(tmp_path, options, criterion__evaluate_every={"values": [1, 2]}, seed_everything={"values": [0, 1]})
    sweep.main(
        [str(file), f"--output={tmp_path / 'new' / 'a'}", f"--ledger={tmp_path / 'a-ledger'}", "--dry_run", "true"]
    )
    output = capfd.readouterr().out
    assert not (tmp_path / "new").exists()
    assert output.count("are still to be passed through the network") == 4
    assert not (tmp_path / "a").exists()
    assert not (tmp_path / "a-ledger").exists()
    first = read_sweep(file, 0).runs[0]
    assert f"{first.name}: " in output
    only = write(
        tmp_path, [option for option in first.options if "seed" not in option], seed_everything={"values": [0]}
    )
    rows = run(only, tmp_path / "a")
    before = {path: path.read_bytes() for path in tmp_path.glob("a*/**/*") if path.is_file()}
    # The same holds while it runs.
    with sweep_alone(tmp_path / "a"):
        sweep.main([str(file), f"--output={tmp_path / 'a'}", f"--ledger={tmp_path / 'a-ledger'}", "--dry_run"])
    output = capfd.readouterr().out
    assert {row["computed_traces"] for row in rows.values()} == {4}
    # The traces of a finished run, of one that is evaluated elsewhere, and of two with other random weights.
    assert [output.count(f": {n} of 4 traces to measure") for n in (0, 4)] == [1, 1]
    assert output.count("are still to be passed through the network") == 2
    assert {path: path.read_bytes() for path in tmp_path.glob("a*/**/*") if path.is_file()} == before


def test_dry_run_of_mistakes_ends_as_they_would(file: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    shutil.rmtree(tmp_path / "pictures")
    with pytest.raises(SystemExit) as ended:
        sweep.main([str(file), f"--output={tmp_path / 'a'}", "--dry_run"])
    assert ended.value.code == 1
    assert capfd.readouterr().out.count("data.photos.root: ") == 2


@pytest.mark.slow
def test_workers_measure_the_same_traces(
    tmp_path: Path, small_comparison: Callable[[Path], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    options = [
        option for option in small_comparison(tmp_path) if "photos" not in option and "num_workers" not in option
    ]
    photos = [f"{path},{path.parent.name},{path.parents[1].name}" for path in sorted(tmp_path.glob("*/*/*/*.jpg"))]
    (tmp_path / "photos.csv").write_text("\n".join(["path,label,split", *photos]))
    source = [f"--data.photos.{key}" for key in ("class_path=CsvPhotos", f"init_args.file={tmp_path / 'photos.csv'}")]
    file = write(tmp_path, [*options, *source, "--data.num_workers=1", "--trainer.logger=false"])
    run(file, tmp_path / "a")
    # The processes decode the photos themselves.
    monkeypatch.setenv("HEADSTART_CACHE", str(tmp_path / "empty"))
    run(file, tmp_path / "b", "--workers=2")
    assert traces(tmp_path / "b") == traces(tmp_path / "a") != {}
    assert results(tmp_path / "b") == results(tmp_path / "a")


@pytest.mark.slow
def test_a_run_that_fails_leaves_the_rest_alone_and_is_tried_again(
    tmp_path: Path, small_comparison: Callable[[Path], list[str]], capfd: pytest.CaptureFixture[str]
) -> None:
    options = [*small_comparison(tmp_path), "--trainer.logger=false"]
    missing = tmp_path / "not yet"
    file = write(tmp_path, options, data__photos__root={"values": [str(missing), str(tmp_path / "pictures")]})
    rows = run(file, tmp_path / "a", code=1)
    assert sorted(row["state"] for row in rows.values()) == ["complete", "failed"]
    (failed,) = (row for row in rows.values() if row["state"] == "failed")
    assert failed["error"].startswith("data.photos.root: ")
    assert f"1 run failed on {failed['where']}: data.photos.root: " in capfd.readouterr().out
    shutil.copytree(tmp_path / "pictures", missing)
    rows = run(file, tmp_path / "a")
    assert {row["state"] for row in rows.values()} == {"complete"}
    # Equal photos, wherever they lie: the other run has measured them.
    assert {row["computed_traces"] for row in rows.values()} == {0}
    assert {row["error"] for row in rows.values()} == {""}


def test_a_run_that_is_cut_off_is_incomplete(tmp_path: Path, small_comparison: Callable[[Path], list[str]]) -> None:
    options = [*small_comparison(tmp_path), "--trainer.logger=false"]
    file = write(tmp_path, [*options, "--trainer.max_time=00:00:00:00"], seed_everything={"values": [0]})
    (row,) = run(file, tmp_path / "a", code=75).values()
    assert row["state"] == "incomplete"
    assert row["error"]


@pytest.mark.slow
def test_what_is_edited_is_refused_unless_it_is_to_be_overwritten(
    tmp_path: Path, small_comparison: Callable[[Path], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    options = [*small_comparison(tmp_path), "--trainer.logger=false"]
    file = write(tmp_path, options, seed_everything={"values": [0]})
    run(file, tmp_path / "a")
    monkeypatch.setattr("headstart.modules.provenance._digest_of_module", lambda module: "edited")
    before = results(tmp_path / "a")
    # Here, and on a machine that does not see these results.
    for shared in (lambda request: True, lambda request: False):
        monkeypatch.setattr("headstart.sweeps.measure._shares_disk", shared)
        (row,) = run(file, tmp_path / "a", code=1).values()
        assert "--results.overwrite=true" in row["error"]
        assert row["computed_traces"] == 0
        assert results(tmp_path / "a") == before
    (row,) = run(file, tmp_path / "a", "--overwrite").values()
    assert row["state"] == "complete"
    assert row["computed_traces"] > 0


def test_the_second_of_two_commands_names_the_first(
    file: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with sweep_alone(tmp_path / "a"):
        with pytest.raises(SystemExit, match="1"):
            sweep.main([str(file), f"--output={tmp_path / 'a'}"])
        assert f"process {os.getpid()} on " in capfd.readouterr().err
    assert not (tmp_path / "a").exists()


def sweep_alone(folder: Path) -> Any:
    from headstart.sweeps.sweep import _alone_in

    return _alone_in(folder)


def test_a_registry_of_a_pool_is_refused_where_the_disk_is_not_the_command_s(
    photo_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headstart.sweeps.measure._shares_disk", lambda request: False)
    options = [f"--config={CONFIGS / 'source_training.yaml'}", *small_training(photo_folder), "--trainer.max_epochs=1"]
    pool = {"results.registry": {"value": str(tmp_path / "pool.json")}}
    seeds = {"seed_everything": {"values": [0]}}
    (row,) = run(write(tmp_path, options, **seeds, **pool), tmp_path / "a", code=1).values()
    assert "results.registry: " in row["error"]
    assert not (tmp_path / "pool.json").exists()
    (row,) = run(write(tmp_path, options, **seeds), tmp_path / "b").values()
    assert row["state"] == "complete"
    (folder,) = [path.parent for path in (tmp_path / "b").rglob("registry.json")]
    assert read_registry(folder / "registry.json").weights_file(folder.name) == folder / "weights.safetensors"


@pytest.mark.slow
def test_a_machine_without_the_command_s_disk_sends_its_folder(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(file, tmp_path / "a")
    monkeypatch.setattr("headstart.sweeps.measure._shares_disk", lambda request: False)
    taken: list[Path] = []
    unpack = SweepServer._unpack

    def note(self: SweepServer, folder: Path, archive: bytes) -> None:
        taken.append(folder)
        unpack(self, folder, archive)

    monkeypatch.setattr(SweepServer, "_unpack", note)
    # Leftovers of a killed command are removed and are no runs.
    (tmp_path / "b" / ".incoming" / "killed").mkdir(parents=True)
    run(file, tmp_path / "b")
    assert len(taken) == 2
    assert results(tmp_path / "b") == results(tmp_path / "a")
    assert {path.name for path in (tmp_path / "b").iterdir()} == {path.name for path in (tmp_path / "a").iterdir()}


def test_commands_that_are_printed_hold_the_folder_whole(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "my runs"
    (folder / "a" / "wandb" / "offline-run-1").mkdir(parents=True)
    table = RunsTable(folder, [Run("a", ())])
    table.rows["a"].state = "complete"
    _conclude(table, folder)
    lines = capsys.readouterr().out.splitlines()
    assert shlex.split(lines[-1])[-3:] == ["wandb", "sync", f"{folder}/*/wandb/offline-run-*"]
    # The shell finds them.
    output = subprocess.run(f"echo {lines[-1].partition('sync ')[2]}", shell=True, capture_output=True, text=True)
    assert output.stdout.strip() == str(folder / "a" / "wandb" / "offline-run-1")
    assert shlex.split(lines[-2])[-1] == str(folder)


def test_links_are_not_sent(tmp_path: Path) -> None:
    (tmp_path / "there" / "wandb").mkdir(parents=True)
    (tmp_path / "there" / "wandb" / "core.log").symlink_to("/tmp/core.log")
    (tmp_path / "there" / "results.json").touch()
    with Display("sweep", 1) as display:
        server = SweepServer(tmp_path, tmp_path / "ledger", RunsTable(tmp_path, []), display)
        server.receive(Task("here", "", None), TaskMessage("folder", _pack(tmp_path / "there")))
    assert {path.name for path in (tmp_path / "here").rglob("*")} == {"wandb", "results.json"}


@pytest.mark.slow
def test_another_file_into_the_same_folder_keeps_the_rows(tmp_path: Path, file: Path) -> None:
    first = run(file, tmp_path / "a")
    content = yaml.safe_load(file.read_text())
    file.write_text(yaml.safe_dump({**content, "parameters": {"criterion.evaluate_every": {"values": [2, 3]}}}))
    both = run(file, tmp_path / "a")
    assert set(first) < set(both)
    assert {row["state"] for row in both.values()} == {"complete"}
    assert len(both) == 3


def test_logs_that_cannot_be_written_are_reported_once_and_odd_text_is_logged(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    table = RunsTable(tmp_path, [])
    with Display("sweep", 1) as display, closing(SweepServer(tmp_path, tmp_path / "ledger", table, display)) as server:
        odd, full = (Task(name, "", None) for name in ("odd", "full"))
        server.receive(odd, TaskMessage("printed", "\udc80"))
        assert (tmp_path / "logs" / "odd.log").read_text() == "\\udc80\n"
        # Simulate a full disk.
        (tmp_path / "logs" / "full.log").symlink_to("/dev/full")
        for _ in range(3):
            server.receive(full, TaskMessage("printed", "line"))
    output = capfd.readouterr().err
    assert output.count("cannot be written (No space left on device); the runs go on without") == 1


@pytest.mark.slow
def test_hyperparameters_are_chosen_on_other_data_sets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    file = write(
        tmp_path,
        ["--config=configs/demo.yaml", "--trainer.logger=false", "--data.orderings=5", "--data.max_samples=100"],
        data__photos__noise={"values": [0, 1]},
        model__methods__recursive_least_squares__ridge={"values": [0.001, 100]},
    )
    run(file, tmp_path / "a", "--choose.ridge=recursive_least_squares (*")
    document = json.loads((tmp_path / "a" / "leaderboard" / "leaderboard.json").read_text())
    assert [setting["dataset"] for setting in document["settings"]] == ["drawn_pets, noise 0", "drawn_pets"]
    means = {
        (run["protocol"]["dataset"], method["provenance"]["hyperparameters"]["ridge"]): method["restricted_mean"]
        for run in results(tmp_path / "a").values()
        for name, method in run["methods"].items()
        if name == "recursive_least_squares"
    }
    assert len(means) == 4
    for setting, other in zip(document["settings"], reversed(document["settings"]), strict=True):
        [row] = [each for each in setting["methods"] if each["name"] == "ridge"]
        best = min((0.001, 100), key=lambda ridge: means[other["dataset"], ridge])
        assert row["restricted_mean"] == means[setting["dataset"], best]
        assert row["tuned"] == f"recursive_least_squares (ridge {float(best)}), chosen on other data sets"


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        ([], 2, "file: it is required"),
        (["nowhere.yaml"], 1, "file: 'nowhere.yaml' cannot be read (No such file or directory)"),
        (["FILE", "--worker=2"], 2, "worker: there is no such option (closest: workers)"),
        (["FILE", "--workers=0"], 2, "workers"),
        (["FILE", "--workers=2", "--ray=auto"], 1, "leave out --workers or --ray"),
        (["FILE", "--runtime_env=nowhere.yaml"], 1, "runtime_env: 'nowhere.yaml' cannot be read"),
        (["FILE", "--output=FILE"], 1, "output: "),
        (["FILE", "--ray=auto", "--gpus=1.5"], 1, "gpus: 1.5 is neither"),
    ],
)
def test_mistakes_are_one_line(
    options: list[str], code: int, words: str, file: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        sweep.main([option.replace("FILE", str(file)) for option in options])
    assert ended.value.code == code
    output = capfd.readouterr().err
    assert words in output
    assert output.count("\n") == 1


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    try:
        yield cluster
    finally:
        cluster.shutdown()


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
        while lines[-1] and "begun on" not in lines[-1]:
            lines.append(process.stderr.readline())
        cluster.remove_node(nodes[0], allow_graceful=False)
        lines += process.stderr.readlines()
    assert process.returncode == 0, lines
    assert any("it is begun again" in line for line in lines)
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

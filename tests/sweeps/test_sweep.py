"""A sweep measures what the ledger lacks."""

import json
import os
import shlex
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from headstart import sweep
from headstart.sweeps.server import RunsTable
from headstart.sweeps.sweep import _conclude
from headstart.sweeps.sweep_file import Run, read_sweep
from headstart.tests.material.sweeps import results, run, traces, write

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
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
    assert output.count("still have to pass through the network") == 4
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
    assert output.count("still have to pass through the network") == 2
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
def test_an_edited_sweep_is_refused_unless_it_overwrites(
    tmp_path: Path, small_comparison: Callable[[Path], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    options = [*small_comparison(tmp_path), "--trainer.logger=false"]
    file = write(tmp_path, options, seed_everything={"values": [0]})
    run(file, tmp_path / "a")
    monkeypatch.setattr("headstart.modules.provenance.suite_digest", lambda: "edited")
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


@pytest.mark.slow
def test_another_file_into_the_same_folder_keeps_the_rows(tmp_path: Path, file: Path) -> None:
    first = run(file, tmp_path / "a")
    content = yaml.safe_load(file.read_text())
    file.write_text(yaml.safe_dump({**content, "parameters": {"criterion.evaluate_every": {"values": [2, 3]}}}))
    both = run(file, tmp_path / "a")
    assert set(first) < set(both)
    assert {row["state"] for row in both.values()} == {"complete"}
    assert len(both) == 3


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
        (run["protocol"]["dataset"], method["key"]["hyperparameters"]["ridge"]): method["restricted_mean"]
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
        (["FILE", "--ledger=FILE/ledger"], 1, "ledger: "),
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

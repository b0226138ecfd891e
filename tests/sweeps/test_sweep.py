"""A sweep measures what the ledger lacks, and tells of every run how it ended."""

import shlex
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from headstart import sweep, train
from headstart.output.files import alone_in
from headstart.sweeps.sweep_file import read_sweep
from headstart.tests.material.sweeps import results, run, write

ROOT = Path(__file__).parents[2]


def test_runs_are_those_of_train_py_and_nothing_is_measured_twice(
    file: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = run(file, tmp_path / "a")
    assert [(row["state"], row["computed_traces"] > 0) for row in rows.values()] == [("complete", True)] * 2
    assert set(results(tmp_path / "a")) == set(rows)
    assert "2 runs: 2 complete" in capfd.readouterr().out
    # The same options have the same result.
    name, row = next(iter(rows.items()))
    monkeypatch.setenv("HEADSTART_LEDGER", str(tmp_path / "other"))
    train.main([*row["options"], f"--trainer.default_root_dir={tmp_path / 'alone' / name}"])
    assert results(tmp_path / "alone")[name] == results(tmp_path / "a")[name]

    # A folder that was removed is written again, from the ledger.
    before = results(tmp_path / "a")
    shutil.rmtree(tmp_path / "a" / name)
    parameters = {"criterion.evaluate_every": {"values": [1, 2, 3]}}
    file.write_text(yaml.safe_dump({**yaml.safe_load(file.read_text()), "parameters": parameters}))
    again = run(file, tmp_path / "a")
    assert [again[each]["computed_traces"] for each in rows] == [0, 0]
    assert "all its traces were in the ledger" in capfd.readouterr().err
    assert {each: results(tmp_path / "a")[each] for each in before} == before
    assert {path.name for path in (tmp_path / "a").iterdir()} == {*again, "sweep.json", "logs"}
    assert all("Complete" in (tmp_path / "a" / "logs" / f"{each}.log").read_text() for each in again)


def test_dry_run_tells_the_commands_and_does_nothing(
    file: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    sweep.main([str(file), "--dry_run", "true", f"--output={tmp_path / 'a'}"])
    told = capfd.readouterr().out.splitlines()
    runs = read_sweep(file).runs
    assert told[::2] == [run.name for run in runs]
    assert [shlex.split(line)[2:] for line in told[1::2]] == [list(run.options) for run in runs]
    assert not list(tmp_path.glob("a*"))


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
    assert "1 run failed: data.photos.root: " in capfd.readouterr().out
    shutil.copytree(tmp_path / "pictures", missing)
    rows = run(file, tmp_path / "a")
    # Equal photos, wherever they lie: the other run has measured them.
    assert {(row["state"], row["error"], row["computed_traces"]) for row in rows.values()} == {("complete", "", 0)}

    cut_off = write(tmp_path, [*options, "--trainer.max_time=00:00:00:00"], seed_everything={"values": [0]})
    (row,) = run(cut_off, tmp_path / "b", code=75).values()
    assert row["state"] == "incomplete"
    assert row["error"]


def test_mistakes_are_one_line(file: Path, capfd: pytest.CaptureFixture[str]) -> None:
    mistakes = {
        (): "file: it is required",
        ("nowhere.yaml",): "file: 'nowhere.yaml' cannot be read (No such file or directory)",
        ("FILE", "--worker=2"): "worker: there is no such option (closest: workers)",
        ("FILE", "--workers=2", "--ray=auto"): "leave out --workers or --ray",
        ("FILE", "--ledger=FILE/ledger"): "ledger: ",
        ("FILE", "--ray=auto", "--gpus=1.5"): "gpus: 1.5 is neither",
        ("FILE", "--trainer.logger=false"): "trainer.logger: there is no such option",
    }
    with alone_in("output", file.parent / "held"):
        mistakes["FILE", f"--output={file.parent / 'held'}"] = "output: another process writes to"
        for options, words in mistakes.items():
            with pytest.raises(SystemExit) as ended:
                sweep.main([option.replace("FILE", str(file)) for option in options])
            output = capfd.readouterr().err
            assert words in output
            assert output.count("\n") == 1
            assert ended.value.code == (2 if not options or "option" in words else 1), options


@pytest.mark.slow
def test_results_of_other_code_are_replaced_on_request_alone(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(file, tmp_path / "a")
    monkeypatch.setattr("headstart.modules.provenance.suite_digest", lambda: "edited")
    before = results(tmp_path / "a")
    for row in run(file, tmp_path / "a", code=1).values():
        assert "--results.overwrite=true" in row["error"]
        assert row["computed_traces"] == 0
    assert results(tmp_path / "a") == before
    for row in run(file, tmp_path / "a", "--overwrite").values():
        assert row["state"] == "complete"
        assert row["computed_traces"] > 0

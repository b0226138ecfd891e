"""A finished comparison is known by its command as long as nothing that it was made from has changed."""

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from headstart import datamodules
from headstart.cli import finished_runs
from headstart.cli.comparison import ComparisonCLI, _weight_files
from headstart.cli.finished_runs import FinishedRun, RepeatedCommand
from headstart.modules.networks.spec import NetworkSpec
from headstart.store.ledger import Ledger
from headstart.store.ledger_file import FILE, Trace, TraceKey
from headstart.tests.material.root import ROOT

OPTIONS = ["--config=mine.yaml", "--data.seed=1"]
UNNEEDED = {"torch", "lightning", "matplotlib", "wandb", "torchmetrics"}


class Finished(NamedTuple):
    """A finished run, and the folder that it lies in with all that it was made from."""

    folder: Path
    run: FinishedRun

    def is_known(self, options: list[str] = OPTIONS) -> bool:
        return RepeatedCommand(options)._find() is not None


@pytest.fixture
def finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Finished:
    """Store a run that was made from code, a configuration, packages, a photo and weights; they count as settled."""
    for name, text in {
        "mine.yaml": "data: part.yaml\nmodel: demo.yaml\n",
        "part.yaml": "registry: registry.json\n",
        "registry.json": '[{"weights": "a.pth"}]',
        "a.pth": "weights",
        "photos/cats/1.jpg": "photo",
        "code/metric.py": "1",
        "site-packages/one.py": "",
        "run/curves.npz": "curves",
        "run/results.json": "{}",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(finished_runs, "SETTLED_NANOSECONDS", -(10**12))
    monkeypatch.setattr(finished_runs, "_code", lambda: [tmp_path / "code"])
    monkeypatch.setattr(finished_runs, "own_loaded_modules", list)
    monkeypatch.syspath_prepend(tmp_path / "site-packages")
    # pytest changes this one between a fixture and a test.
    ignored = re.compile(f"{finished_runs.TERMINAL_VARIABLES.pattern}|PYTEST_CURRENT_TEST")
    monkeypatch.setattr(finished_runs, "TERMINAL_VARIABLES", ignored)

    with Ledger(tmp_path / "ledger") as ledger:
        stream, method = ledger.record({"a": 1}), ledger.record({"b": 1})
        ledger.write({TraceKey(stream, method, k): Trace(np.array([3, 4])) for k in range(2)})
    written = [str(tmp_path / "run" / name) for name in ("curves.npz", "results.json")]
    run = FinishedRun(written, [str(tmp_path / "photos")], str(tmp_path / "ledger"), stream, [method], [0, 1], [])
    RepeatedCommand(OPTIONS).remember(run, time.time_ns())
    finished = Finished(tmp_path, run)
    assert finished.is_known()
    return finished


def test_an_unchanged_run_is_known(finished: Finished, monkeypatch: pytest.MonkeyPatch) -> None:
    assert RepeatedCommand(OPTIONS)._find() == finished.run
    # Neither a terminal nor what reading leaves behind matters.
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setenv("COLUMNS", "40")
    (finished.folder / "code" / "__pycache__").mkdir()
    (finished.folder / "other.txt").touch()
    assert finished.is_known()


def replace_photo(folder: Path) -> None:
    """Change a photo, and leave its size and time as they were."""
    photo = folder / "photos/cats/1.jpg"
    before = photo.stat()
    photo.write_text("other")
    os.utime(photo, ns=(before.st_atime_ns, before.st_mtime_ns))


CHANGES: dict[str, Callable[[Path], object]] = {
    "code": lambda folder: (folder / "code/metric.py").write_text("2"),
    "new code": lambda folder: (folder / "code/new.py").touch(),
    "configuration": lambda folder: (folder / "mine.yaml").write_text("data: part.yaml\nmodel: other.yaml\n"),
    "inner configuration": lambda folder: (folder / "part.yaml").write_text("registry: others.json\n"),
    "registry": lambda folder: (folder / "registry.json").write_text("[]"),
    "weights": lambda folder: (folder / "a.pth").write_text("others"),
    "file in place of a shipped one": lambda folder: (folder / "demo.yaml").touch(),
    "package": lambda folder: (folder / "site-packages/two").mkdir(),
    "photo": replace_photo,
    "new photo": lambda folder: (folder / "photos/cats/2.jpg").touch(),
    "lost photo": lambda folder: (folder / "photos/cats/1.jpg").unlink(),
    "lost results": lambda folder: (folder / "run/results.json").unlink(),
    "edited results": lambda folder: (folder / "run/results.json").write_text('{"a": 1}'),
    "lost curves": lambda folder: (folder / "run/curves.npz").unlink(),
    "lost ledger": lambda folder: (folder / "ledger" / FILE).unlink(),
    "damaged ledger": lambda folder: (folder / "ledger" / FILE).write_bytes(b"?" * 5000),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_changed_run_is_not_known(finished: Finished, change: Callable[[Path], object]) -> None:
    change(finished.folder)
    assert not finished.is_known()


@pytest.mark.parametrize("name", ["HEADSTART_SHARED", "CUDA_VISIBLE_DEVICES", "OMP_NUM_THREADS", "ANY_OTHER"])
def test_another_environment_makes_another_run(finished: Finished, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "3")
    assert not finished.is_known()


def test_other_options_folders_and_processes_make_other_runs(
    finished: Finished, monkeypatch: pytest.MonkeyPatch
) -> None:
    for options in ([*OPTIONS, "--results.overwrite=true"], OPTIONS[::-1], OPTIONS[:1]):
        assert not finished.is_known(options)
    with monkeypatch.context() as patch:
        patch.setattr(finished_runs, "device_kind", lambda _: "another")
        assert not finished.is_known()
    # Code in this process may have been replaced.
    assert "torch" in sys.modules
    assert not RepeatedCommand(OPTIONS).print_results()
    monkeypatch.chdir(finished.folder / "photos")
    assert not finished.is_known()


def test_a_missing_trace_makes_the_run_unknown(finished: Finished) -> None:
    for key in (TraceKey(finished.run.stream, finished.run.methods[0], 1), TraceKey("0", "0", 0)):
        with Ledger(Path(finished.run.ledger)) as ledger:
            ledger.write({key: Trace(np.array([3]), open=True)})
        assert not finished.is_known()


def test_a_run_is_not_stored_whose_origin_is_unknown(finished: Finished, monkeypatch: pytest.MonkeyPatch) -> None:
    def stored(run: FinishedRun | None, read_from: int) -> bool:
        command = RepeatedCommand(OPTIONS)
        command.file.unlink(missing_ok=True)
        command.remember(run, read_from)
        return command.file.exists()

    now = time.time_ns()
    assert stored(finished.run, now)
    assert not stored(None, now)
    with monkeypatch.context() as patch:
        # Code of the user's own may depend on anything.
        patch.setattr(finished_runs, "own_loaded_modules", lambda: ["mine"])
        assert not stored(finished.run, now)
    monkeypatch.setattr(finished_runs, "SETTLED_NANOSECONDS", 2 * 10**9)
    assert not stored(finished.run, now)
    old = time.time() - 100
    for path in (finished.folder, *finished.folder.rglob("*")):
        os.utime(path, (old, old))
    # The time of the change of a state cannot be set back.
    assert not stored(finished.run, time.time_ns())


def test_results_are_unknown_to_a_cache_that_cannot_be_written(
    finished: Finished, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADSTART_CACHE", str(finished.folder / "a.pth"))
    RepeatedCommand(OPTIONS).remember(finished.run, time.time_ns())
    assert not finished.is_known()


def test_a_circle_of_configurations_ends(finished: Finished) -> None:
    (finished.folder / "part.yaml").write_text("a: &a [*a, mine.yaml, part.yaml]")
    (finished.folder / "mine.yaml").write_text("data: part.yaml")
    assert not finished.is_known()


@pytest.mark.slow
def test_a_comparison_says_what_it_was_made_from(small_comparison: Callable[[Path], list[str]], tmp_path: Path) -> None:
    options = [*small_comparison(tmp_path), f"--trainer.default_root_dir={tmp_path / 'run'}"]
    command = ComparisonCLI(options)
    assert command.run()["complete"]
    run = command.finished()
    assert run is not None
    assert [Path(path).name for path in run.written][-1] == "results.json"
    assert run.inputs == [str(tmp_path / "pictures")]
    assert run.has_traces()
    assert not replace(run, orderings=[0, 7]).has_traces()

    for name in ("overwrite", "recompute"):
        setattr(command.results, name, True)
        assert command.finished() is None
        setattr(command.results, name, False)
    command.results.callbacks = {"theirs.Callback": {}}
    assert command.finished() is None
    command.results.callbacks = {}

    class Theirs(datamodules.ClassFolders):
        __module__ = "theirs"

    assert command.finished() is not None
    command.datamodule.photos = Theirs(str(tmp_path / "pictures"))
    assert command.finished() is None


def test_sources_name_what_they_are_made_from(photo_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("path,label\na.jpg,0\nb.jpg,1\n")
    for name in ("a.jpg", "b.jpg"):
        (tmp_path / name).touch()
    folders = datamodules.ClassFolders(str(photo_folder))
    assert folders.files() == [photo_folder]
    assert datamodules.ClassSubset(folders, ["dark", "light"]).files() == [photo_folder]
    assert datamodules.CsvPhotos(str(tmp_path / "a.csv")).files() == [tmp_path / n for n in ("a.csv", "a.jpg", "b.jpg")]
    assert datamodules.CatsAndDogs(str(photo_folder)).files() == [photo_folder]
    assert datamodules.DrawnPets().files() == []
    assert datamodules.HuggingFaceDataset("owner/name").files() is None


@pytest.mark.parametrize(
    ("spec", "names"),
    [
        (NetworkSpec("resnet18", "torchvision"), []),
        (NetworkSpec("resnet18", "timm", weights=Path("a.pth")), ["a.pth"]),
        (NetworkSpec("resnet18", "torchvision", weights="DEFAULT"), ["checkpoints"]),
        # They may have changed on the hub, or be made by code of the user's own.
        (NetworkSpec("resnet18", "timm", weights="a1_in1k"), None),
        (NetworkSpec("mine", "custom"), None),
    ],
)
def test_networks_name_the_files_of_their_weights(spec: NetworkSpec, names: list[str] | None) -> None:
    files = _weight_files(spec)
    assert (files if files is None else [path.name for path in files]) == names


@pytest.mark.slow
def test_a_repeated_command_prints_the_same_table_without_torch(
    small_comparison: Callable[[Path], list[str]], tmp_path: Path
) -> None:
    options = [*small_comparison(tmp_path), f"--trainer.default_root_dir={tmp_path / 'run'}"]
    command = [sys.executable, "-X", "importtime", str(ROOT / "train.py"), *options]

    def run() -> tuple[str, set[str]]:
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
        imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if "|" in line}
        return done.stdout, imported

    first, imported = run()
    assert imported >= {"torch", "lightning", "matplotlib"}
    results = (tmp_path / "run" / "results.json").read_bytes()
    second, imported = run()
    assert not imported & UNNEEDED
    assert (tmp_path / "run" / "results.json").read_bytes() == results

    table, _, files = first.partition("Complete: ")
    repeated, _, same_files = second.partition("Complete: ")
    assert repeated == table
    assert same_files.splitlines()[1:] == files.splitlines()[1:]
    assert json.loads(results)["warnings"]
    assert "WARNING" in repeated

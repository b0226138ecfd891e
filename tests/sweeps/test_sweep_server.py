"""The command of a sweep receives what its runs send: lines, folders and registries."""

import errno
import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from headstart.contract.documents import read_registry
from headstart.engines.display import Display
from headstart.engines.task import Task, TaskMessage
from headstart.output.errors import UserError
from headstart.store.ledger_file import LedgerError
from headstart.sweeps.measure import _call, _pack
from headstart.sweeps.server import RunsTable, SweepServer
from headstart.sweeps.sweep_file import Run
from headstart.tests.material.sweeps import results, run, write
from headstart.tests.material.training import CONFIGS, small_training

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
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


def test_links_are_not_sent(tmp_path: Path) -> None:
    (tmp_path / "there" / "wandb").mkdir(parents=True)
    (tmp_path / "there" / "wandb" / "core.log").symlink_to("/tmp/core.log")
    (tmp_path / "there" / "results.json").touch()
    with Display("sweep", 1) as display:
        server = SweepServer(tmp_path, tmp_path / "ledger", RunsTable(tmp_path, []), display)
        server.receive(Task("here", "", None), TaskMessage("folder", _pack(tmp_path / "there")))
    assert {path.name for path in (tmp_path / "here").rglob("*")} == {"wandb", "results.json"}


def test_logs_that_cannot_be_written_are_reported_once_and_odd_text_is_logged(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    table = RunsTable(tmp_path, [])
    with serving(tmp_path, table) as server:
        odd, full = (Task(name, "", None) for name in ("odd", "full"))
        server.receive(odd, TaskMessage("printed", "\udc80"))
        assert (tmp_path / "logs" / "odd.log").read_text() == "\\udc80\n"
        # Simulate a full disk.
        (tmp_path / "logs" / "full.log").symlink_to("/dev/full")
        for _ in range(3):
            server.receive(full, TaskMessage("printed", "line"))
    output = capfd.readouterr().err
    assert output.count("cannot be written (No space left on device); the runs continue without") == 1


@contextmanager
def serving(folder: Path, table: RunsTable) -> Iterator[SweepServer]:
    with Display("sweep", 1) as display, closing(SweepServer(folder, folder / "ledger", table, display)) as server:
        yield server


def test_a_table_that_cannot_be_written_ends_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("headstart.output.files.write_together", fail)
    table = RunsTable(tmp_path, [Run("a", ())])
    message = r"output: '.*' cannot be written \(No space left on device\)"
    with serving(tmp_path, table) as server, pytest.raises(UserError, match=message):
        server.receive(Task("a", "", None), TaskMessage("started", "host"))


def test_the_table_tells_which_runs_are_silent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("headstart.engines.display.time.monotonic", lambda: now[0])
    table = RunsTable(tmp_path, [Run("a", ()), Run("b", ())])
    with serving(tmp_path, table) as server:
        server.receive(Task("a", "", None), TaskMessage("started", "host"))
        for minutes, words in ((4, ""), (7, "silent for 7 minutes")):
            now[0] = 60.0 * minutes
            server.waited()
            rows = json.loads((tmp_path / "sweep.json").read_text())["runs"]
            assert [row["error"] for row in rows] == [words, ""]
        server.receive(Task("a", "", None), TaskMessage("printed", "line"))
        server.waited()
    assert json.loads((tmp_path / "sweep.json").read_text())["runs"][0]["error"] == ""


def test_errors_of_the_ledger_are_raised_in_the_run(tmp_path: Path) -> None:
    (tmp_path / "ledger").touch()
    table = RunsTable(tmp_path, [Run("a", ())])
    with serving(tmp_path, table) as server, pytest.raises(LedgerError, match="cannot be used"):
        _call(lambda message: server.receive(Task("a", "", None), message), "read", set())


def test_a_table_of_another_schema_is_refused(tmp_path: Path) -> None:
    (tmp_path / "sweep.json").write_text('{"schema": 2, "runs": []}')
    with pytest.raises(UserError, match=r"has schema 2, but this version .* reads schema 1\); choose another"):
        RunsTable(tmp_path, [])

"""`headstart cache`: what is shown is what lies there, and what is removed is gone."""

import os
import re
import time
from pathlib import Path

import numpy as np
import pytest
from filelock import FileLock

import headstart
from headstart.__main__ import main
from headstart.cli.cache import Entry, cache
from headstart.datamodules import DrawnPets
from headstart.store.cache import cache_folder
from headstart.store.ledger import Ledger
from headstart.store.ledger_file import Trace, TraceKey

DAY = 24 * 3600


@pytest.fixture
def stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Store features of two networks, a download and a ledger; gives the folder of the cache."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HEADSTART_LEDGER")
    photos = DrawnPets(train_size=6, validation_size=2).train()
    headstart.embed(photos, {"weights": "embedded"})
    headstart.embed(photos, {"weights": "random", "preprocessing": {"resize": 32, "crop": 32}})
    folder = cache_folder()
    (folder / "datasets" / "mine").mkdir(parents=True)
    (folder / "datasets" / "mine" / "photo.jpg").write_bytes(bytes(1000))
    with Ledger(Path("runs") / "ledger") as ledger:
        ledger.write({TraceKey("stream", "method", number): Trace(np.arange(3)) for number in range(4)})
    return folder


def by_kind(entries: list[Entry]) -> dict[str, list[Entry]]:
    return {kind: [entry for entry in entries if entry.kind == kind] for kind in ("features", "downloads", "ledgers")}


def size_of(path: Path) -> int:
    return sum(each.lstat().st_size for each in (path, *path.rglob("*")))


def test_listing_shows_kinds_and_sizes(stored: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shown = by_kind(cache())
    assert [entry.content.partition(" (")[0] for entry in shown["features"]] == [
        "6 rows of features of mobilenet_v2"
    ] * 2
    assert not any(re.search("[0-9a-f]{13}", entry.content) for entry in shown["features"])
    assert {entry.path for entry in shown["features"]} == set((stored / "features").iterdir())
    assert [(entry.name, entry.size) for entry in shown["downloads"]] == [("mine", size_of(stored / "datasets/mine"))]
    assert [(entry.name, entry.content) for entry in shown["ledgers"]] == [("runs/ledger", "4 traces")]
    text = capsys.readouterr().out
    assert all(entry.name in text for entries in shown.values() for entry in entries)
    assert str(stored / "features") in text.replace("\n", "").replace(" ", "")


def test_removed_by_name_and_by_kind(stored: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = by_kind(cache())["features"]
    main(["cache", "--remove", first.name])
    assert not first.path.exists()
    assert second.path.exists()
    main(["cache", "--remove", "features", "downloads"])
    assert not second.path.exists()
    assert not (stored / "datasets" / "mine").exists()
    assert Path("runs/ledger").exists()
    assert "freed" in capsys.readouterr().out
    Path("runs/ledger/results.json").touch()
    cache(remove="runs/ledger")
    # Only files of the ledger are removed.
    assert [path.name for path in Path("runs/ledger").iterdir()] == ["results.json"]
    with Ledger(Path("runs/other")) as ledger:
        ledger.write({TraceKey("stream", "method", 0): Trace(np.arange(3))})
    cache(remove="ledgers")
    assert not Path("runs/other").exists()
    # A removal that was killed is finished by the next.
    (stored / "datasets" / ".removed-mine" / "inside").mkdir(parents=True)
    (stored / "datasets" / "mine").mkdir()
    assert [entry.name for entry in cache(remove="mine")] == ["mine"]
    assert list((stored / "datasets").iterdir()) == []


def test_removed_by_age(stored: Path) -> None:
    old, young = by_kind(cache())["features"]
    for path in (old.path, *old.path.rglob("*")):
        os.utime(path, (time.time() - 40 * DAY,) * 2)
    assert [entry.path for entry in cache(older_than=30)] == [old.path]
    assert [entry.path for entry in cache(remove=["features"], older_than=30)] == [old.path]
    assert young.path.exists()
    assert not old.path.exists()


def test_entries_in_use_stay(stored: Path) -> None:
    table = by_kind(cache())["features"][0]
    with (
        FileLock(table.path / "part.lock"),
        pytest.raises(ValueError, match=f"remove: a process is using '{table.name}'; wait"),
    ):
        cache(remove=["features"])
    assert len(list((stored / "features").iterdir())) == 2
    with FileLock(stored / "datasets" / ".mine.lock"), pytest.raises(ValueError, match="a process is using 'mine'"):
        cache(remove="mine")
    assert not {entry.name for entry in cache()} & {".mine.lock"}


def test_damaged_entries_can_be_removed(stored: Path) -> None:
    table = by_kind(cache())["features"][0]
    (part,) = table.path.glob("*.safetensors")
    for content in ("", '{"format": 1}', "{"):
        part.write_text(content)
        (table.path / "table.json").write_text(content)
        assert "0 rows of an unknown kind" in {entry.content for entry in by_kind(cache())["features"]}
    assert [entry.path for entry in cache(remove=table.name)] == [table.path]

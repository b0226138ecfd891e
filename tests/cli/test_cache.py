"""`headstart cache`: what is shown is what lies there, and what is removed is gone."""

from pathlib import Path

import pytest
from filelock import FileLock

import headstart
from headstart.__main__ import main
from headstart.cli.cache import Entry, cache
from headstart.datamodules import DrawnPets
from headstart.store.cache import cache_folder


@pytest.fixture
def stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Store features of two networks and a download; gives the folder of the cache."""
    monkeypatch.chdir(tmp_path)
    photos = DrawnPets(train_size=6, validation_size=2).train()
    headstart.embed(photos, {"weights": "embedded"})
    headstart.embed(photos, {"weights": "random", "preprocessing": {"resize": 32, "crop": 32}})
    folder = cache_folder()
    (folder / "datasets" / "mine").mkdir(parents=True)
    (folder / "datasets" / "mine" / "photo.jpg").write_bytes(bytes(1000))
    return folder


def features() -> list[Entry]:
    return [entry for entry in cache() if entry.kind == "features"]


def size_of(path: Path) -> int:
    return sum(each.lstat().st_size for each in (path, *path.rglob("*")))


def test_entries_in_use_stay(stored: Path) -> None:
    table = features()[0]
    with (
        FileLock(table.path / "part.lock"),
        pytest.raises(ValueError, match=f"remove: a process is using '{table.name}'; wait"),
    ):
        cache(remove=["features"])
    assert len(list((stored / "features").iterdir())) == 2
    with FileLock(stored / "datasets" / ".mine.lock"), pytest.raises(ValueError, match="a process is using 'mine'"):
        cache(remove="mine")
    assert not {entry.name for entry in cache()} & {".mine.lock"}


def test_listing_shows_kinds_and_sizes(stored: Path, capsys: pytest.CaptureFixture[str]) -> None:
    *tables, download = cache()
    assert [entry.content.partition(" (")[0] for entry in tables] == ["6 rows of features of mobilenet_v2"] * 2
    assert {entry.path for entry in tables} == set((stored / "features").iterdir())
    assert (download.kind, download.name, download.size) == ("downloads", "mine", size_of(stored / "datasets/mine"))
    text = capsys.readouterr().out
    assert all(entry.name in text for entry in (*tables, download))
    assert str(stored / "features") in text.replace("\n", "").replace(" ", "")


def test_removed_by_name_and_by_kind(stored: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = features()
    # It may be damaged, and an earlier removal may have been killed.
    for path in first.path.iterdir():
        path.write_text("{")
    assert "0 rows of an unknown kind" in {entry.content for entry in features()}
    (stored / "datasets" / ".removed-mine" / "inside").mkdir(parents=True)
    main(["cache", "--remove", first.name])
    assert not first.path.exists()
    assert second.path.exists()
    main(["cache", "--remove", "features", "downloads"])
    assert not second.path.exists()
    assert list((stored / "datasets").iterdir()) == []
    assert "freed" in capsys.readouterr().out

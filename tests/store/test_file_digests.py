"""Files are read again only where they have changed."""

import hashlib
import os
import time
from functools import partial
from pathlib import Path

import pytest

from headstart.output.errors import UserError
from headstart.output.files import digest_file
from headstart.store import file_digests
from headstart.store.file_digests import FILE, digest_files

OLD = time.time_ns() - 10**12


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    paths = [tmp_path / name for name in ("a.png", "b\udcff.png", "c d.png")]
    for path in paths:
        write(path, path.name)
    return list(map(str, paths))


def write(path: Path, text: str) -> None:
    path.write_text(text, errors="surrogateescape")
    os.utime(path, ns=(OLD, OLD))


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of files that are read; what was written just now counts as settled."""
    monkeypatch.setattr(file_digests, "SETTLED_NANOSECONDS", -(10**12))
    names: list[str] = []

    def counted(path: str) -> str:
        names.append(Path(path).name)
        return digest_file(path)

    monkeypatch.setattr(file_digests, "digest_file", counted)
    return names


def expected(files: list[str]) -> list[str]:
    return [hashlib.sha256(Path(path).read_bytes()).hexdigest() for path in files]


def test_unchanged_files_are_read_once(files: list[str], read: list[str], tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    assert digest_files(files, cache) == expected(files)
    assert sorted(read) == sorted(Path(path).name for path in files)
    read.clear()
    assert digest_files([*files[::-1], files[0]], cache) == expected([*files[::-1], files[0]])
    assert read == []


def test_changed_files_are_read_again(files: list[str], read: list[str], tmp_path: Path) -> None:
    path = Path(files[0])

    def replace() -> None:
        """Replace the file by another one of the same size and time."""
        write(tmp_path / "new", "x.png")
        (tmp_path / "new").replace(path)

    # The second writes other bytes of the same number, and sets the time back.
    for change in (replace, partial(write, path, "y.png"), partial(write, path, "longer than it was")):
        digest_files(files, tmp_path)
        read.clear()
        change()
        assert digest_files(files, tmp_path) == expected(files)
        assert read == [path.name]


def test_files_that_may_change_within_the_resolution_of_their_time_are_not_trusted(
    files: list[str], read: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_digests, "SETTLED_NANOSECONDS", 2 * 10**9)
    now = time.time_ns()
    os.utime(files[0], ns=(now + 10**18, now + 10**18))
    # Just written, and 3 seconds later; the time of the first is in the future.
    for seconds, count in ((0, 3), (3, 3), (3, 1), (4, 1)):
        monkeypatch.setattr(time, "time_ns", lambda later=seconds: now + later * 10**9)
        read.clear()
        assert digest_files(files, tmp_path) == expected(files)
        assert len(read) == count


@pytest.mark.parametrize("damage", ["garbage", "folder", "no cache"])
def test_without_a_memory_files_are_read(files: list[str], read: list[str], damage: str, tmp_path: Path) -> None:
    if damage == "folder":
        (tmp_path / FILE).mkdir()
    elif damage == "garbage":
        (tmp_path / FILE).write_text("no database, but long enough to be looked at as one " * 99)
    cache = tmp_path / "a.png" if damage == "no cache" else tmp_path
    for _ in range(2):
        assert digest_files(files, cache) == expected(files)
    assert len(read) == 2 * len(files)


def test_many_files_are_stored_span_by_span(tmp_path: Path, read: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_digests, "SAVED_TOGETHER", 100)
    monkeypatch.setattr(file_digests, "MAX_TASK_FILES", 7)
    many = [str(tmp_path / f"{number}") for number in range(250)]
    for path in many:
        write(Path(path), path)
    with pytest.raises(UserError, match=r"nothing\.png cannot be read"):
        digest_files([*many[:170], str(tmp_path / "nothing.png")], tmp_path)
    read.clear()
    assert digest_files(many[::-1], tmp_path) == expected(many[::-1])
    assert len(read) == 150


def test_a_file_that_changes_while_it_is_read_is_not_stored(
    files: list[str], read: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def changing(path: str) -> str:
        digest = digest_file(path)
        write(Path(path), "another.png")
        return digest

    with monkeypatch.context() as patched:
        patched.setattr(file_digests, "digest_file", changing)
        assert digest_files(files, tmp_path) != expected(files)
    assert digest_files(files, tmp_path) == expected(files)
    assert len(read) == len(files)

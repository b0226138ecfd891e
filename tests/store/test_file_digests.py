"""Files are read again only where they have changed."""

import hashlib
import os
import time
from collections.abc import Callable
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


def replaced(path: Path) -> None:
    """Replace the file by another one of the same size and time."""
    write(path.with_name("new"), "x.png")
    path.with_name("new").replace(path)


def rewritten(path: Path) -> None:
    """Write other bytes of the same number, and set the time back."""
    write(path, "y.png")


@pytest.mark.parametrize("change", [replaced, rewritten, lambda path: write(path, "longer than it was")])
def test_changed_files_are_read_again(
    change: Callable[[Path], None], files: list[str], read: list[str], tmp_path: Path
) -> None:
    digest_files(files, tmp_path)
    read.clear()
    change(Path(files[0]))
    assert digest_files(files, tmp_path) == expected(files)
    assert read == [Path(files[0]).name]


def test_files_that_were_just_written_are_not_trusted(
    files: list[str], read: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_digests, "SETTLED_NANOSECONDS", 10**12)
    for _ in range(2):
        digest_files(files, tmp_path)
    assert len(read) == 2 * len(files)


@pytest.mark.parametrize("damage", ["garbage", "folder", "no cache"])
def test_without_a_memory_files_are_read(files: list[str], read: list[str], damage: str, tmp_path: Path) -> None:
    memory = tmp_path / FILE
    if damage == "folder":
        memory.mkdir()
    elif damage == "garbage":
        memory.write_text("no database, but long enough to be looked at as one " * 99)
    cache = tmp_path / "a.png" if damage == "no cache" else tmp_path
    for _ in range(2):
        assert digest_files(files, cache) == expected(files)
    assert len(read) == 2 * len(files)


def test_a_file_that_cannot_be_read_is_named(files: list[str], tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"nothing\.png cannot be read"):
        digest_files([*files, str(tmp_path / "nothing.png")], tmp_path)
    assert digest_files([], tmp_path) == []


@pytest.mark.parametrize("ahead", [10**9, 10**18])
def test_files_of_the_future_are_read_twice(
    ahead: int, files: list[str], read: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_digests, "SETTLED_NANOSECONDS", 2 * 10**9)
    now = time.time_ns()
    os.utime(files[0], ns=(now + ahead, now + ahead))
    counts = []
    # The clock of the process stands within the two seconds, goes on, and is set back.
    for seconds in (0, 1, 3, 4, 5, 0):
        monkeypatch.setattr(time, "time_ns", lambda later=seconds: now + later * 10**9)
        read.clear()
        assert digest_files(files[:1], tmp_path) == expected(files[:1])
        counts.append(len(read))
    assert counts == [1, 1, 1, 0, 0, 0]

    Path(files[0]).write_bytes(b"other")
    os.utime(files[0], ns=(now + ahead, now + ahead))
    assert digest_files(files[:1], tmp_path) == expected(files[:1])


def test_many_files_in_several_spans(tmp_path: Path, read: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_digests, "SPAN", 100)
    monkeypatch.setattr(file_digests, "PART", 7)
    many = [str(tmp_path / f"{number}") for number in range(250)]
    for path in many:
        write(Path(path), path)
    assert digest_files(many[:170], tmp_path) == expected(many[:170])
    assert digest_files(many[::-1], tmp_path) == expected(many[::-1])
    assert sorted(read) == sorted(Path(path).name for path in many)


def test_digests_read_before_a_failure_are_kept(
    files: list[str], read: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_digests, "SPAN", 1)
    with pytest.raises(UserError):
        digest_files([*files[:2], str(tmp_path / "nothing.png")], tmp_path)
    read.clear()
    assert digest_files(files, tmp_path) == expected(files)
    assert read == [Path(files[2]).name]

"""Archives are fetched completely or not at all, from a local server."""

import hashlib
import io
import zipfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from headstart.datamodules.photos import download
from headstart.datamodules.photos.public_archives import AntsAndBees
from headstart.tests.material.file_servers import FileServer, serve_files
from headstart.tests.material.photo_folders import refusal

CONTENT = {"set/train/cats/cat.0.jpg": b"cat" * 1000, "set/train/dogs/dog.0.jpg": b"dog", "set/notes.py": b""}
PATH = "/set.zip"


def archive(content: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        for name, data in content.items():
            file.writestr(name, data)
    return buffer.getvalue()


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[FileServer]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with serve_files() as running:
        running.files[PATH] = archive(CONTENT)
        monkeypatch.setattr(AntsAndBees, "url", running.url + PATH)
        monkeypatch.setattr(AntsAndBees, "sha256", None)
        yield running


def fetching(folder: Path) -> Callable[[], None]:
    return AntsAndBees(str(folder), True).prepare


def refused(server: FileServer, folder: Path) -> str:
    """Fetch without success, check that nothing is left, and return the message."""
    message = refusal(fetching(folder), start="download: ")
    assert not folder.exists()
    assert leftovers(folder) == []
    assert server.url in message
    assert "set root" in message
    return message


def leftovers(folder: Path) -> list[str]:
    everything = {path.name for path in folder.parent.rglob("*")} if folder.parent.exists() else set()
    inside = {path.name for path in folder.rglob("*")} | {folder.name}
    return sorted(everything - inside - {f".{folder.name}.lock"})


def require_whole(folder: Path) -> None:
    assert {name: (folder / name).read_bytes() for name in CONTENT} == CONTENT
    assert leftovers(folder) == []


def test_callers_at_the_same_time_fetch_once_with_a_progress_bar(
    server: FileServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with ThreadPoolExecutor(4) as pool:
        for call in [pool.submit(fetching(tmp_path / "new" / "pets")) for _ in range(4)]:
            call.result()
    assert server.requests == {f"GET {PATH}": 1}
    require_whole(tmp_path / "new" / "pets")
    printed = capsys.readouterr()
    assert "100%" in printed.err
    assert printed.out == ""


def test_transfers_that_are_cut_off_or_stall(
    server: FileServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = len(server.files[PATH])
    server.failures[PATH] = [0, -1]
    expected = f"{size // 2} bytes read, {size - size // 2} more expected"
    assert expected in refused(server, tmp_path / "pets")
    with monkeypatch.context() as patched:
        patched.setattr(download, "SILENCE_LIMIT", 0.1)
        assert "timed out" in refused(server, tmp_path / "pets")
    fetching(tmp_path / "pets")()
    require_whole(tmp_path / "pets")


def test_answers_without_an_intact_archive(server: FileServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = {
        b"<html>Please log in.</html>": "not an intact zip archive",
        archive(CONTENT).replace(b"catcat", b"catbat", 1): "cat.0.jpg",
    }
    for content, words in answers.items():
        server.files[PATH] = content
        assert words in refused(server, tmp_path / "pets")
    del server.files[PATH]
    assert "404" in refused(server, tmp_path / "pets")
    monkeypatch.setattr(AntsAndBees, "url", "http://127.0.0.1:1/set.zip")
    assert "set root" in refusal(fetching(tmp_path / "pets"), start="download: ")
    (tmp_path / "file").touch()
    assert "cannot be written" in refusal(fetching(tmp_path / "file" / "pets"), start="root: ")


def test_checksum(server: FileServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    right = hashlib.sha256(server.files[PATH]).hexdigest()
    wrong = right.replace(right[0], "e" if right[0] != "e" else "f")
    monkeypatch.setattr(AntsAndBees, "sha256", wrong)
    assert f"holds another file than the one with the SHA-256 {wrong}; " in refused(server, tmp_path / "pets")
    monkeypatch.setattr(AntsAndBees, "sha256", right)
    fetching(tmp_path / "pets")()
    require_whole(tmp_path / "pets")


def test_interrupted_or_killed_while_unpacking(
    server: FileServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, remains = tmp_path / "pets", tmp_path / ".pets.partial" / "unpacked" / "set"

    def unpack_the_first(self: zipfile.ZipFile, path: Path) -> None:
        self.extract(self.infolist()[0], path)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(zipfile.ZipFile, "extractall", unpack_the_first)
        with pytest.raises(KeyboardInterrupt):
            fetching(folder)()
    assert not folder.exists()
    assert leftovers(folder) == []
    # A kill leaves this.
    remains.mkdir(parents=True)
    (remains / "half.jpg").touch()
    fetching(folder)()
    require_whole(folder)

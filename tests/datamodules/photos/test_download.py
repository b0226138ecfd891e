"""Archives are fetched completely or not at all, from a local server."""

import hashlib
import io
import threading
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from headstart.datamodules.photos import download
from headstart.datamodules.photos.ants_and_bees import AntsAndBees
from headstart.output.errors import UserError

CONTENT = {"set/train/cats/cat.0.jpg": b"cat" * 1000, "set/train/dogs/dog.0.jpg": b"dog", "set/notes.py": b""}


class Server(ThreadingHTTPServer):
    """Serves what it is given and counts the requests."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server_port}/set.zip"
        self.body: bytes | None = None
        self.withheld = 0
        self.requests = 0


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self.server.requests += 1
        if self.server.body is None:
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(self.server.body)))
        self.end_headers()
        self.wfile.write(self.server.body[: len(self.server.body) - self.server.withheld])

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  (named by http.server)
        pass


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with Server() as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def fetch_archive(url: str, folder: Path, sha256: str | None = None) -> None:
    AntsAndBees(str(folder), True, url, sha256).prepare()


def archive(content: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        for name, data in content.items():
            file.writestr(name, data)
    return buffer.getvalue()


def refusal(server: Server, folder: Path) -> str:
    """Fetch without success, check that nothing is left, and give the message."""
    with pytest.raises(UserError) as caught:
        fetch_archive(server.url, folder)
    assert not folder.exists()
    assert leftovers(folder) == []
    message = str(caught.value)
    assert "\n" not in message
    assert server.url in message
    assert "set root" in message
    return message


def leftovers(folder: Path) -> list[str]:
    everything = {path.name for path in folder.parent.rglob("*")} if folder.parent.exists() else set()
    inside = {path.name for path in folder.rglob("*")} | {folder.name}
    return sorted(everything - inside - {f".{folder.name}.lock"})


def test_good_archive_is_unpacked_with_a_progress_bar(
    server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server.body = archive(CONTENT)
    folder = tmp_path / "new" / "pets"
    fetch_archive(server.url, folder)
    assert {name: (folder / name).read_bytes() for name in CONTENT} == CONTENT
    assert leftovers(folder) == []
    printed = capsys.readouterr()
    assert "100%" in printed.err
    assert printed.out == ""


def test_callers_at_the_same_time_fetch_once(server: Server, tmp_path: Path) -> None:
    server.body = archive(CONTENT)
    with ThreadPoolExecutor(4) as pool:
        for call in [pool.submit(fetch_archive, server.url, tmp_path / "pets") for _ in range(4)]:
            call.result()
    assert server.requests == 1


def test_truncated_transfer_is_noticed(server: Server, tmp_path: Path) -> None:
    server.body = archive(CONTENT)
    server.withheld = 100
    size = len(server.body)
    assert f"{size - 100} bytes read, 100 more expected" in refusal(server, tmp_path / "pets")
    server.withheld = 0
    fetch_archive(server.url, tmp_path / "pets")
    assert (tmp_path / "pets" / "set").is_dir()


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/set.zip", "no address"])
def test_unreachable_address(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with pytest.raises(UserError, match=r"^download: .* set root"):
        fetch_archive(url, tmp_path / "pets")
    assert not (tmp_path / "pets").exists()


def test_stalled_transfer_is_given_up(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    finished = threading.Event()
    monkeypatch.setattr(Handler, "do_GET", lambda self: finished.wait(10))
    monkeypatch.setattr(download, "SILENCE_LIMIT", 0.1)
    assert "timed out" in refusal(server, tmp_path / "pets")
    finished.set()


def test_answers_without_an_intact_archive(server: Server, tmp_path: Path) -> None:
    assert "404" in refusal(server, tmp_path / "pets")
    server.body = b"<html>Please log in.</html>"
    assert "not an intact zip archive" in refusal(server, tmp_path / "pets")
    server.body = archive(CONTENT).replace(b"catcat", b"catbat", 1)
    assert "cat.0.jpg" in refusal(server, tmp_path / "pets")


@pytest.mark.parametrize("name", ["set/../../evil.txt", "/evil.txt", "C:\\evil.txt"])
def test_member_outside_the_folder_lands_inside(server: Server, tmp_path: Path, name: str) -> None:
    server.body = archive({**CONTENT, name: b"evil"})
    fetch_archive(server.url, tmp_path / "a" / "pets")
    assert leftovers(tmp_path / "a" / "pets") == []
    assert [path.read_bytes() for path in tmp_path.rglob("*evil.txt")] == [b"evil"]
    assert not Path("/evil.txt").exists()


def test_checksum(server: Server, tmp_path: Path) -> None:
    server.body = archive(CONTENT)
    right = hashlib.sha256(server.body).hexdigest()
    wrong = right.replace(right[0], "e" if right[0] != "e" else "f")
    for other in (wrong, "nonsense"):
        with pytest.raises(UserError, match=f"^sha256: {server.url} holds another file than the one with {other}; "):
            fetch_archive(server.url, tmp_path / "pets", other)
        assert not (tmp_path / "pets").exists()
        assert leftovers(tmp_path / "pets") == []
    fetch_archive(server.url, tmp_path / "pets", right.upper())
    assert (tmp_path / "pets" / "set").is_dir()


def test_an_interruption_while_unpacking_leaves_nothing(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.body = archive(CONTENT)
    folder = tmp_path / "pets"

    def unpack_the_first(self: zipfile.ZipFile, path: Path) -> None:
        self.extract(self.infolist()[0], path)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(zipfile.ZipFile, "extractall", unpack_the_first)
        with pytest.raises(KeyboardInterrupt):
            fetch_archive(server.url, folder)
    assert not folder.exists()
    assert leftovers(folder) == []
    fetch_archive(server.url, folder)
    assert {name: (folder / name).read_bytes() for name in CONTENT} == CONTENT


def test_remains_of_a_killed_process_are_cleared(server: Server, tmp_path: Path) -> None:
    server.body = archive(CONTENT)
    remains = tmp_path / ".pets.partial" / "unpacked" / "set"
    remains.mkdir(parents=True)
    (remains / "half.jpg").touch()
    fetch_archive(server.url, tmp_path / "pets")
    assert not list(tmp_path.rglob("half.jpg"))
    assert leftovers(tmp_path / "pets") == []


def test_folder_that_cannot_be_written(server: Server, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match=r"^root: .* cannot be written"):
        fetch_archive(server.url, tmp_path / "file" / "pets")
    assert server.requests == 0

"""Local and remote files: the same bytes as by other ways of reading, and errors that say what can be done."""

import errno
import itertools
import multiprocessing
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any

import numpy as np
import pytest

from headstart.datamodules.photos import remote_errors
from headstart.datamodules.photos.locations import (
    expand,
    in_order,
    is_remote,
    join,
    list_below,
    open_stream,
    read_bytes,
    size_of,
    state_of,
)
from headstart.output.errors import UserError
from headstart.tests.material.file_servers import FileServer, serve_files

fsspec = pytest.importorskip("fsspec")
CONTENT = np.random.default_rng(0).bytes(100_000)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[FileServer]:
    pytest.importorskip("aiohttp")
    monkeypatch.setattr(remote_errors, "WAITS", (0.0, 0.0, 0.0))
    with serve_files() as served:
        served.files["/a.bin"] = CONTENT
        yield served


@pytest.fixture
def memory() -> Iterator[Any]:
    files = fsspec.filesystem("memory")
    files.pipe({f"/here/{name}": CONTENT[: 10 * n] for n, name in enumerate(("a1", "a2", "a10", "deep/b"), 1)})
    yield files
    files.rm("/here", recursive=True)


@pytest.mark.parametrize(
    ("location", "remote"),
    [("s3://b/a", True), ("memory://a", True), ("a/b", False), ("C://a", False), ("/a://b", False), ("x", False)],
)
def test_urls_are_remote(location: str, remote: bool) -> None:
    assert is_remote(location) is remote


@pytest.mark.parametrize(
    "pattern", ["a{0000..0012}.tar", "{9..11}", "{a,b}{1..2}", "x{3..1}", "{08..10}", "{a,}b", "a{b}"]
)
@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_braces_are_those_of_bash(pattern: str, tmp_path: Path) -> None:
    shell = subprocess.run(["bash", "-c", f"echo {pattern}"], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert expand(pattern) == sorted(shell.stdout.split(), key=in_order)
    assert expand(f"s3://b/{pattern}") == sorted((f"s3://b/{each}" for each in shell.stdout.split()), key=in_order)


def test_wildcards_find_what_pathlib_finds(tmp_path: Path, memory: Any) -> None:
    for name in ("a1", "a10", "a2", "b[1]", "c/a3"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert expand(f"{tmp_path}/a*") == [str(tmp_path / name) for name in ("a1", "a2", "a10")]
    assert expand(f"{tmp_path}/*") == [str(tmp_path / name) for name in ("a1", "a2", "a10", "b[1]")], "c is a folder"
    assert set(expand(f"{tmp_path}/**")) == {str(path) for path in tmp_path.rglob("*") if path.is_file()}
    assert set(expand(f"{tmp_path}/**/a?")) == {str(path) for path in tmp_path.rglob("a?")}
    assert expand(f"{tmp_path}/b[1]") == [f"{tmp_path}/b[1]"], "a file of that name is meant"
    assert [each.rpartition("/")[2] for each in expand("memory://here/a*")] == ["a1", "a2", "a10"]
    assert [each.rpartition("/")[2] for each in expand("memory://here/*")] == ["a1", "a2", "a10"]
    for pattern in (f"{tmp_path}/x*", f"{tmp_path}/[c]", "memory://here/x*", "memory://here/d*"):
        with pytest.raises(UserError, match=r"(x\*|\[c\]|d\*): no file matches it; give other wildcards$"):
            expand(pattern)


def test_a_question_mark_begins_a_query() -> None:
    assert expand("https://host/a.tar?key=1") == ["https://host/a.tar?key=1"]


def test_names_are_joined_to_folders() -> None:
    assert join("s3://b/c/", "d/e.png") == "s3://b/c/d/e.png"
    assert join("/a", "s3://b/c") == "s3://b/c"
    assert join("/a", "b/c") == str(Path("/a/b/c"))
    assert join("/a", str(Path("/b").absolute())) == str(Path("/b").absolute())


RANGES = [(0, None), (0, 10), (5, 5), (99_990, None), (99_990, 200_000), (7, 70_000)]


@pytest.mark.parametrize("takes_ranges", [True, False])
def test_parts_of_files(server: FileServer, memory: Any, tmp_path: Path, takes_ranges: bool) -> None:
    server.takes_ranges = takes_ranges
    memory.pipe("/here/a.bin", CONTENT)
    (tmp_path / "a.bin").write_bytes(CONTENT)
    for location in (f"{server.url}/a.bin", "memory://here/a.bin", str(tmp_path / "a.bin")):
        assert size_of(location) == len(CONTENT)
        for start, end in RANGES:
            assert read_bytes(location, start, end) == CONTENT[start:end]
        with open_stream(location) as stream:
            assert stream.read(1000) + stream.read() == CONTENT


def test_a_state_changes_with_the_file(server: FileServer, memory: Any, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"12")

    def states() -> list[str]:
        return [state_of(each) for each in (f"{server.url}/a.bin", "memory://here/a1", str(tmp_path / "a"))]

    before = states()
    assert before == states()
    assert all(before)
    server.files["/a.bin"] = CONTENT[::-1]
    memory.pipe("/here/a1", CONTENT[10:20])
    (tmp_path / "a").write_bytes(b"21")
    assert not set(before) & set(states())
    assert state_of("memory://here/none") == state_of(str(tmp_path / "none")) == ""

    server.has_tags = False
    assert state_of(f"{server.url}/a.bin") == "", "a size alone says little"


def test_folders_are_listed_with_states(memory: Any) -> None:
    listed = list_below("memory://here/")
    assert listed == {name: state_of(f"memory://here/{name}") for name in ("a1", "a2", "a10", "deep/b")}


@pytest.mark.parametrize("failures", [[503], [500, 502, 429], [0], [0, 503, 0]])
def test_failures_of_the_network_pass(failures: list[int], server: FileServer) -> None:
    server.failures["/a.bin"] = list(failures)
    assert read_bytes(f"{server.url}/a.bin") == CONTENT
    assert server.requests["GET /a.bin"] == len(failures) + 1


@pytest.mark.parametrize(
    ("failures", "kind", "requests", "words"),
    [
        ([503] * 9, OSError, 4, "503"),
        ([0] * 9, OSError, 4, "payload"),
        ([401], PermissionError, 1, "access is denied; set FSSPEC_HTTP"),
        ([403], PermissionError, 1, "access is denied; set FSSPEC_HTTP"),
        ([404], FileNotFoundError, 1, "there is no such file"),
        ([410], OSError, 1, "410"),
    ],
)
def test_lasting_failures_are_errors_of_the_system(
    failures: list[int], kind: type[OSError], requests: int, words: str, server: FileServer
) -> None:
    server.failures["/a.bin"] = list(failures)
    with pytest.raises(kind, match=words) as caught:
        read_bytes(f"{server.url}/a.bin")
    assert caught.value.errno, "without a number it would count as a fault of the picture"
    assert caught.value.filename == f"{server.url}/a.bin"
    assert "\n" not in str(caught.value)
    assert server.requests["GET /a.bin"] == requests


def test_a_server_that_is_down(server: FileServer) -> None:
    with serve_files() as other:
        url = other.url
    with pytest.raises(OSError, match=r"(?i)connect") as caught:
        read_bytes(f"{url}/a.bin")
    assert caught.value.errno


class NoCredentialsError(Exception):
    """Named as botocore's, which is no error of the system."""


@pytest.mark.parametrize(
    ("protocol", "words"),
    [("s3", "AWS_ACCESS_KEY_ID"), ("gs", "GOOGLE_APPLICATION_CREDENTIALS"), ("hf", "HF_TOKEN"), ("abfs", "fsspec")],
)
def test_missing_credentials(protocol: str, words: str) -> None:
    def fail() -> bytes:
        raise NoCredentialsError("Unable to locate credentials")

    with pytest.raises(PermissionError, match=words) as caught:
        remote_errors.patiently(f"{protocol}://b/a", fail)
    assert caught.value.errno == errno.EACCES


def test_file_systems_that_try_again_themselves_are_asked_once() -> None:
    calls = itertools.count()

    def fail() -> bytes:
        next(calls)
        raise TimeoutError

    with pytest.raises(OSError, match="TimeoutError"):
        remote_errors.patiently("s3://b/a", fail)
    assert next(calls) == 1


def test_missing_packages_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "adlfs", None)
    with pytest.raises(UserError, match=r"^abfs://b/a: a package is missing \(.*adlfs.*\); pip install") as caught:
        read_bytes("abfs://b/a")
    with pytest.raises(UserError, match=r"^nowhere://b/a is no location \(Protocol not known: nowhere\)"):
        read_bytes("nowhere://b/a")
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    with pytest.raises(UserError, match=r"fsspec is not installed; pip install 'headstart\[remote\]'$"):
        read_bytes("s3://b/a")
    assert "\n" not in str(caught.value)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_processes_forked_while_others_read(server: FileServer) -> None:
    url, done = f"{server.url}/a.bin", SimpleQueue[None]()
    assert read_bytes(url) == CONTENT

    def read_until_done() -> None:
        while done.empty():
            read_bytes(url)

    thread = Thread(target=read_until_done)
    thread.start()
    try:
        with multiprocessing.get_context("fork").Pool(2) as pool:
            assert pool.map_async(read_bytes, [url] * 20).get(60) == [CONTENT] * 20
    finally:
        done.put(None)
        thread.join()

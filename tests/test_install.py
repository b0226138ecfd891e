"""`.ci/install.py` finds packages where pip is configured to look for them."""

import importlib.util
import os
import re
import subprocess
import threading
import venv
from collections.abc import Callable, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import ModuleType

import pytest

from headstart.tests.material.root import ROOT, require_checkout
from headstart.tests.material.wheels import write_uv_wheel, write_wheel

require_checkout()

PROGRAM = ROOT / ".ci" / "install.py"
needs_uv = pytest.mark.skipif(importlib.util.find_spec("uv") is None, reason="needs the installed uv, for an index")


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write an index: a folder for each package, and `example` in two versions."""
    folder = tmp_path_factory.mktemp("index")
    for version in ("1.0", "2.0"):
        write_wheel(folder / "example", "example", version, {"example.py": b""})
    if importlib.util.find_spec("uv"):
        write_uv_wheel(folder / "uv")
    return folder


@pytest.fixture(scope="module")
def address(index: Path) -> Iterator[str]:
    """Serve the index."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(SimpleHTTPRequestHandler, directory=index)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def load_program() -> ModuleType:
    spec = importlib.util.spec_from_file_location("install", PROGRAM)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


INSTALL = load_program()


def test_settings_of_pip_whatever_else_it_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    file = tmp_path / "pip.conf"
    monkeypatch.setenv("PIP_CONFIG_FILE", str(file))
    file.write_text("[global]\nquiet = 1\nindex-url = one\nfind-links =\n  a\n  b\n[install]\nindex-url = two\n")
    monkeypatch.setenv("PIP_QUIET", "1")
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", "x y")
    monkeypatch.setenv("PIP_CONSTRAINT", "")
    settings = INSTALL.read_pip_settings()
    assert settings["index-url"] == "two"
    assert settings["find-links"].split() == ["a", "b"]
    assert settings["extra-index-url"] == "x y"
    assert "constraint" not in settings

    file.write_text("index-url = one\n")
    with pytest.raises(ValueError, match="configuration cannot be read"):
        INSTALL.read_pip_settings()


def test_settings_of_pip_in_the_words_of_uv() -> None:
    settings = {"find-links": "~/a\n/b", "no-index": "true", "quiet": "1", "index-url": "u"}
    assert INSTALL.translate(settings) == {
        "UV_INDEX_STRATEGY": "unsafe-best-match",
        "UV_FIND_LINKS": f"{Path.home()}/a,/b",
        "UV_NO_INDEX": "true",
        "UV_INDEX_URL": "u",
    }


Installed = tuple[str, str, str]


@pytest.fixture
def install(tmp_path: Path) -> Callable[..., Installed]:
    """Install `example` into an empty environment; return its version, what installed it, and what was printed."""
    environment = tmp_path / "environment"
    venv.create(environment, with_pip=True)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "UV_"))}

    def run(constraint: str = "", configuration: str = "", **variables: str) -> Installed:
        (tmp_path / "pip.conf").write_text(configuration)
        (tmp_path / "constraints.txt").write_text(constraint)
        own = {
            "CONSTRAINTS": str(tmp_path / "constraints.txt"),
            "PIP_CONFIG_FILE": str(tmp_path / "pip.conf"),
            "UV_CACHE_DIR": str(tmp_path / "cache"),
            "no_proxy": "127.0.0.1",
        }
        command = [str(environment / "bin" / "python"), str(PROGRAM), "example"]
        done = subprocess.run(command, env={**kept, **own, **variables}, capture_output=True, text=True, check=True)
        (information,) = environment.glob("lib/python*/site-packages/example-*.dist-info")
        version = information.name.removeprefix("example-").removesuffix(".dist-info")
        return version, (information / "INSTALLER").read_text().strip(), done.stderr

    return run


@pytest.mark.slow
@needs_uv
def test_an_index_that_a_variable_names(address: str, install: Callable[..., Installed]) -> None:
    assert install(PIP_INDEX_URL=address) == ("2.0", "uv", "")


@pytest.mark.slow
@needs_uv
def test_the_newest_version_of_two_indexes(
    index: Path, tmp_path: Path, address: str, install: Callable[..., Installed]
) -> None:
    write_wheel(tmp_path / "other" / "example", "example", "1.0", {"example.py": b""})
    assert install(PIP_INDEX_URL=(tmp_path / "other").as_uri(), PIP_EXTRA_INDEX_URL=address) == ("2.0", "uv", "")


@pytest.mark.slow
@needs_uv
def test_folders_of_wheels_and_a_constraint(index: Path, install: Callable[..., Installed]) -> None:
    folders = f"[global]\nno-index = true\nfind-links =\n    {index}/uv\n    {index}/example\n"
    assert install(constraint="example==1.0", configuration=folders) == ("1.0", "uv", "")


@pytest.mark.slow
@needs_uv
def test_folders_of_wheels_where_no_index_answers(index: Path, install: Callable[..., Installed]) -> None:
    folders = f"{index}/uv {index}/example"
    installed = install(PIP_INDEX_URL="http://127.0.0.1:9", PIP_FIND_LINKS=folders, PIP_RETRIES="0")
    assert installed == ("2.0", "uv", "")


@pytest.mark.slow
@needs_uv
def test_constraints_of_pip_and_of_the_project(index: Path, tmp_path: Path, install: Callable[..., Installed]) -> None:
    (tmp_path / "pip_constraints.txt").write_text("example<2\n")
    limits = {"PIP_NO_INDEX": "1", "PIP_CONSTRAINT": str(tmp_path / "pip_constraints.txt")}
    installed = install(constraint="example>=1", PIP_FIND_LINKS=f"{index}/uv {index}/example", **limits)
    assert installed == ("1.0", "uv", "")


@pytest.mark.slow
def test_pip_installs_where_uv_is_not_to_be_had(index: Path, install: Callable[..., Installed]) -> None:
    version, installer, printed = install(PIP_NO_INDEX="1", PIP_FIND_LINKS=f"{index}/example")
    assert (version, installer) == ("2.0", "pip")
    assert re.fullmatch(r"pip finds no uv==\S+: pip installs instead, which takes minutes\n", printed)

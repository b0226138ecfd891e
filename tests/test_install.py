"""`.ci/install.py` finds packages where pip is configured to look for them."""

import os
import re
import subprocess
import threading
import venv
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path

import pytest

from headstart.tests.material.root import ROOT, load_file, require_checkout
from headstart.tests.material.wheels import write_uv_wheel, write_wheel

require_checkout()

PROGRAM = ROOT / ".ci" / "install.py"
# An index is made of the installed one.
HAS_UV = find_spec("uv") is not None


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write an index: a folder for each package, and `example` in two versions."""
    folder = tmp_path_factory.mktemp("index")
    for version in ("1.0", "2.0"):
        write_wheel(folder / "example", "example", version, {"example.py": b""})
    if HAS_UV:
        write_uv_wheel(folder / "uv")
    return folder


@pytest.fixture(scope="module")
def address(index: Path) -> Iterator[str]:
    """Serve the index."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(SimpleHTTPRequestHandler, directory=index)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


INSTALL = load_file(".ci/install.py")


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


def install(folder: Path, variables: dict[str, str]) -> Installed:
    """Install `example` into an empty environment; return its version, what installed it, and what was printed."""
    environment = folder / "environment"
    venv.create(environment, with_pip=True)
    (folder / "empty").touch()
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "UV_"))}
    files = {"CONSTRAINTS": str(folder / "empty"), "PIP_CONFIG_FILE": str(folder / "empty")}
    settings = {**kept, **files, "UV_CACHE_DIR": str(folder / "cache"), "no_proxy": "127.0.0.1", **variables}
    command = [str(environment / "bin" / "python"), str(PROGRAM), "example"]
    done = subprocess.run(command, env=settings, capture_output=True, text=True, check=True)
    (information,) = environment.glob("lib/python*/site-packages/example-*.dist-info")
    version = information.name.removeprefix("example-").removesuffix(".dist-info")
    return version, (information / "INSTALLER").read_text().strip(), done.stderr


@pytest.mark.slow
def test_what_installs_which_version_from_where(index: Path, address: str, tmp_path: Path) -> None:
    write_wheel(tmp_path / "other" / "example", "example", "1.0", {"example.py": b""})
    for name, text in {"first": "example==1.0", "any": "example>=1", "below": "example<2"}.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "conf").write_text(f"[global]\nno-index = 1\nfind-links =\n    {index}/uv\n    {index}/example\n")
    other, folders = (tmp_path / "other").as_uri(), f"{index}/uv {index}/example"
    first, any_, below, conf = (str(tmp_path / name) for name in ("first", "any", "below", "conf"))
    by_uv = [
        ({"PIP_INDEX_URL": address}, "2.0"),
        ({"PIP_INDEX_URL": other, "PIP_EXTRA_INDEX_URL": address}, "2.0"),
        ({"CONSTRAINTS": first, "PIP_CONFIG_FILE": conf}, "1.0"),
        # No index answers.
        ({"PIP_INDEX_URL": "http://127.0.0.1:9", "PIP_FIND_LINKS": folders, "PIP_RETRIES": "0"}, "2.0"),
        ({"CONSTRAINTS": any_, "PIP_CONSTRAINT": below, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": folders}, "1.0"),
    ]
    by_pip = [
        ({"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": f"{index}/example"}, r"pip finds no uv==\S+"),
    ]
    cases = [(variables, version, "uv", "") for variables, version in by_uv] * HAS_UV
    ending = ": pip installs instead, which takes minutes\n"
    cases += [(variables, "2.0", "pip", reason + ending) for variables, reason in by_pip]
    for number, (variables, version, program, printed) in enumerate(cases):
        (tmp_path / str(number)).mkdir()
        installed = install(tmp_path / str(number), variables)
        assert installed[:2] == (version, program), variables
        assert re.fullmatch(printed, installed[2]), variables

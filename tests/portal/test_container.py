"""The container file copies what is installed, installs it, and starts a portal that is healthy."""

import fnmatch
import json
import shlex
import signal
import socket
import time
import tomllib
from pathlib import Path

import pytest

from headstart.portal.settings import parse_settings
from headstart.tests.material.containers import health_check, make_image, read_instructions
from headstart.tests.material.root import ROOT, require_checkout

require_checkout()

INSTRUCTIONS = read_instructions()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PATIENCE = 120.0


def arguments(name: str) -> list[str]:
    return [rest for instruction, rest in INSTRUCTIONS if instruction == name]


def test_all_packages_are_copied_and_not_ignored() -> None:
    patterns = (ROOT / ".dockerignore").read_text().splitlines()
    copied = [source for rest in arguments("COPY") for source in rest.split()[:-1]]
    packages = [name.split(".")[1] for name in PROJECT["tool"]["setuptools"]["packages"] if "." in name]
    assert set(packages) <= set(copied)
    assert [source for source in copied if any(fnmatch.fnmatch(source, pattern) for pattern in patterns)] == []
    # Secrets and what git does not know stay outside of the image.
    assert {".*", "**/.env", "**/__pycache__"} <= set(patterns)


def test_it_starts_the_portal_as_a_user_who_cannot_write_what_is_installed() -> None:
    command, *words = json.loads(arguments("CMD")[0])
    assert (json.loads(arguments("ENTRYPOINT")[0]), command) == (["headstart"], "portal")
    settings = parse_settings("", [word for word in words if not word.startswith("--config=")])
    # It listens at all addresses of the container, at the port that is exposed and checked for health.
    assert (settings.host, arguments("EXPOSE")) == ("0.0.0.0", [str(settings.port)])
    assert f"127.0.0.1:{settings.port}/health" in arguments("HEALTHCHECK")[0]
    names = [name for name, _ in INSTRUCTIONS]
    assert names.index("USER") > max(index for index, name in enumerate(names) if name in {"RUN", "COPY"})
    assert arguments("FROM") == [f"python:{PROJECT['project']['requires-python'].removeprefix('>=')}-slim"]


def documented(program: str) -> list[list[str]]:
    """Return the documented command lines of a program."""
    text = (ROOT / "docs" / "portal.md").read_text().replace("\\\n", " ")
    return [shlex.split(line) for line in text.splitlines() if line.startswith(f"{program} ")]


@pytest.mark.slow
def test_it_is_installed_and_serves(tmp_path: Path) -> None:
    """Its steps in a folder, from the copying to SIGTERM.

    It differs from a build by an engine: packages are found in this environment instead of downloaded, so that pip gets
    --no-deps, --no-build-isolation and --no-index; it runs as this test's user; and it listens at a free port.
    """
    pytest.importorskip("setuptools", minversion="77")
    image = make_image(tmp_path)
    code = "import headstart; print(*headstart.__path__)"
    assert image.run("python", "-c", code).strip() == str(tmp_path / "headstart")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    # The rest is the demonstration.
    (image.folder / "portal.yaml").write_text(f"port: {port}\n")
    (image.folder / "entry.json").write_text('{"models": ["drawn_objects", "random"]}')

    with (tmp_path / "log").open("w") as log, image.start(*image.command, output=log) as portal:
        try:
            end = time.monotonic() + PATIENCE
            while image.start(*health_check(port)).wait():
                assert portal.poll() is None, (tmp_path / "log").read_text()
                assert time.monotonic() < end, (tmp_path / "log").read_text()
                time.sleep(1)
            (add,) = documented("podman exec")
            assert add[:3] == ["podman", "exec", "portal"]
            token = image.run(*add[3:]).split("token ")[1].split(",")[0]
            submit = ("headstart", "submit", "entry.json", f"--url=http://127.0.0.1:{port}", f"--token={token}")
            assert "Submission 1: scored, 0." in image.run(*submit)
        finally:
            portal.send_signal(signal.SIGTERM)
            portal.wait(PATIENCE)
    assert portal.returncode == 0, (tmp_path / "log").read_text()
    assert (image.folder / "cache").is_dir()

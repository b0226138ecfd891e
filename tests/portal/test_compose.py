"""The Compose file: what it names exists, its commands are understood, and its processes serve a portal together."""

import os
import socket
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml

from headstart.portal.settings import parse_settings
from headstart.tests.material.containers import health_check
from headstart.tests.material.postgresql import Server
from headstart.tests.material.root import ROOT, require_checkout

require_checkout()

FILE = ROOT / "portal" / "compose.yaml"
COMPOSE: dict[str, Any] = yaml.safe_load(FILE.read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OURS = {name: service for name, service in SERVICES.items() if name != "database"}
PATIENCE = 120.0


def command(name: str) -> list[str]:
    """Return what a service runs; the image's entry point comes first where it names none."""
    service = SERVICES[name]
    return [*service.get("entrypoint", ["headstart"]), *service.get("command", [])]


def options(name: str) -> list[str]:
    return [word for word in command(name) if word.startswith("--")]


def test_what_it_names_exists_and_is_understood() -> None:
    build = OURS["portal"]["build"]
    context = FILE.parent / build["context"]
    assert (context / build["dockerfile"]).samefile(ROOT / "portal" / "Containerfile")
    # One image is built, by the service that the others wait for.
    assert {service["image"] for service in OURS.values()} == {"headstart-portal"}
    settings = {name: parse_settings("", options(name)[1:]) for name in OURS}
    assert all(options(name)[0] == "--config=/data/portal.yaml" for name in OURS)
    assert (settings["portal"].host, settings["portal"].worker) == ("0.0.0.0", False)
    assert SERVICES["portal"]["ports"] == ["127.0.0.1:8000:8000"]
    # The file of the password is beside it, and in no image and no commit.
    assert all(".env" in (ROOT / name).read_text() for name in (".gitignore", ".dockerignore"))


def arguments(name: str, folder: Path, database: str) -> list[str]:
    """Return the command of a service for this machine instead of a container."""
    words = [word.replace("/data", str(folder)) for word in command(name)[1:]]
    return [f"--database={database}" if word.startswith("--database=") else word for word in words]


@pytest.mark.slow
def test_its_processes_serve_a_portal(postgresql: Server, tmp_path: Path) -> None:
    """Web server, worker and organiser's command, each as in its container."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    (tmp_path / "portal.yaml").write_text(f"port: {port}\n")
    (tmp_path / "entry.json").write_text('{"models": ["drawn_objects", "random"]}')
    database, program = postgresql.make_database(), [sys.executable, "-m", "headstart"]
    environment = {**os.environ, "HEADSTART_CACHE": str(tmp_path / "cache")}

    def run(*args: str) -> str:
        done = subprocess.run(
            [*program, *args], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def start(name: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen([*program, *arguments(name, tmp_path, database)], cwd=tmp_path, env=environment)

    with ExitStack() as processes:
        for name in ("portal", "worker"):
            process = start(name)
            processes.callback(process.wait, PATIENCE)
            processes.callback(process.terminate)
            end = time.monotonic() + PATIENCE
            while subprocess.run(
                [sys.executable, *health_check(port)[1:]], capture_output=True, check=False
            ).returncode:
                assert time.monotonic() < end
                time.sleep(1)
        token = run(*arguments("admin", tmp_path, database), "teams", "add", "Owls").split("token ")[1].split(",")[0]
        scored = run("submit", "entry.json", f"--url=http://127.0.0.1:{port}", f"--token={token}")
        assert "Submission 1: scored, 0." in scored
    assert list(tmp_path.rglob("*.sqlite3")) == []

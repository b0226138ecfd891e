"""The Compose file: what it names exists, its commands are understood, and its processes serve a portal together."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
import yaml
from sqlalchemy.engine import make_url

from headstart.portal.settings import parse_settings
from headstart.tests.material.containers import health_check
from headstart.tests.material.postgresql import USER, Server
from headstart.tests.material.root import ROOT, require_checkout

require_checkout()

FILE = ROOT / "portal" / "compose.yaml"
COMPOSE: dict[str, Any] = yaml.safe_load(FILE.read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OURS = {name: service for name, service in SERVICES.items() if name != "database"}
PASSWORD = "a password: of' 1 $"
PATIENCE = 120.0


def command(name: str) -> list[str]:
    """Return what a service runs; the image's entry point comes first where it names none."""
    service = SERVICES[name]
    return [*service.get("entrypoint", ["headstart"]), *service.get("command", [])]


def options(name: str) -> list[str]:
    return [word for word in command(name) if word.startswith("--")]


def url(name: str) -> str:
    (found,) = [word.removeprefix("--database=") for word in options(name) if word.startswith("--database=")]
    return found


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


@pytest.fixture
def port(postgresql: Server) -> Iterator[int]:
    """Make the database that the Compose file asks for, with its password, and give the server's port."""
    address = make_url(url("portal"))
    rules = postgresql.folder / "data" / "pg_hba.conf"
    before = rules.read_text()
    rules.write_text(f"host all {address.username} 127.0.0.1/32 scram-sha-256\n{before}")
    reload = ("pg_ctl", "-D", str(rules.parent), "reload")
    postgresql.run(*reload)
    with psycopg.connect(host="127.0.0.1", port=postgresql.port, user=USER, autocommit=True) as connection:
        password = psycopg.sql.Literal(PASSWORD)
        user, database = (psycopg.sql.Identifier(str(name)) for name in (address.username, address.database))
        connection.execute(psycopg.sql.SQL("CREATE ROLE {} LOGIN PASSWORD {}").format(user, password))
        connection.execute(psycopg.sql.SQL("CREATE DATABASE {} OWNER {}").format(database, user))
        yield postgresql.port
        connection.execute(psycopg.sql.SQL("DROP DATABASE {} WITH (FORCE)").format(database))
        connection.execute(psycopg.sql.SQL("DROP ROLE {}").format(user))
    rules.write_text(before)
    postgresql.run(*reload)


def arguments(name: str, folder: Path, port: int) -> list[str]:
    """Return the command of a service for this machine instead of a container."""
    local = [word.replace("/data", str(folder)).replace("@database/", f"@127.0.0.1:{port}/") for word in command(name)]
    assert local[0] == "headstart"
    return local[1:]


@contextmanager
def running(args: list[str], folder: Path, environment: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    with (folder / "log").open("a") as log:
        words = [sys.executable, "-m", "headstart", *args]
        process = subprocess.Popen(words, cwd=folder, env=environment, stdout=log, stderr=log)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(PATIENCE)
    assert process.returncode in (0, 143), (folder / "log").read_text()


@pytest.mark.slow
def test_its_processes_serve_a_portal(port: int, tmp_path: Path) -> None:
    """Web server, worker and organiser's command, each as in its container, with a PostgreSQL that is none."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        web = free.getsockname()[1]
    (tmp_path / "portal.yaml").write_text(f"port: {web}\n")
    (tmp_path / "entry.json").write_text('{"models": ["drawn_objects", "random"]}')
    given = {**SERVICES["portal"]["environment"], "PGPASSWORD": PASSWORD, "HEADSTART_CACHE": str(tmp_path / "cache")}
    environment = {**os.environ, **given}

    def run(*args: str, **more: str) -> str:
        words = [sys.executable, "-m", "headstart", *args]
        done = subprocess.run(
            words, cwd=tmp_path, env={**environment, **more}, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr + (tmp_path / "log").read_text()
        return done.stdout

    check = [sys.executable, *health_check(web)[1:]]
    with ExitStack() as processes:
        portal = processes.enter_context(running(arguments("portal", tmp_path, port), tmp_path, environment))
        end = time.monotonic() + PATIENCE
        while subprocess.run(check, capture_output=True, check=False).returncode:
            assert portal.poll() is None, (tmp_path / "log").read_text()
            assert time.monotonic() < end, (tmp_path / "log").read_text()
            time.sleep(1)
        processes.enter_context(running(arguments("worker", tmp_path, port), tmp_path, environment))
        added = run(*arguments("admin", tmp_path, port), "teams", "add", "Owls")
        token = added.split("token ")[1].split(",")[0]
        scored = run("submit", "entry.json", f"--url=http://127.0.0.1:{web}", HEADSTART_TOKEN=token)
        assert "Submission 1: scored, 0." in scored
        assert "scored" in run(*arguments("admin", tmp_path, port), "submissions", "list")
    assert list(tmp_path.rglob("*.sqlite3")) == []

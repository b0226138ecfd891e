"""A PostgreSQL server of a test's own, from Debian's package where it is installed."""

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg
from psycopg import sql

USER = "postgres"


def find_binaries() -> Path | None:
    """Return the folder of `initdb` and `pg_ctl`; Debian keeps them out of the path."""
    on_path = shutil.which("pg_ctl")
    folders = [Path(on_path).parent] if on_path else sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    return folders[-1] if folders else None


def can_run() -> bool:
    """Return whether there can be a server: it does not run as root, and needs another user then."""
    has_user = os.getuid() != 0 or (shutil.which("runuser") and USER in {entry.pw_name for entry in pwd.getpwall()})
    return find_binaries() is not None and bool(has_user)


@dataclass
class Server:
    """A server that can be stopped and started.

    Attributes:
        folder: Its data, and its socket.
        port: Where it listens.
    """

    folder: Path
    port: int
    databases: int = 0

    def start(self) -> None:
        options = f"-p {self.port} -k {self.folder} -c listen_addresses=127.0.0.1 -c fsync=off"
        self.run("pg_ctl", "-w", "-D", f"{self.folder}/data", "-l", f"{self.folder}/log", "-o", options, "start")

    def stop(self) -> None:
        """Stop as a crash does."""
        self.run("pg_ctl", "-w", "-D", f"{self.folder}/data", "-m", "immediate", "stop")

    def make_database(self) -> str:
        """Create a database, and give its URL."""
        self.databases += 1
        name = f"portal_{self.databases}"
        with psycopg.connect(host="127.0.0.1", port=self.port, user=USER, autocommit=True) as connection:
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        return f"postgresql+psycopg://{USER}@127.0.0.1:{self.port}/{name}"

    def run(self, *command: str) -> None:
        run_as_user([str(find_binaries()) + f"/{command[0]}", *command[1:]])


def run_as_user(command: Sequence[str]) -> None:
    """Run a command that refuses to be run by root."""
    as_user = ["runuser", "-u", USER, "--"] if os.getuid() == 0 else []
    # The server inherits what it is given, and would keep a pipe open.
    with tempfile.TemporaryFile() as output:
        done = subprocess.run([*as_user, *command], stdout=output, stderr=output, cwd="/", check=False)
        output.seek(0)
        assert done.returncode == 0, output.read().decode()


@contextmanager
def serve_postgresql() -> Iterator[Server]:
    """Create and start a server, and remove it at the end."""
    # Pytest's folders cannot be used: only their owner can read them.
    folder = Path(tempfile.mkdtemp(prefix="portal-postgresql-", dir="/tmp"))
    if os.getuid() == 0:
        shutil.chown(folder, USER)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    server = Server(folder, port)
    try:
        server.run("initdb", "-D", f"{folder}/data", "-U", USER, "-A", "trust", "--no-sync")
        server.start()
        yield server
    finally:
        if (folder / "data" / "postmaster.pid").exists():
            server.stop()
        shutil.rmtree(folder)

"""The server and the worker are killed in turn: no submission is lost, and none is stored twice or keeps no score."""

import itertools
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Event

import httpx
import pytest
import yaml
from sqlalchemy import select
from sqlalchemy.orm import undefer

from headstart.portal.database import Database
from headstart.portal.queue import WAITING
from headstart.portal.tables import SubmissionRow
from headstart.portal.teams import add_team
from headstart.tests.material.portals import blue, make_settings
from headstart.tests.material.stub_scores import MODELS

ROOT = Path(__file__).parents[2]
# A busy machine starts processes slowly, and the portal's workers have a low priority.
PATIENCE = 600.0
SENDERS, LEAST = 3, 200
SERVER = "headstart.tests.material.stub_server"


@contextmanager
def serving(folder: Path) -> Iterator[tuple[Callable[[int], None], str, Database, str]]:
    """Serve a portal and its worker with a team, and yield a function that kills either and starts it again."""
    settings = make_settings(folder, {})
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    values = {name: getattr(settings, name) for name in ("challenge", "registry", "catalog", "data")}
    config = folder / "portal.yaml"
    config.write_text(yaml.safe_dump({**values, "port": port, "demonstration": False}))
    options = [f"--config={config}", "--held_out_catalog=null", "--held_out_registry=null", "--datasets=null"]
    commands = [[sys.executable, "-m", name, *options] for name in (SERVER, "headstart.tests.material.stub_worker")]
    running = [subprocess.Popen(command, cwd=ROOT) for command in commands]
    # All processes and this one create the tables at the same time.
    database = Database(settings.folder)
    database.create_tables()
    with database.writing() as session:
        token = add_team(session, "Night owls")

    def kill(number: int) -> None:
        assert running[number].poll() is None, f"{commands[number]} ended by itself"
        running[number].kill()
        running[number].wait()
        running[number] = subprocess.Popen(commands[number], cwd=ROOT)

    try:
        yield kill, f"http://127.0.0.1:{port}", database, token
    finally:
        for process in running:
            process.send_signal(signal.SIGTERM)
        for process in running:
            process.wait(PATIENCE)
        database.close()


def send_until_taken(address: str, token: str, number: int, stop: Event) -> int:
    """Hand one submission in, again and again until the server confirms it, and return its number."""
    content = blue(*MODELS[: 2 + number % 3]) + b" " * number
    headers = {"Authorization": f"Bearer {token}"}
    while not stop.is_set():
        try:
            answer = httpx.post(f"{address}/api/submissions", content=content, headers=headers, timeout=10)
        except httpx.HTTPError:
            time.sleep(0.05)
            continue
        if answer.status_code in (200, 201):
            return int(answer.json()["id"])
        assert answer.status_code == 503, answer.text
    raise AssertionError("nothing was taken any more")


@pytest.mark.slow
def test_twenty_kills(tmp_path: Path) -> None:
    rng, stop, done, progress = random.Random(0), Event(), Event(), Event()
    with serving(tmp_path) as (kill, address, database, token), ThreadPoolExecutor(SENDERS) as pool:

        def send(sender: int) -> list[tuple[int, int]]:
            taken: list[tuple[int, int]] = []
            for number in itertools.count(sender, SENDERS):
                if done.is_set() and number >= LEAST:
                    return taken
                taken.append((number, send_until_taken(address, token, number, stop)))
                progress.set()
            return taken

        senders = [pool.submit(send, sender) for sender in range(SENDERS)]
        try:
            for turn in range(20):
                # Otherwise processes that start slowly would never be killed at work.
                if turn % 2:
                    progress.clear()
                    assert progress.wait(PATIENCE), "nothing is taken any more"
                time.sleep(rng.uniform(0, 2))
                kill(turn % 2)
            done.set()
            taken = [pair for sender in senders for pair in sender.result(PATIENCE)]
            wait_until_all_are_scored(database)
        finally:
            stop.set()

        with database.reading() as session:
            rows = {
                row.id: row for row in session.scalars(select(SubmissionRow).options(undefer(SubmissionRow.content)))
            }
        # Every confirmed submission is there, once, with its own document and its own score.
        assert len(set(taken)) == len(taken)
        expected = {submission: blue(*MODELS[: 2 + n % 3]) + b" " * n for n, submission in taken}
        assert {number: row.content for number, row in rows.items()} == expected
        assert all((row.state, row.score) == ("scored", 1 / len(row.content)) for row in rows.values())


def wait_until_all_are_scored(database: Database) -> None:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        with database.reading() as session:
            waiting = session.scalars(select(SubmissionRow.id).where(SubmissionRow.state.in_(WAITING))).all()
        if not waiting:
            return
        time.sleep(0.1)
    raise AssertionError(f"{waiting} are not scored")

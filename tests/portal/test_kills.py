"""Servers and workers are killed at random: no submission is lost, and none is stored or scored twice."""

import itertools
import random
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event

import httpx
import pytest
import yaml
from sqlalchemy import select

from headstart.portal.database import Database
from headstart.portal.tables import EventRow, ScoringRow, SubmissionRow
from headstart.portal.teams import add_team
from headstart.tests.material.portals import blue, make_settings
from headstart.tests.material.stub_scores import MODELS

ROOT = Path(__file__).parents[2]
# A busy machine starts processes slowly, and the portal's workers have a low priority.
PATIENCE = 600.0
SENDERS, WORKERS = 3, 2
KILLS, SUBMISSIONS, PAUSE = 20, 200, 2.0


@dataclass
class Processes:
    """A server and workers; each is started again after it was killed."""

    commands: list[list[str]]

    def start(self) -> None:
        self.running = [subprocess.Popen(command, cwd=ROOT) for command in self.commands]

    def kill(self, number: int) -> None:
        assert self.running[number].poll() is None, f"{self.commands[number]} ended by itself"
        self.running[number].kill()
        self.running[number].wait()
        self.running[number] = subprocess.Popen(self.commands[number], cwd=ROOT)

    def end(self) -> None:
        for process in self.running:
            process.send_signal(signal.SIGTERM)
        for process in self.running:
            process.wait(PATIENCE)


@contextmanager
def serving(folder: Path, url: str) -> Iterator[tuple[Processes, str, Database, str]]:
    """Serve a portal with a team; each process that starts may create the tables."""
    settings = make_settings(folder, {}, database=url)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    names = ("challenge", "registry", "catalog", "data", "database", "documents_per_minute")
    values = {name: getattr(settings, name) for name in names}
    config = folder / "portal.yaml"
    config.write_text(yaml.safe_dump({**values, "port": port, "worker": False, "demonstration": False}))
    database = Database(url)
    options = [f"--config={config}", "--held_out_catalog=null", "--held_out_registry=null", "--datasets=null"]
    started = (["headstart", "portal"], *[["headstart.tests.material.stub_worker"]] * WORKERS)
    processes = Processes([[sys.executable, "-m", *words, *options] for words in started])
    processes.start()
    # All processes and this one create the tables at the same time.
    database.create_tables()
    with database.writing() as session:
        token = add_team(session, "Night owls")
    try:
        yield processes, f"http://127.0.0.1:{port}", database, token
    finally:
        processes.end()
        database.close()


def send_until_taken(address: str, token: str, number: int, stop: Event) -> int:
    """Hand one submission in, again and again until the server confirms it, and return its number."""
    content = blue(*MODELS[: 2 + number % 3]) + b" " * number
    headers = {"Authorization": f"Bearer {token}"}
    while not stop.is_set():
        try:
            answer = httpx.post(f"{address}/api/submissions?team=blue", content=content, headers=headers, timeout=10)
        except httpx.HTTPError:
            time.sleep(0.05)
            continue
        if answer.status_code in (200, 201):
            return int(answer.json()["id"])
        assert answer.status_code == 503, answer.text
    raise AssertionError("nothing was taken any more")


def wait_until_all_are_scored(database: Database) -> None:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        with database.reading() as session:
            waiting = session.scalars(select(ScoringRow.id).where(ScoringRow.state.in_(["queue", "running"]))).all()
        if not waiting:
            return
        time.sleep(0.1)
    raise AssertionError(f"{waiting} are not scored")


def check_records(database: Database, taken: list[tuple[int, int]]) -> None:
    with database.reading() as session:
        rows = {row.id: row for row in session.scalars(select(SubmissionRow))}
        # Every confirmed submission is there, once, with its own document.
        assert len(set(taken)) == len(taken)
        assert {submission: len(blue(*MODELS[: 2 + n % 3])) + n for n, submission in taken} == {
            number: row.size for number, row in rows.items()
        }
        # Each has its own score, and the log reports it once.
        scores = dict(session.execute(select(ScoringRow.submission_id, ScoringRow.score)).all())
        assert scores == {number: 1 / row.size for number, row in rows.items()}
        for kind in ("received", "scored"):
            logged = Counter(session.scalars(select(EventRow.submission_id).where(EventRow.kind == kind)))
            assert logged == Counter(list(rows))


@pytest.mark.slow
def test_twenty_kills(tmp_path: Path, database_url: str) -> None:
    rng, stop, done, progress = random.Random(0), Event(), Event(), Event()
    opened = serving(tmp_path, database_url)
    with opened as (processes, address, database, token), ThreadPoolExecutor(SENDERS) as pool:

        def send(sender: int) -> list[tuple[int, int]]:
            accepted: list[tuple[int, int]] = []
            for number in itertools.count(sender, SENDERS):
                if done.is_set() and number >= SUBMISSIONS:
                    break
                accepted.append((number, send_until_taken(address, token, number, stop)))
                progress.set()
            return accepted

        senders = [pool.submit(send, sender) for sender in range(SENDERS)]
        try:
            for turn in range(KILLS):
                # Otherwise processes that start slowly would never be killed at work.
                if turn % 2:
                    progress.clear()
                    assert progress.wait(PATIENCE), "nothing is taken any more"
                time.sleep(rng.uniform(0, PAUSE))
                # The first kills go in turn, so that every process is killed once.
                processes.kill(turn if turn < len(processes.running) else rng.randrange(len(processes.running)))
            done.set()
            accepted = [pair for sender in senders for pair in sender.result(PATIENCE)]
            wait_until_all_are_scored(database)
        finally:
            stop.set()
        check_records(database, accepted)

"""Servers and workers are killed at random: no submission is lost, and none is stored or scored twice."""

import itertools
import random
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import httpx
import pytest
import yaml
from sqlalchemy import select

from headstart.portal.database import Database
from headstart.portal.tables import EventRow, SubmissionRow
from headstart.portal.teams import add_team
from headstart.tests.material.portals import blue, make_settings
from headstart.tests.material.stub_scores import MODELS

ROOT = Path(__file__).parents[2]
# A busy machine starts processes slowly, and the portal's workers have a low priority.
PATIENCE = 600.0
SENDERS, WORKERS = 3, 2
KILLS, SUBMISSIONS, PAUSE = 20, 200, 2.0


def write_settings(folder: Path, url: str) -> tuple[int, list[str]]:
    """Write the settings of a portal at a free port; return the port, and options that name them."""
    settings = make_settings(folder, {}, database=url)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    names = ("challenge", "registry", "catalog", "data", "database", "documents_per_minute")
    values = {name: getattr(settings, name) for name in names}
    config = folder / "portal.yaml"
    config.write_text(yaml.safe_dump({**values, "port": port, "worker": False, "demonstration": False}))
    return port, [f"--config={config}", "--datasets=null"]


def make_content(number: int) -> bytes:
    return blue(*MODELS[: 2 + number % 3]) + b" " * number


def send_until_taken(address: str, token: str, number: int, stop: Event) -> int:
    """Hand one submission in, again and again until the server confirms it, and return its number."""
    headers = {"Authorization": f"Bearer {token}"}
    while not stop.is_set():
        try:
            answer = httpx.post(address, content=make_content(number), headers=headers, timeout=10)
        except httpx.HTTPError:
            time.sleep(0.05)
            continue
        if answer.status_code in (200, 201):
            return int(answer.json()["id"])
        assert answer.status_code == 503, answer.text
    raise AssertionError("nothing was taken any more")


def check_records(database: Database, taken: list[tuple[int, int]]) -> None:
    """Wait until all is scored, and check that every confirmed submission is there once, with its own score."""
    end = time.monotonic() + PATIENCE
    waiting = select(SubmissionRow.id).where(SubmissionRow.state.in_(["queue", "running"]))
    is_done = False
    while not is_done:
        assert time.monotonic() < end, "some are never scored"
        time.sleep(0.1)
        with database.reading() as session:
            is_done = not session.scalars(waiting).all()
    with database.reading() as session:
        sizes = {row.id: row.size for row in session.scalars(select(SubmissionRow))}
        assert len(set(taken)) == len(taken)
        assert {submission: len(make_content(number)) for number, submission in taken} == sizes
        scores = dict(session.execute(select(SubmissionRow.id, SubmissionRow.score)).all())
        assert scores == {number: 1 / size for number, size in sizes.items()}
        for kind in ("received", "scored"):
            logged = Counter(session.scalars(select(EventRow.submission_id).where(EventRow.kind == kind)))
            assert logged == Counter(list(sizes))


@pytest.mark.slow
def test_twenty_kills(tmp_path: Path, database_url: str) -> None:
    rng, stop, done, progress = random.Random(0), Event(), Event(), Event()
    port, options = write_settings(tmp_path, database_url)
    programs = (["headstart", "portal"], *[["headstart.tests.material.stub_worker"]] * WORKERS)
    commands = [[sys.executable, "-m", *words, *options] for words in programs]
    running = [subprocess.Popen(command, cwd=ROOT) for command in commands]
    # All processes and this one create the tables at the same time.
    database = Database(database_url)
    database.create_tables()
    with database.writing() as session:
        token = add_team(session, "Night owls")

    def send(sender: int) -> list[tuple[int, int]]:
        accepted: list[tuple[int, int]] = []
        for number in itertools.count(sender, SENDERS):
            if done.is_set() and number >= SUBMISSIONS:
                break
            address = f"http://127.0.0.1:{port}/api/submissions?team=blue"
            accepted.append((number, send_until_taken(address, token, number, stop)))
            progress.set()
        return accepted

    with ThreadPoolExecutor(SENDERS) as pool:
        senders = [pool.submit(send, sender) for sender in range(SENDERS)]
        try:
            for turn in range(KILLS):
                # Otherwise processes that start slowly would never be killed at work.
                if turn % 2:
                    progress.clear()
                    assert progress.wait(PATIENCE), "nothing is taken any more"
                time.sleep(rng.uniform(0, PAUSE))
                # The first kills go in turn, so that every process is killed once.
                victim = turn if turn < len(running) else rng.randrange(len(running))
                assert running[victim].poll() is None, f"{commands[victim]} ended by itself"
                running[victim].kill()
                running[victim].wait()
                running[victim] = subprocess.Popen(commands[victim], cwd=ROOT)
            done.set()
            check_records(database, [pair for sender in senders for pair in sender.result(PATIENCE)])
        finally:
            stop.set()
            for process in running:
                process.send_signal(signal.SIGTERM)
            for process in running:
                process.wait(PATIENCE)
            database.close()

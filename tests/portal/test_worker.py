"""The process that scores: what it does when the database, the disk or the submission fail it."""

import os
import socket
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from threading import Event, Thread
from time import monotonic, sleep
from typing import Any

import pytest
from sqlalchemy import event, select

from headstart.portal.records import database as database_module
from headstart.portal.records.accounts import add_team, find_account
from headstart.portal.records.database import Database
from headstart.portal.records.tables import ScoringRow
from headstart.portal.work import worker as worker_module
from headstart.portal.work.intake import store_submission
from headstart.portal.work.queue import LEASE, Job, Outcome
from headstart.portal.work.scoring import TransientError
from headstart.portal.work.worker import Worker
from headstart.tests.material.portals import Site, blue, make_phase
from headstart.tests.material.postgresql import Server
from headstart.tests.material.stub_scores import stub_score

PATIENCE = 30.0


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten the waits for a locked database."""
    monkeypatch.setattr(database_module, "_WAIT_SECONDS", 0.05)
    monkeypatch.setattr(worker_module, "POLL_SECONDS", 0.02)
    monkeypatch.setattr(worker_module, "MAX_WAIT_SECONDS", 0.1)


def open_database(url: str) -> Database:
    database = Database(url)
    database.create_tables()
    account = find_account(database, add_team(database, "Owls"))
    assert account is not None
    content = blue("owl", "lark")
    store_submission(database, make_phase(), account, "blue", content, [], "key", 10**6, datetime.now(UTC))
    return database


@contextmanager
def working(database: Database, scorer: Callable[[Job], Outcome]) -> Iterator[None]:
    worker = Worker(database, scorer, "first", PATIENCE)
    thread = Thread(target=worker.run)
    thread.start()
    try:
        yield
    finally:
        worker.stopping.set()
        thread.join(PATIENCE)
        assert not thread.is_alive()


def wait_for(database: Database, state: str) -> ScoringRow:
    end = monotonic() + PATIENCE
    while monotonic() < end:
        with database.reading() as session:
            row = session.scalars(select(ScoringRow)).one()
            if row.state == state:
                return row
        sleep(0.02)
    raise AssertionError(f"{row.state}, {row.note}, {row.error}")


def test_a_score_is_kept_while_sqlite_is_locked(tmp_path: Path) -> None:
    database, scored = open_database(f"sqlite:///{tmp_path / 'portal.sqlite3'}"), Event()
    calls = []
    # The worker's thread acquires the lock, and this one releases it.
    other = sqlite3.connect(tmp_path / "portal.sqlite3", isolation_level=None, check_same_thread=False)

    def score(job: Job) -> Outcome:
        other.execute("BEGIN IMMEDIATE")
        calls.append(job)
        scored.set()
        return stub_score(job)

    with closing(other), working(database, score):
        assert scored.wait(PATIENCE)
        sleep(0.5)
        other.execute("COMMIT")
        row = wait_for(database, "scored")
    assert row.attempt == len(calls) == 1


def test_a_score_is_kept_while_postgresql_is_away(postgresql: Server) -> None:
    database, scored, calls = open_database(postgresql.make_database()), Event(), []

    def score(job: Job) -> Outcome:
        postgresql.stop()
        calls.append(job)
        scored.set()
        return stub_score(job)

    with working(database, score):
        assert scored.wait(PATIENCE)
        sleep(0.5)
        postgresql.start()
        row = wait_for(database, "scored")
    database.close()
    assert row.attempt == len(calls) == 1


def test_a_scoring_that_a_full_disk_stopped_is_tried_again(tmp_path: Path) -> None:
    database = open_database(f"sqlite:///{tmp_path / 'portal.sqlite3'}")
    full = [True]

    def score(job: Job) -> Outcome:
        if full:
            raise TransientError("No space left on device")
        return stub_score(job)

    with working(database, score):
        row = wait_for(database, "queue")
        end = monotonic() + PATIENCE
        while not row.note and monotonic() < end:
            row = wait_for(database, "queue")
        assert "try again" in row.note
        assert "No space" not in row.note
        assert row.error == "No space left on device"
        full.clear()
        row = wait_for(database, "scored")
    assert (row.attempt, row.note, row.error) == (2, "", "")


def test_a_database_without_room_takes_nothing_and_loses_nothing(site: Site) -> None:
    assert site.submit(blue("owl", "lark"), key="one").status_code == 201
    engine = site.database.engine

    def limit(connection: Any, _: object, *more: object) -> None:
        connection.execute("PRAGMA max_page_count = 1")  # as many as there are

    event.listen(engine, "checkout", limit)
    answer = site.submit(blue("owl", "lark") + b" " * 100_000, key="two")
    assert answer.status_code == 503
    assert str(site.settings.folder) not in answer.text
    event.remove(engine, "checkout", limit)
    site.database.close()
    assert [each["id"] for each in site.read("/api/submissions")] == [1]
    assert site.submit(blue("owl", "lark") + b" " * 100_000, key="two").status_code == 201
    assert [job.submission_id for job in site.work()] == [1, 2]


def test_reasons_of_a_failed_scoring_are_shown_to_organisers_alone(site: Site, tmp_path: Path) -> None:
    def score(job: Job) -> Outcome:
        raise RuntimeError(f"no {tmp_path}/weights.pth")

    site.submit(blue("owl", "lark"))
    with working(site.database, score):
        row = wait_for(site.database, "failed")
    assert "weights.pth" in row.error
    site.log_in()
    pages = [site.client.get(path).text for path in ("/submissions", "/submissions/1", "/log", "/api/log", "/log.atom")]
    pages.append(site.client.get("/api/submissions/1", headers=site.headers()).text)
    assert not any("weights.pth" in page or str(tmp_path) in page for page in pages)
    assert "for a reason on our side" in pages[1]


def test_a_scoring_that_never_ends_fails_and_ends_the_process(site: Site) -> None:
    site.submit(blue("owl", "lark"))
    ended = Event()

    def hang(job: Job) -> Outcome:
        assert ended.wait(PATIENCE)
        return stub_score(job)

    worker = Worker(site.database, hang, "first", 0.2, end=ended.set)
    thread = Thread(target=worker.run)
    thread.start()
    row = wait_for(site.database, "failed")
    worker.stopping.set()
    thread.join(PATIENCE)
    assert "took longer" in row.error
    # The result comes too late.
    assert wait_for(site.database, "failed").scores.score is None


@pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="the system has no such time limit")
def test_a_database_whose_machine_lost_its_power_is_not_waited_for(postgresql: Server) -> None:
    database = Database(postgresql.make_database())
    with database.engine.connect() as connection:
        driver_connection = connection.connection.driver_connection
        assert driver_connection is not None
        with socket.socket(fileno=os.dup(driver_connection.fileno())) as used:
            idle, between, count, without_answer = (
                used.getsockopt(socket.IPPROTO_TCP, getattr(socket, f"TCP_{name}"))
                for name in ("KEEPIDLE", "KEEPINTVL", "KEEPCNT", "USER_TIMEOUT")
            )
            assert used.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
    database.close()
    lease = LEASE.total_seconds()
    assert idle + between * count <= lease
    assert 0 < without_answer <= 1000 * lease


def test_pages_say_that_the_database_is_away_and_come_back(open_site: Callable[..., Site], postgresql: Server) -> None:
    site = open_site(database=postgresql.make_database())
    assert site.submit(blue("owl", "lark"), key="one").status_code == 201
    postgresql.stop()
    try:
        answers = [
            site.client.get("/leaderboard"),
            site.submit(blue("owl", "wren"), key="two"),
            site.client.get("/health"),
        ]
    finally:
        postgresql.start()
    assert [answer.status_code for answer in answers] == [503, 503, 503]
    assert all("Try again" in answer.text for answer in answers[:2])
    assert answers[2].json()["database"] == "it does not answer"
    assert not any("127.0.0.1" in answer.text for answer in answers)
    assert site.submit(blue("owl", "wren"), key="two").status_code == 201
    assert len(site.work()) == 2

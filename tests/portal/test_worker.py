"""The worker and the pages when the database or a scoring fails, and the warnings of the health page."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event, Thread
from time import monotonic, sleep
from typing import Any

import pytest
from sqlalchemy import event, select, update

from headstart.portal import database as database_module
from headstart.portal import worker as worker_module
from headstart.portal.database import Database
from headstart.portal.queue import Job, Outcome, claim
from headstart.portal.tables import SubmissionRow
from headstart.portal.worker import Worker
from headstart.tests.material.portals import Site, blue
from headstart.tests.material.postgresql import Server
from headstart.tests.material.stub_scores import stub_score
from headstart.tests.portal.conftest import OpenSite

TIMEOUT_SECONDS = 30.0


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten the waits for a locked database."""
    monkeypatch.setattr(database_module, "_WAIT_SECONDS", 0.05)
    monkeypatch.setattr(worker_module, "POLL_SECONDS", 0.02)
    monkeypatch.setattr(worker_module, "WAIT_SECONDS", 0.1)


@contextmanager
def run_worker(database: Database, scorer: Callable[[Job], Outcome], **options: Any) -> Iterator[None]:
    worker = Worker(database, scorer, **{"max_seconds": TIMEOUT_SECONDS, **options})
    thread = Thread(target=worker.run)
    thread.start()
    try:
        yield
    finally:
        worker.stopping.set()
        thread.join(TIMEOUT_SECONDS)
        assert not thread.is_alive()


def wait_for(database: Database, state: str) -> SubmissionRow:
    end = monotonic() + TIMEOUT_SECONDS
    while monotonic() < end:
        with database.reading() as session:
            row = session.scalars(select(SubmissionRow)).one()
            if row.state == state:
                return row
        sleep(0.02)
    raise AssertionError(f"{row.state}, {row.note}, {row.error}")


def test_a_score_is_kept_while_sqlite_is_locked(site: Site) -> None:
    site.submit(blue("owl", "lark"))
    scored, calls = Event(), []
    # The worker's thread locks the database, and the test's thread unlocks it: `check_same_thread` is off.
    file = site.settings.folder / "portal.sqlite3"
    other = sqlite3.connect(file, isolation_level=None, check_same_thread=False)

    def score(job: Job) -> Outcome:
        other.execute("BEGIN IMMEDIATE")
        calls.append(job)
        scored.set()
        return stub_score(job)

    with closing(other), run_worker(site.database, score):
        assert scored.wait(TIMEOUT_SECONDS)
        sleep(0.5)
        other.execute("COMMIT")
        row = wait_for(site.database, "scored")
    assert row.attempt == len(calls) == 1


def test_a_score_is_kept_and_pages_recover_after_postgresql_was_down(open_site: OpenSite, postgresql: Server) -> None:
    site, scored, calls = open_site(database=postgresql.make_database()), Event(), []
    site.submit(blue("owl", "lark"))

    def score(job: Job) -> Outcome:
        postgresql.stop()
        calls.append(job)
        scored.set()
        return stub_score(job)

    with run_worker(site.database, score):
        assert scored.wait(TIMEOUT_SECONDS)
        try:
            health = site.client.get("/health")
            answers = [health, site.client.get("/leaderboard"), site.submit(blue("owl", "wren"))]
            assert "headstart_database_up 0.0" in site.client.get("/metrics").text
        finally:
            postgresql.start()
        row = wait_for(site.database, "scored")
    assert row.attempt == len(calls) == 1
    assert [answer.status_code for answer in answers] == [503, 503, 503]
    assert all("Try again" in answer.text for answer in answers[1:])
    assert not any("127.0.0.1" in answer.text for answer in answers)
    assert site.submit(blue("owl", "wren")).status_code == 201


def test_a_full_database_refuses_submissions_and_loses_none(site: Site) -> None:
    large = blue("owl", "lark").ljust(100_000)
    assert site.submit(blue("owl", "lark")).status_code == 201

    def limit(connection: Any, _: object, *more: object) -> None:
        connection.execute("PRAGMA max_page_count = 1")  # SQLite raises it to the current count

    event.listen(site.database.engine, "checkout", limit)
    answer = site.submit(large)
    assert answer.status_code == 503
    assert str(site.settings.folder) not in answer.text
    event.remove(site.database.engine, "checkout", limit)
    site.database.close()
    assert site.submit(large).status_code == 201
    assert [job.id for job in site.work()] == [1, 2]


def test_reasons_of_a_failed_scoring_are_shown_to_organisers_alone(
    site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def score(job: Job) -> Outcome:
        raise RuntimeError(f"no {tmp_path}/weights.pth")

    site.submit(blue("owl", "lark"))
    with run_worker(site.database, score):
        wait_for(site.database, "failed")
    site.log_in()
    pages = [site.client.get(path).text for path in ("/submissions", "/submissions/1", "/log", "/api/log")]
    pages.append(site.client.get("/api/submissions/1", headers=site.headers()).text)
    assert not any("weights.pth" in page or str(tmp_path) in page for page in pages)
    assert "for a reason on our side" in pages[1]
    site.admin("submissions", "list")
    assert "weights.pth" in capsys.readouterr().out
    site.admin("submissions", "rescore", "failed")
    with run_worker(site.database, stub_score):
        row = wait_for(site.database, "scored")
    assert (row.note, row.error) == ("", "")


def test_the_worker_ends_if_a_scoring_takes_too_long_or_its_submission_is_removed(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, ended = Event(), Event()

    def hang(job: Job) -> Outcome:
        begun.set()
        assert ended.wait(TIMEOUT_SECONDS)
        return stub_score(job)

    site.submit(blue("owl", "lark"))
    with run_worker(site.database, hang, max_seconds=0.2, end=ended.set):
        row = wait_for(site.database, "failed")
    assert "took longer" in row.error
    # The score that `hang` returns after the timeout is ignored.
    assert wait_for(site.database, "failed").score is None

    monkeypatch.setattr(worker_module, "LEASE", timedelta(seconds=0.3))
    begun.clear()
    ended.clear()
    site.admin("submissions", "rescore", "failed")
    with run_worker(site.database, hang, end=ended.set):
        assert begun.wait(TIMEOUT_SECONDS)
        site.admin("teams", "remove", "Owls")
    assert site.database.reading().scalars(select(SubmissionRow)).all() == []


def test_organisers_are_warned_in_health_and_metrics(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    from headstart.portal.web import api

    monkeypatch.setattr(api, "LOW", 0)
    site.submit(blue("owl", "lark"))
    assert site.client.get("/health").json() == {"status": "ok", "warnings": []}
    with site.database.writing() as session:
        session.execute(update(SubmissionRow).values(queued=datetime.now(UTC) - timedelta(minutes=11)))
    assert "no worker is active" in site.client.get("/health").json()["warnings"][0]
    lines = site.client.get("/metrics").text.splitlines()
    assert 'headstart_submissions{state="queue"} 1.0' in lines
    assert any(float(line.split()[1]) > 600 for line in lines if line.startswith("headstart_oldest_waiting_seconds "))
    assert 'headstart_requests_total{route="/api/submissions",status="201"} 1.0' in lines
    assert claim(site.database) is not None
    assert site.client.get("/health").json()["warnings"] == []
    monkeypatch.setattr(api, "LOW", 2**80)
    assert "of the data folder has only" in site.client.get("/health").json()["warnings"][0]

"""The process that scores, and pages: what they do when the database or the submission fails them."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Event, Thread
from time import monotonic, sleep
from typing import Any

import pytest
from sqlalchemy import event, select

from headstart.portal import database as database_module
from headstart.portal import worker as worker_module
from headstart.portal.queue import Job, Outcome
from headstart.portal.tables import SubmissionRow
from headstart.portal.worker import Worker
from headstart.tests.material.portals import Site, blue
from headstart.tests.portal.conftest import OpenSite

PATIENCE = 30.0


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten the waits for a locked database."""
    monkeypatch.setattr(database_module, "_WAIT_SECONDS", 0.05)
    monkeypatch.setattr(worker_module, "POLL_SECONDS", 0.02)
    monkeypatch.setattr(worker_module, "WAIT_SECONDS", 0.1)


@contextmanager
def working(site: Site, scorer: Callable[[Job], Outcome], **more: Any) -> Iterator[None]:
    worker = Worker(site.database, scorer, **{"max_seconds": PATIENCE, **more})
    thread = Thread(target=worker.run)
    thread.start()
    try:
        yield
    finally:
        worker.stopping.set()
        thread.join(PATIENCE)
        assert not thread.is_alive()


def wait_for(site: Site, state: str) -> SubmissionRow:
    end = monotonic() + PATIENCE
    while monotonic() < end:
        with site.database.reading() as session:
            row = session.scalars(select(SubmissionRow)).one()
            if row.state == state:
                return row
        sleep(0.02)
    raise AssertionError(f"{row.state}, {row.note}, {row.error}")


def test_a_score_is_kept_while_the_database_is_locked(open_site: OpenSite) -> None:
    site, scored, calls = open_site(), Event(), list[Job]()
    site.submit(blue("owl", "lark"))
    # The worker's thread acquires the lock, and this one releases it.
    file = site.settings.folder / "portal.sqlite3"
    other = sqlite3.connect(file, isolation_level=None, check_same_thread=False)

    def score(job: Job) -> Outcome:
        other.execute("BEGIN IMMEDIATE")
        calls.append(job)
        scored.set()
        return site.scorer(job)

    with closing(other), working(site, score):
        assert scored.wait(PATIENCE)
        answer = site.submit(blue("owl", "wren"))
        assert (answer.status_code, "Try again" in answer.text) == (503, True)
        assert site.client.get("/health").status_code == 200
        sleep(0.5)
        other.execute("COMMIT")
        wait_for(site, "scored")
    assert len(calls) == 1
    assert site.submit(blue("owl", "wren")).status_code == 201


def test_a_database_without_room_takes_nothing_and_loses_nothing(site: Site) -> None:
    assert site.submit(blue("owl", "lark")).status_code == 201
    engine = site.database.engine

    def limit(connection: Any, _: object, *more: object) -> None:
        connection.execute("PRAGMA max_page_count = 1")  # as many as there are

    event.listen(engine, "checkout", limit)
    answer = site.submit(blue("owl", "lark") + b" " * 100_000)
    assert answer.status_code == 503
    assert str(site.settings.folder) not in answer.text
    event.remove(engine, "checkout", limit)
    site.database.close()
    assert site.submit(blue("owl", "lark") + b" " * 100_000).status_code == 201
    assert [job.id for job in site.work()] == [1, 2]


def test_reasons_of_a_failed_scoring_are_shown_to_organisers_alone(
    site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def score(job: Job) -> Outcome:
        raise RuntimeError(f"no {tmp_path}/weights.pth")

    site.submit(blue("owl", "lark"))
    with working(site, score):
        wait_for(site, "failed")
    site.log_in()
    pages = [site.client.get(path).text for path in ("/submissions", "/submissions/1")]
    pages.append(site.client.get("/api/submissions/1", headers=site.headers()).text)
    assert not any("weights.pth" in page or str(tmp_path) in page for page in pages)
    assert "for a reason on our side" in pages[1]
    site.admin("list-submissions")
    assert "weights.pth" in capsys.readouterr().out
    site.admin("rescore", "failed")
    with working(site, site.scorer):
        row = wait_for(site, "scored")
    assert (row.note, row.error) == ("", "")


def test_a_scoring_that_never_ends_fails_and_ends_the_process(site: Site) -> None:
    site.submit(blue("owl", "lark"))
    ended = Event()

    def hang(job: Job) -> Outcome:
        assert ended.wait(PATIENCE)
        return site.scorer(job)

    with working(site, hang, max_seconds=0.2, end=ended.set):
        row = wait_for(site, "failed")
    assert "took longer" in row.error
    # The result comes too late.
    assert wait_for(site, "failed").score is None

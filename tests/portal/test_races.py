"""Decisions about submissions race with their scoring and with each other, on either kind of database."""

from collections.abc import Callable, Iterator
from threading import Barrier, Thread

import pytest
from sqlalchemy import select

from headstart.portal.records.database import Database
from headstart.portal.records.decisions import cancel, choose, withdraw
from headstart.portal.records.tables import SubmissionRow
from headstart.portal.work.intake import score_again
from headstart.portal.work.queue import Job, claim, failed, finish, put_back
from headstart.tests.material.portals import make_phase, read_rules
from headstart.tests.material.stub_scores import stub_score
from headstart.tests.portal.test_decisions import CHOSEN, attempts, claimed, rows, submit

COUNT = 12


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    database = Database(database_url)
    database.create_tables()
    yield database
    database.close()


def together(*actions: Callable[[], object]) -> list[BaseException]:
    """Do all at once, and return what was raised."""
    barrier, raised = Barrier(len(actions)), []

    def act(action: Callable[[], object]) -> None:
        barrier.wait()
        try:
            action()
        except BaseException as error:
            raised.append(error)

    threads = [Thread(target=act, args=(action,)) for action in actions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return raised


def test_cancelling_races_with_the_end_of_a_scoring(database: Database) -> None:
    team = submit(database, COUNT)
    scored = 0
    for number in range(1, COUNT + 1):
        job = claimed(database)
        ends: list[bool] = []
        assert job.submission_id == number
        raised = together(
            lambda job=job, ends=ends: ends.append(finish(database, job, stub_score(job))),  # type: ignore[misc]
            lambda number=number: cancel(database, number, "a test"),  # type: ignore[misc]
        )
        assert [error for error in raised if "is neither waiting nor running" not in str(error)] == []
        state = rows(database)[number - 1][1]
        # Either the score came first and the attempt is spent, or neither.
        assert (state, len(raised)) == (("scored", 1) if ends[0] else ("cancelled", 0))
        scored += ends[0]
        assert attempts(database, team) == scored + COUNT - number


def test_withdrawing_races_with_the_begin_of_a_scoring(database: Database) -> None:
    team = submit(database, COUNT)
    begun = 0
    for number in range(1, COUNT + 1):
        jobs: list[Job | None] = []
        raised = together(
            lambda jobs=jobs: jobs.append(claim(database, "test")),  # type: ignore[misc]
            lambda number=number: withdraw(database, read_rules(), number),  # type: ignore[misc]
        )
        assert raised == []
        # Either the scoring began first and the attempt is spent, or neither; then the next one was claimed, or none.
        job = next((job for job in jobs if job is not None and job.submission_id == number), None)
        assert rows(database)[number - 1][1] == ("cancelled" if job is None else "running")
        begun += job is not None
        for each in jobs:
            if each is not None and each is not job:
                put_back(database, each, "", "")
        assert attempts(database, team) == begun + COUNT - number


def test_withdrawing_races_with_scoring_again(database: Database) -> None:
    team = submit(database, COUNT)
    for number in range(1, COUNT + 1):
        job = claimed(database)
        assert finish(database, job, failed("a test", "a test"))
        raised = together(
            lambda number=number: score_again(database, [number], [make_phase()]),  # type: ignore[misc]
            lambda number=number: withdraw(database, read_rules(), number),  # type: ignore[misc]
        )
        assert [error for error in raised if "its team withdrew it" not in str(error)] == []
        # It is never scored, and its attempt is not spent.
        assert attempts(database, team) == COUNT - number
    assert claim(database, "test") is None


def test_of_several_that_are_chosen_at_once_one_is(database: Database) -> None:
    submit(database, 4)
    rules = read_rules(**CHOSEN)
    for _ in range(5):
        assert together(*(lambda n=number: choose(database, rules, n) for number in (1, 2, 3, 4))) == []
        with database.reading() as session:
            chosen = session.scalars(select(SubmissionRow.id).where(SubmissionRow.chosen.is_(True))).all()
        assert len(chosen) == 1

"""The queue and what enters it, on either kind of database: leases, order, quotas, and requests at the same time."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from threading import Barrier, Thread
from typing import Any

import pytest
from sqlalchemy import select, update

from headstart.contract.challenge import Challenge
from headstart.portal.admin import Organiser
from headstart.portal.database import Database
from headstart.portal.queue import (
    MAX_TRIES,
    NotTakenError,
    Outcome,
    Receipt,
    claim,
    failed,
    finish,
    prolong,
    score_again,
    store_submission,
)
from headstart.portal.tables import EventRow, SubmissionRow, TeamRow
from headstart.portal.teams import add_team
from headstart.tests.material.portals import blue, make_challenge, take
from headstart.tests.material.stub_scores import stub_score

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def add(database: Database, name: str = "Owls") -> int:
    """Add a team, and return its number."""
    with database.writing() as session:
        add_team(session, name)
        return len(session.scalars(select(TeamRow)).all())


def store(database: Database, team: int, number: int = 0, rules: Challenge | None = None, **more: Any) -> Receipt:
    """Store the submission of a number."""
    options = {"problems": [], "bytes_per_day": 10**6, "now": NOW, **more}
    content = blue("owl", "lark") + b" " * number
    return store_submission(database, rules or make_challenge(), team, "blue", content, **options)


def organise(database: Database, command: str, *words: str) -> str:
    """Run an organiser's command."""
    with database.writing() as session:
        return str(getattr(Organiser(session), command)(*words))


def rows(database: Database) -> list[SubmissionRow]:
    with database.reading() as session:
        return [*session.scalars(select(SubmissionRow))]


def expire_leases(database: Database) -> None:
    with database.writing() as session:
        session.execute(update(SubmissionRow).values(lease_until=NOW - timedelta(days=999)))


def together(*actions: Callable[[], object]) -> list[Exception]:
    """Do all at once, and return what was raised."""
    barrier, raised = Barrier(len(actions)), list[Exception]()

    def act(action: Callable[[], object]) -> None:
        barrier.wait()
        try:
            action()
        except Exception as error:
            raised.append(error)

    threads = [Thread(target=act, args=(action,)) for action in actions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return raised


def test_a_scoring_is_claimed_once_and_ends_once(database: Database) -> None:
    store(database, add(database))
    first = take(database)
    assert first.content == blue("owl", "lark")
    assert claim(database) is None
    assert prolong(database, first)
    expire_leases(database)
    second = take(database)
    assert (second.id, second.attempt) == (first.id, 2)
    # The first was only believed to be dead, and can change nothing any more.
    assert not prolong(database, first)
    assert not finish(database, first, failed("late", "late"))
    assert finish(database, second, stub_score(second))
    assert not finish(database, second, failed("again", "again"))
    (row,) = rows(database)
    assert (row.state, row.score) == ("scored", 1 / len(second.content))
    with database.reading() as session:
        assert list(session.scalars(select(EventRow.kind))) == ["team added", "received", "scored"]


def test_what_always_kills_the_worker_fails_at_last(database: Database) -> None:
    store(database, add(database))
    for _ in range(MAX_TRIES):
        assert claim(database) is not None
        expire_leases(database)
    assert claim(database) is None
    (row,) = rows(database)
    assert (row.state, f"ended {MAX_TRIES} times" in row.error) == ("failed", True)


def test_what_kills_workers_comes_last(database: Database) -> None:
    team = add(database)
    for number in range(3):
        store(database, team, number)
    with database.writing() as session:
        session.execute(update(SubmissionRow).where(SubmissionRow.id == 1).values(tries=4))
    assert [take(database).id for _ in range(3)] == [2, 3, 1]


def test_an_earlier_score_stands_until_there_is_a_new_one(database: Database) -> None:
    store(database, add(database))
    job = take(database)
    finish(database, job, stub_score(job))
    for outcome, state in ((failed("a test", "a test"), "failed"), (Outcome("refused", problems=[]), "refused")):
        with database.writing() as session:
            assert score_again(session, [1, 1]) == 1
        (row,) = rows(database)
        assert (row.state, row.score) == ("queue", 1 / len(job.content))
        again = take(database)
        finish(database, again, outcome)
        (row,) = rows(database)
        assert (row.state, row.score) == (state, 1 / len(job.content))


def test_the_same_document_counts_once(database: Database) -> None:
    team, other = add(database), add(database, "Larks")
    rules = make_challenge(teams={"blue": {"submissions": 1}, "red": {}})
    assert store(database, team, rules=rules) == (1, True)
    # Also when the quota is used up, submissions are closed, and the score is there.
    organise(database, "close")
    assert store(database, team, rules=rules) == (1, False)
    job = take(database)
    finish(database, job, stub_score(job))
    assert store(database, team, rules=rules).id == 1
    with pytest.raises(NotTakenError, match="closed"):
        store(database, other, rules=rules)
    organise(database, "open")
    assert store(database, other, rules=rules) == (2, True)
    # What could not be scored does not count, and may be sent again.
    job = take(database)
    finish(database, job, failed("a test", "a test"))
    assert store(database, other, rules=rules) == (3, True)


def test_quotas_dates_and_bytes(database: Database) -> None:
    team = add(database)
    teams = {"blue": {"submissions_per_day": 1}}
    rules = make_challenge(deadline=NOW.isoformat(), time_zone="Asia/Tokyo", teams=teams)
    before, at_once = NOW - timedelta(days=1), NOW - timedelta(hours=1)
    for number, now in enumerate((before, at_once, NOW, NOW + timedelta(seconds=1))):
        assert store(database, team, number, rules, now=now) == (number + 1, True)
    with database.reading() as session:
        rows = session.scalars(select(SubmissionRow).order_by(SubmissionRow.id)).all()
        assert [len(row.problems or []) for row in rows] == [0, 0, 1, 2]
        # Of refused ones, only the problems are kept, and count.
        assert [row.content is None for row in rows] == [False, False, True, True]
    with pytest.raises(NotTakenError, match=r"of 300 bytes per day are used; .* midnight \(Asia/Tokyo\)"):
        store(database, team, 4, rules, bytes_per_day=300)
    organise(database, "teams_revoke", "Owls")
    with pytest.raises(NotTakenError, match="revoked"):
        store(database, team, 5, rules)


def test_of_submissions_at_once_no_more_count_than_are_allowed(database: Database) -> None:
    team = add(database)
    rules = make_challenge(teams={"blue": {"submissions": 3}})
    assert together(*(lambda n=number: store(database, team, n // 2, rules) for number in range(16))) == []
    with database.reading() as session:
        digests = session.scalars(select(SubmissionRow.sha256).where(SubmissionRow.problems.is_(None))).all()
    assert len(digests) == len(set(digests)) == 3


def test_removing_a_team_races_with_the_end_of_its_scorings(database: Database) -> None:
    for turn in range(6):
        with database.writing() as session:
            add_team(session, f"Owls {turn}")
        with database.reading() as session:
            (team,) = session.scalars(select(TeamRow)).all()
        store(database, team.id)
        job = take(database)

        removal = partial(organise, database, "teams_remove", team.name)
        assert together(removal, partial(finish, database, job, stub_score(job))) == []
        assert rows(database) == []

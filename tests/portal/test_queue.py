"""The queue: who may claim a scoring, and who may end it."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from threading import Barrier, Thread

import pytest
from sqlalchemy import select, update

from headstart.portal.phases import record_bases
from headstart.portal.records.accounts import add_team, find_account
from headstart.portal.records.database import Database
from headstart.portal.records.log import log_event
from headstart.portal.records.scores import Scores
from headstart.portal.records.tables import AccountRow, ScoringRow
from headstart.portal.web.boards import Boards
from headstart.portal.work import queue
from headstart.portal.work.intake import store_submission
from headstart.portal.work.queue import MAX_ATTEMPTS, Job, Outcome, claim, finish, free, prolong, put_back
from headstart.tests.material.portals import blue, make_phase
from headstart.tests.material.postgresql import Server
from headstart.tests.material.stub_scores import stub_score


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    database = Database(database_url)
    database.create_tables()
    yield database
    database.close()


def submit(database: Database, count: int = 1, held_out: bool = False) -> AccountRow:
    account = find_account(database, add_team(database, "Owls"))
    assert account is not None
    phase = make_phase(held_out)
    for number in range(count):
        content = blue("owl", "lark")
        store_submission(database, phase, account, "blue", content, [], f"{number}", 10**6, datetime.now(UTC))
    return account


def states(database: Database) -> list[str]:
    with database.reading() as session:
        return list(session.scalars(select(ScoringRow.state).order_by(ScoringRow.id)))


def expire(database: Database) -> None:
    with database.writing() as session:
        session.execute(update(ScoringRow).values(lease_until=datetime.now(UTC) - timedelta(seconds=1)))


def claimed(database: Database, worker: str = "first") -> Job:
    job = claim(database, worker)
    assert job is not None
    return job


def test_each_is_claimed_once_and_in_order_public_ones_first(database: Database) -> None:
    submit(database, 3, held_out=True)
    jobs = [claimed(database) for _ in range(6)]
    assert [(job.kind, job.submission_id) for job in jobs] == [
        *(("public", number) for number in (1, 2, 3)),
        *(("held_out", number) for number in (1, 2, 3)),
    ]
    assert claim(database, "second") is None


def test_a_clock_that_was_ahead_holds_nothing_up(database: Database) -> None:
    submit(database, 2)
    job = claimed(database)
    tomorrow = datetime.now(UTC) + timedelta(days=1)
    with database.writing() as session:
        session.execute(update(ScoringRow).values(not_before=tomorrow, queued=tomorrow))
        session.execute(update(ScoringRow).where(ScoringRow.id == job.id).values(lease_until=tomorrow))
    assert [claimed(database, "second").submission_id for _ in range(2)] == [1, 2]
    assert not finish(database, job, stub_score(job))


def test_two_workers_claim_different_ones(database: Database) -> None:
    submit(database, 20)
    together, claimed = Barrier(2), []

    def work(name: str) -> None:
        together.wait()
        while (job := claim(database, name)) is not None:
            claimed.append(job.submission_id)

    threads = [Thread(target=work, args=(name,)) for name in ("first", "second")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(claimed) == list(range(1, 21))


def test_a_worker_that_lost_the_lease_changes_nothing(database: Database) -> None:
    submit(database)
    late = claimed(database)
    expire(database)
    again = claimed(database, "second")
    assert (again.id, again.attempt) == (late.id, 2)
    assert not prolong(database, late)
    assert not finish(database, late, Outcome("failed", error="late"))
    put_back(database, late, "late", "late")
    assert states(database) == ["running"]
    assert finish(database, again, stub_score(again))
    # The holder of the lease cannot end it a second time.
    assert not finish(database, again, Outcome("failed"))
    assert states(database) == ["scored"]


def test_a_lease_that_ran_out_while_the_database_was_away_does_not_lose_the_score(database: Database) -> None:
    submit(database)
    job = claimed(database)
    expire(database)
    assert finish(database, job, stub_score(job))
    assert states(database) == ["scored"]


def test_a_prolonged_lease_is_kept(database: Database) -> None:
    submit(database)
    job = claimed(database)
    expire(database)
    assert prolong(database, job)
    assert claim(database, "second") is None


def test_the_task_of_a_worker_that_ended_is_free_at_once(database: Database) -> None:
    submit(database, 2)
    claimed(database)
    other = claimed(database, "second")
    free(database, "first")
    assert claimed(database, "second").submission_id == 1
    assert prolong(database, other)


def test_a_task_put_back_waits_and_lets_others_pass(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    submit(database, 2)
    job = claimed(database)
    put_back(database, job, "The disk is full.", "No space left on device")
    assert claimed(database).submission_id == 2
    assert claim(database, "first") is None

    class Later(datetime):
        @classmethod
        def now(cls, tz: object = None) -> datetime:  # type: ignore[override]
            return datetime.now(UTC) + timedelta(seconds=3)

    monkeypatch.setattr(queue, "datetime", Later)
    assert claimed(database).submission_id == 1


def test_a_task_that_ends_every_process_fails_at_last_and_delays_no_other(database: Database) -> None:
    submit(database, 2)
    for attempt in range(1, 5):
        assert claimed(database).attempt == attempt
        expire(database)
    # The first submission now comes after the second.
    second = claimed(database)
    assert second.submission_id == 2
    finish(database, second, stub_score(second))
    for attempt in range(5, MAX_ATTEMPTS + 1):
        assert claimed(database).attempt == attempt
        expire(database)
    assert claim(database, "first") is None
    assert states(database) == ["failed", "scored"]


def test_a_score_that_is_seen_after_a_later_one_is_on_the_leaderboard(postgresql: Server) -> None:
    database, phase = Database(postgresql.make_database()), make_phase()
    database.create_tables()
    with database.writing() as session:
        record_bases(session, [phase], datetime.now(UTC))
    account = submit(database, 2)
    boards, (first, second) = Boards(), [claimed(database) for _ in range(2)]

    def scored() -> int:
        with database.reading() as session:
            (line,) = boards.find(session, phase, "blue", False).standings
            return line.submissions

    # The first scoring has a lower number, and becomes visible later.
    with database.writing() as session:
        row = session.get_one(ScoringRow, first.id)
        row.state, row.scores = "scored", Scores(0.5)
        log_event(session, datetime.now(UTC), "scored", "Submission 1 is scored.", account.team_id, first.submission_id)
        session.flush()
        assert finish(database, second, stub_score(second))
        assert scored() == 1
    assert scored() == 2
    database.close()

"""The queue and what enters it: order, quotas, submissions at the same time, and what always fails."""

from datetime import UTC, datetime, timedelta
from threading import Thread
from typing import Any

import pytest
from sqlalchemy import select, update

from headstart.contract.challenge import CHALLENGE
from headstart.contract.problems import ContractError
from headstart.contract.submissions import Submission, check_submission
from headstart.portal.queue import (
    MAX_TRIES,
    Job,
    Outcome,
    Receipt,
    claim,
    failed,
    finish,
    requeue,
    score_again,
    store_submission,
)
from headstart.portal.tables import SubmissionRow
from headstart.portal.teams import revoke_team
from headstart.tests.material.portals import RULES, Site, blue

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def store(site: Site, number: int = 0, team: int = 1, now: datetime = NOW, **rules: Any) -> Receipt:
    """Store the submission of a number."""
    content = blue("owl", "lark") + b" " * number
    documents = site.portal.documents
    submission: Submission = check_submission(content, "submission", documents.registry, documents.catalog)
    return store_submission(site.database, CHALLENGE.validate_python({**RULES, **rules}), team, submission, now)


def take(site: Site) -> Job:
    """Claim a submission, which must be waiting."""
    job = claim(site.database)
    assert job is not None
    return job


def rows(site: Site) -> list[SubmissionRow]:
    with site.database.reading() as session:
        return list(session.scalars(select(SubmissionRow).order_by(SubmissionRow.id)))


def test_a_submission_is_claimed_once_and_ends_once(site: Site) -> None:
    store(site)
    job = take(site)
    assert job.content == blue("owl", "lark")
    assert claim(site.database) is None
    # Its process has died, and the next one begins again.
    requeue(site.database)
    assert take(site) == job
    finish(site.database, job, site.scorer(job))
    finish(site.database, job, failed("again", "again"))
    (row,) = rows(site)
    assert (row.state, row.score, row.tries) == ("scored", 1 / len(job.content), 2)


def test_what_kills_the_worker_goes_last_and_fails_in_the_end(site: Site) -> None:
    for number in range(3):
        store(site, number)
    with site.database.writing() as session:
        session.execute(update(SubmissionRow).where(SubmissionRow.id == 1).values(tries=MAX_TRIES))
    assert [take(site).id, take(site).id] == [2, 3]
    assert claim(site.database) is None
    row, *_ = rows(site)
    assert (row.state, f"ended {MAX_TRIES} times" in row.error) == ("failed", True)


def test_an_earlier_score_stands_until_there_is_a_new_one(site: Site) -> None:
    store(site)
    job = take(site)
    finish(site.database, job, site.scorer(job))
    for outcome in (failed("a test", "a test"), Outcome("refused")):
        with site.database.writing() as session:
            score_again(session, [1])
        (row,) = rows(site)
        assert (row.state, row.score) == ("queue", 1 / len(job.content))
        finish(site.database, take(site), outcome)
        (row,) = rows(site)
        assert (row.state, row.score) == (outcome.state, 1 / len(job.content))


def test_the_same_document_counts_once(site: Site) -> None:
    site.add_team("Larks")
    rules: dict[str, Any] = {"teams": {"blue": {"submissions": 1}, "red": {}}}
    assert store(site, **rules) == (1, True)
    # Also when the quota is used up, and the score is there.
    assert store(site, **rules) == (1, False)
    job = take(site)
    finish(site.database, job, site.scorer(job))
    assert store(site, **rules) == (1, False)
    # What could not be scored does not count, and may be sent again.
    assert store(site, team=2, **rules) == (2, True)
    finish(site.database, take(site), failed("a test", "a test"))
    assert store(site, team=2, **rules) == (3, True)


def test_quotas_and_dates(site: Site) -> None:
    rules: dict[str, Any] = {"deadline": NOW.isoformat(), "time_zone": "Asia/Tokyo"}
    rules["teams"] = {"blue": {"submissions_per_day": 1}}
    for number, now in enumerate((NOW - timedelta(days=1), NOW - timedelta(hours=1))):
        assert store(site, number, now=now, **rules) == (number + 1, True)
    with pytest.raises(ContractError) as late:
        store(site, 2, now=NOW + timedelta(seconds=1), **rules)
    assert [problem.rule.partition(",")[0].partition(" were")[0] for problem in late.value.problems] == [
        "the deadline was 2026-03-01T21:00:00+09:00",
        "all of the 1 submissions allowed on 2026-03-01 (Asia/Tokyo)",
    ]
    with site.database.writing() as session:
        revoke_team(session, "Owls")
    with pytest.raises(ContractError, match="revoked"):
        store(site, 5)
    assert len(rows(site)) == 2


def test_of_submissions_at_once_no_more_count_than_are_allowed(site: Site) -> None:
    refused: list[ContractError] = []

    def store_one(number: int) -> None:
        try:
            store(site, number // 2, teams={"blue": {"submissions": 3}})
        except ContractError as error:
            refused.append(error)

    threads = [Thread(target=store_one, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    digests = [row.sha256 for row in rows(site)]
    assert len(digests) == len(set(digests)) == 3
    assert refused

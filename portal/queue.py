"""The queue of scorings: each is claimed under a lease and ends once.

A worker prolongs the lease of the scoring that it works on. When the worker dies, the lease runs out and another worker
claims the scoring with the next attempt number. Only the latest attempt can end a scoring, so a worker that was only
believed to be dead changes nothing.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import and_, or_, select, update
from sqlalchemy.orm import Session

from headstart.contract.problems import Problem
from headstart.contract.schema import Track
from headstart.output.errors import UserError
from headstart.portal.database import Database
from headstart.portal.documents import basis_key, read_bases
from headstart.portal.tables import QUEUE_ORDER, Kind, ScoringRow, State, log_event, read_scores

LEASE = timedelta(seconds=30)
MAX_TRIES = 10
# Refused documents count against no quota of submissions, so little is kept of each.
KEPT_PROBLEMS = 100


@dataclass(frozen=True)
class Job:
    """A claimed scoring.

    Attributes:
        id: Its number.
        attempt: The attempt that may end it.
        submission_id: The submission.
        kind: Which of the submission's two scores.
        track: Team of the contract, `blue` or `red`.
        basis: What it is computed from.
        content: The submitted document.
    """

    id: int
    attempt: int
    submission_id: int
    kind: Kind
    track: Track
    basis: str
    content: bytes


@dataclass(frozen=True)
class Outcome:
    """The end of a scoring.

    Attributes:
        state: `scored`, `failed`, or `refused` where the rules have changed since it was submitted.
        note: Note for the team.
        error: Error for the organisers.
        document: The content of `score.json` of a `scored` one, as JSON.
        problems: Problems for which it is refused.
    """

    state: State
    note: str = ""
    error: str = ""
    document: str = ""
    problems: list[Problem] | None = None


def failed(reason: str, error: str) -> Outcome:
    """Return the outcome of a scoring that failed.

    Args:
        reason: The reason without any name, for the team: models and stimuli may be held out.
        error: The reason, for organisers.
    """
    note = f"It could not be scored, for a reason on our side: {reason}."
    return Outcome("failed", f"{note} The organisers can read the details and score it again.", error)


def claim(database: Database, own_bases: Mapping[str, str] | None = None) -> Job | None:
    """Claim the first scoring that waits or whose lease has run out; public scores come before held-out ones.

    Args:
        database: The portal's database.
        own_bases: What the process computes scores from, by team of the contract and kind; None for a stub.

    Returns:
        The scoring; None where none is due, or no server has started yet.

    Raises:
        UserError: The server has recorded that scores are computed from something else.
    """
    now = datetime.now(UTC)
    with database.writing() as session:
        bases = read_bases(session)
        if own_bases is not None and not bases:
            return None
        if own_bases not in (None, bases):
            raise UserError(
                "settings: this worker has read other documents or rules than the server; restart both with the same "
                "settings"
            )

        abandoned = and_(ScoringRow.state == "running", ScoringRow.lease_until < now)
        query = select(ScoringRow).where(or_(ScoringRow.state == "queue", abandoned)).order_by(*QUEUE_ORDER).limit(1)
        row = session.scalar(query.with_for_update(skip_locked=True))
        if row is None:
            return None
        if row.tries >= MAX_TRIES:
            error = f"the worker ended {MAX_TRIES} times while scoring this submission"
            _end(session, row, failed(error, error), row.basis, now)
            return None

        row.state, row.lease_until = "running", now + LEASE
        row.attempt, row.tries = row.attempt + 1, row.tries + 1
        submission = row.submission
        basis = bases.get(basis_key(submission.track, row.kind), "")
        assert submission.content is not None
        return Job(row.id, row.attempt, submission.id, row.kind, submission.track, basis, submission.content)


def prolong(database: Database, job: Job) -> bool:
    """Prolong the lease of a claimed scoring; False where another attempt has it, or it is gone."""
    with database.writing() as session:
        changed = session.execute(update(ScoringRow).where(*_held(job)).values(lease_until=datetime.now(UTC) + LEASE))
        return bool(changed.rowcount)  # type: ignore[attr-defined] # of an UPDATE


def finish(database: Database, job: Job, outcome: Outcome) -> bool:
    """End a claimed scoring; False, without any change, where another attempt has it or it has ended."""
    with database.writing() as session:
        row = session.scalar(select(ScoringRow).where(*_held(job)).with_for_update())
        if row is not None:
            _end(session, row, outcome, job.basis, datetime.now(UTC))
        return row is not None


def limit_problems(problems: list[Problem], limit: int) -> list[Problem]:
    """Return the first problems, and how many others there are."""
    more = len(problems) - limit
    return [*problems[:limit], Problem("", "", f"and {more:,} more problems")] if more > 0 else problems


def _held(job: Job) -> tuple[Any, ...]:
    return ScoringRow.id == job.id, ScoringRow.attempt == job.attempt, ScoringRow.state == "running"


def _end(session: Session, row: ScoringRow, outcome: Outcome, basis: str, now: datetime) -> None:
    row.state, row.ended, row.lease_until = outcome.state, now, None
    row.note, row.error = outcome.note, outcome.error
    # What fails leaves an earlier score as it is.
    if outcome.state == "scored":
        row.basis, row.document = basis, outcome.document
        for name, number in read_scores(json.loads(outcome.document)).items():
            setattr(row, name, number)

    submission = row.submission
    if outcome.problems is not None:
        submission.problems = [asdict(each) for each in limit_problems(outcome.problems, KEPT_PROBLEMS)]
    kind = "" if row.kind == "public" else "held-out "
    score = f", {row.score:.6f}" if outcome.state == "scored" and row.score is not None else ""
    message = f"{kind}{row.state}{score}. {outcome.error}".strip()
    # Only organisers may read about held-out scores.
    public = row.kind == "public" and row.state == "scored"
    log_event(session, row.state, message, submission, public=public)

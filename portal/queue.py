"""The queue of scorings: claimed under a lease, ended once.

A scoring is claimed with a lease that its worker prolongs while it is at it. A worker that dies prolongs nothing, and
the scoring is claimed again with the next attempt number. Only the latest attempt can end it, so that a worker that was
taken for dead and was not changes nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import and_, or_, select, update
from sqlalchemy.orm import Session

from headstart.portal.database import Database, Kind, ScoringRow, State, SubmissionRow, TeamRow, record

LEASE = timedelta(seconds=30)
MOST_ATTEMPTS = 50
LONGEST_DELAY = timedelta(minutes=5)
FAILED_NOTE = "It could not be scored, for a reason of ours; the organisers see why, and can have it scored again."
# Public scores first; behind the others what has ended the process that scores several times, and may do so again.
ORDER = (ScoringRow.kind == "held_out", ScoringRow.attempt > 3, ScoringRow.id)


@dataclass(frozen=True)
class Job:
    """A claimed scoring.

    Attributes:
        id: Its number.
        attempt: The attempt that may end it.
        submission_id: What is scored.
        kind: Which of a submission's two scores.
        track: Team of the contract, `blue` or `red`.
        content: The submitted document.
    """

    id: int
    attempt: int
    submission_id: int
    kind: Kind
    track: str
    content: bytes


@dataclass(frozen=True)
class Outcome:
    """How a scoring ended.

    Attributes:
        state: `scored`, `failed`, or `refused` where the rules have changed since it was handed in.
        note: What the team is told.
        error: What organisers are told.
        numbers: `score`, `debiased`, `calibrated`, and the ends of its 95 % interval, `low` and `high`, where defined.
        document: The content of `score.json`, as JSON.
        heatmap: A picture of the matrix.
        problems: For which it is refused, JSON values.
    """

    state: State
    note: str = ""
    error: str = ""
    numbers: Mapping[str, float | None] | None = None
    document: str | None = None
    heatmap: bytes | None = None
    problems: list[dict[str, str]] | None = None


def enqueue(session: Session, submission_id: int, kind: Kind, round_number: int, now: datetime) -> None:
    """Put a scoring at the end of the queue."""
    session.add(
        ScoringRow(
            submission_id=submission_id,
            kind=kind,
            round=round_number,
            state="queue",
            attempt=0,
            queued=now,
            not_before=now,
            note="",
            error="",
        )
    )


def claim(database: Database, worker: str) -> Job | None:
    """Claim the first scoring that waits, or that nobody is at any more; public scores come before held-out ones.

    Args:
        database: The portal's.
        worker: Name of the process that claims.

    Returns:
        The scoring; None where none is to be done.
    """
    now = datetime.now(UTC)
    with database.writing() as session:
        # What is further ahead than anything is put was written by a clock that was wrong, and would wait until then.
        due = or_(ScoringRow.not_before <= now, ScoringRow.not_before > now + 2 * LONGEST_DELAY)
        not_held = or_(ScoringRow.lease_until < now, ScoringRow.lease_until > now + 2 * LONGEST_DELAY)
        waiting, left = and_(ScoringRow.state == "queue", due), and_(ScoringRow.state == "running", not_held)
        query = select(ScoringRow).where(or_(waiting, left)).order_by(*ORDER).limit(1).with_for_update(skip_locked=True)
        row = session.scalar(query)
        if row is None:
            return None
        if row.attempt >= MOST_ATTEMPTS:
            error = f"the process that scores ended {MOST_ATTEMPTS} times while it was at this submission"
            _end(session, row, Outcome("failed", FAILED_NOTE, error), now)
            return None
        row.state, row.worker, row.attempt = "running", worker, row.attempt + 1
        row.started, row.lease_until = now, now + LEASE
        submission = session.get_one(SubmissionRow, row.submission_id)
        kind: Kind = "public" if row.kind == "public" else "held_out"
        return Job(row.id, row.attempt, submission.id, kind, submission.track, submission.content)


def prolong(database: Database, job: Job) -> bool:
    """Prolong the lease of a claimed scoring; False where another attempt has it."""
    with database.writing() as session:
        held = _held(job)
        changed = session.execute(update(ScoringRow).where(*held).values(lease_until=datetime.now(UTC) + LEASE))
        return bool(changed.rowcount)  # type: ignore[attr-defined] # of an UPDATE


def put_back(database: Database, job: Job, note: str, error: str) -> None:
    """Put a claimed scoring back, to be tried again a little later, the longer the oftener it was.

    Args:
        database: The portal's.
        job: The scoring.
        note: Why, for the team.
        error: Why, for organisers.
    """
    now = datetime.now(UTC)
    delay = min(timedelta(seconds=2 ** min(job.attempt, 16)), LONGEST_DELAY)
    values = {"state": "queue", "not_before": now + delay, "note": note, "error": error, "lease_until": None}
    with database.writing() as session:
        session.execute(update(ScoringRow).where(*_held(job)).values(**values))


def free(database: Database, worker: str) -> None:
    """Let others claim what a worker that has ended was at, without waiting for its leases."""
    with database.writing() as session:
        mine = (ScoringRow.state == "running", ScoringRow.worker == worker)
        session.execute(update(ScoringRow).where(*mine).values(lease_until=datetime.now(UTC) - LEASE))


def finish(database: Database, job: Job, outcome: Outcome) -> bool:
    """End a claimed scoring; False, and nothing is changed, where another attempt has it or it has ended."""
    now = datetime.now(UTC)
    with database.writing() as session:
        row = session.scalar(select(ScoringRow).where(*_held(job)).with_for_update())
        if row is None:
            return False
        _end(session, row, outcome, now)
        return True


def _held(job: Job) -> tuple[Any, ...]:
    return ScoringRow.id == job.id, ScoringRow.attempt == job.attempt, ScoringRow.state == "running"


def _end(session: Session, row: ScoringRow, outcome: Outcome, now: datetime) -> None:
    row.state, row.ended, row.lease_until = outcome.state, now, None
    row.note, row.error = outcome.note, outcome.error
    for name, number in (outcome.numbers or {}).items():
        setattr(row, name, number)
    row.document, row.heatmap = outcome.document, outcome.heatmap
    submission = session.get_one(SubmissionRow, row.submission_id)
    if outcome.problems is not None:
        submission.refused, submission.is_refused = json.dumps(outcome.problems), True
    team = session.get_one(TeamRow, submission.team_id)
    # What is said of a held-out score is for organisers alone.
    public = row.kind == "public" and row.state == "scored"
    which = "" if row.kind == "public" else "held-out "
    shown = f"{which}{row.state}" if row.score is None else f"{which}{row.state}, {row.score:.6f}"
    message = f"Submission {submission.id} of {team.name} ({submission.track.title()} Team): {shown}."
    message = f"{message} {outcome.error}".strip()
    record(session, now, row.state, message, submission.team_id, submission.id, public)

"""Submissions are scored again: the scores that they have stand until others are there."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import UTC, datetime

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from output.errors import UserError
from portal.database import Database, Kind, ScoringRow, SubmissionRow, record
from portal.queue import enqueue
from portal.records import latest_public


def find_failed(database: Database) -> Sequence[int]:
    """Give the submissions that could not be scored."""
    return _find(database, "failed")


def find_scored(database: Database) -> Sequence[int]:
    """Give the submissions that are scored."""
    return _find(database, "scored")


def score_again(database: Database, numbers: Sequence[int], held_out: Collection[str]) -> None:
    """Put submissions into the queue again.

    Args:
        database: The portal's.
        numbers: Of the submissions.
        held_out: Teams of the contract whose submissions have a held-out score, too.

    Raises:
        UserError: There is no such submission, it was refused when it was handed in, or it is in the queue; then none
            is put into it.
    """
    now = datetime.now(UTC)
    with database.writing() as session:
        for number in numbers:
            submission = session.get(SubmissionRow, number)
            # What was valid when it was handed in, and refused by rules that changed, may be valid by mended ones.
            was_valid = session.scalar(select(ScoringRow.id).where(ScoringRow.submission_id == number).limit(1))
            if submission is None or was_valid is None:
                what = "there is none" if submission is None else "it was refused, and has no score"
                raise UserError(f"numbers: submission {number} cannot be scored again: {what}")
            _add_round(session, number, "public", now)
            if submission.track in held_out:
                _add_round(session, number, "held_out", now)
            submission.refused, submission.is_refused = None, False
            record(session, now, "rescored", f"Submission {number} is scored again.", submission.team_id, number)


def _add_round(session: Session, number: int, kind: Kind, now: datetime) -> None:
    mine = (ScoringRow.submission_id == number, ScoringRow.kind == kind)
    if session.scalar(select(ScoringRow.id).where(*mine, ScoringRow.state.in_(["queue", "running"]))) is not None:
        raise UserError(f"numbers: submission {number} cannot be scored again: it is being scored")
    last = session.scalar(select(func.max(ScoringRow.round)).where(*mine)) or 0
    enqueue(session, number, kind, last + 1, now)


def _find(database: Database, state: str) -> Sequence[int]:
    query = (
        select(SubmissionRow.id)
        .join(ScoringRow, latest_public())
        .where(ScoringRow.state == state)
        .order_by(SubmissionRow.id)
    )
    with database.reading() as session:
        return session.scalars(query).all()

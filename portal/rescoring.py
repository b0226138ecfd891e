"""Submissions are scored again: the scores that they have stand until others are there."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import UTC, datetime

from sqlalchemy import and_, func, select
from sqlalchemy.orm import Session

from headstart.output.errors import UserError
from headstart.portal.database import Database, Kind, ScoringRow, State, SubmissionRow, record
from headstart.portal.queue import enqueue

# What rows can be numbered by, in PostgreSQL.
_LARGEST = 2**31 - 1


def find_failed(database: Database) -> Sequence[int]:
    """Give the submissions of which one score or both could not be computed."""
    return _find(database, "failed", "public", "held_out")


def find_scored(database: Database) -> Sequence[int]:
    """Give the submissions that are scored."""
    return _find(database, "scored", "public")


def score_again(database: Database, numbers: Sequence[int], held_out: Collection[str]) -> int:
    """Put submissions into the queue again; of two scores the one that waits there already keeps its place.

    Args:
        database: The portal's.
        numbers: Of the submissions.
        held_out: Teams of the contract whose submissions have a held-out score, too.

    Returns:
        How many submissions these are.

    Raises:
        UserError: There is no such submission, it was refused when it was handed in, or it is in the queue; then none
            is put into it.
    """
    now, each_once = datetime.now(UTC), sorted(set(numbers))
    with database.writing() as session:
        for number in each_once:
            submission = session.get(SubmissionRow, number) if 0 < number <= _LARGEST else None
            # What was valid when it was handed in, and refused by rules that changed, may be valid by mended ones.
            if submission is None or not _has_scorings(session, number):
                what = "there is none" if submission is None else "it was refused, and has no score"
                raise UserError(f"numbers: submission {number} cannot be scored again: {what}")
            kinds: list[Kind] = ["public", "held_out"] if submission.track in held_out else ["public"]
            if not [kind for kind in kinds if _add_round(session, number, kind, now)]:
                raise UserError(f"numbers: submission {number} cannot be scored again: it is being scored")
            submission.refused, submission.is_refused = None, False
            record(session, now, "rescored", f"Submission {number} is scored again.", submission.team_id, number)
    return len(each_once)


def _has_scorings(session: Session, number: int) -> bool:
    return session.scalar(select(ScoringRow.id).where(ScoringRow.submission_id == number).limit(1)) is not None


def _add_round(session: Session, number: int, kind: Kind, now: datetime) -> bool:
    mine = (ScoringRow.submission_id == number, ScoringRow.kind == kind)
    if session.scalar(select(ScoringRow.id).where(*mine, ScoringRow.state.in_(["queue", "running"]))) is not None:
        return False
    last = session.scalar(select(func.max(ScoringRow.round)).where(*mine)) or 0
    enqueue(session, number, kind, last + 1, now)
    return True


def _find(database: Database, state: State, *kinds: Kind) -> Sequence[int]:
    """Give the submissions of which the latest scoring of one of some kinds is in a state."""
    latest = (
        select(ScoringRow.submission_id, ScoringRow.kind, func.max(ScoringRow.round).label("round"))
        .where(ScoringRow.kind.in_(kinds))
        .group_by(ScoringRow.submission_id, ScoringRow.kind)
        .subquery()
    )
    mine = (
        ScoringRow.submission_id == latest.c.submission_id,
        ScoringRow.kind == latest.c.kind,
        ScoringRow.round == latest.c.round,
    )
    query = (
        select(ScoringRow.submission_id)
        .join(latest, and_(*mine))
        .where(ScoringRow.state == state)
        .distinct()
        .order_by(ScoringRow.submission_id)
    )
    with database.reading() as session:
        return session.scalars(query).all()

"""Scoring submissions again: their scores stand until new ones replace them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import UTC, datetime

from sqlalchemy import and_, func, select

from headstart.output.errors import UserError
from headstart.portal.records.database import Database
from headstart.portal.records.log import log_event
from headstart.portal.records.tables import Kind, ScoringRow, State, SubmissionRow
from headstart.portal.work.queue import enqueue

# The largest key of a row in PostgreSQL.
_MAX_NUMBER = 2**31 - 1


def find_submissions(database: Database, state: State, *kinds: Kind) -> Sequence[int]:
    """Return the submissions whose latest scoring of one of some kinds is in a state."""
    latest = (
        select(ScoringRow.submission_id, ScoringRow.kind, func.max(ScoringRow.round).label("round"))
        .where(ScoringRow.kind.in_(kinds))
        .group_by(ScoringRow.submission_id, ScoringRow.kind)
        .subquery()
    )
    same_scoring = and_(
        ScoringRow.submission_id == latest.c.submission_id,
        ScoringRow.kind == latest.c.kind,
        ScoringRow.round == latest.c.round,
    )
    query = (
        select(ScoringRow.submission_id)
        .join(latest, same_scoring)
        .where(ScoringRow.state == state)
        .distinct()
        .order_by(ScoringRow.submission_id)
    )
    with database.reading() as session:
        return session.scalars(query).all()


def score_again(database: Database, numbers: Sequence[int], held_out: Collection[str]) -> int:
    """Return submissions to the queue; a score that is already waiting there keeps its position.

    Args:
        database: The portal's database.
        numbers: Numbers of the submissions.
        held_out: Teams of the contract whose submissions also have a held-out score.

    Returns:
        The number of submissions.

    Raises:
        UserError: A submission does not exist, was refused when it was handed in, or is in the queue; then none is
            queued.
    """
    now, unique = datetime.now(UTC), sorted(set(numbers))
    with database.writing() as session:
        for number in unique:
            submission = session.get(SubmissionRow, number) if 0 < number <= _MAX_NUMBER else None
            if submission is None:
                raise _impossible(number, "there is none")

            # A submission that changed rules refused may be valid again; one refused on arrival has no scoring.
            query = select(ScoringRow.kind, ScoringRow.state, ScoringRow.round)
            scorings = session.execute(query.where(ScoringRow.submission_id == number)).all()
            if not scorings:
                raise _impossible(number, "it was refused, and has no score")

            kinds: list[Kind] = ["public", "held_out"] if submission.track in held_out else ["public"]
            pending = {kind for kind, state, _ in scorings if state in {"queue", "running"}}
            if pending.issuperset(kinds):
                raise _impossible(number, "it is being scored")
            for kind in kinds:
                if kind not in pending:
                    last = max((rounds for each, _, rounds in scorings if each == kind), default=0)
                    enqueue(session, number, kind, last + 1, now)

            submission.refused, submission.is_refused = None, False
            log_event(session, now, "rescored", f"Submission {number} is scored again.", submission.team_id, number)
    return len(unique)


def _impossible(number: int, reason: str) -> UserError:
    return UserError(f"numbers: submission {number} cannot be scored again: {reason}")

"""What counts against quotas, so that no attempt is lost or spent by accident."""

import hashlib
from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import ColumnElement, and_, func, select
from sqlalchemy.orm import Session

from headstart.contract.schema import Team as Track
from headstart.portal.records.submissions import Record, find_record
from headstart.portal.records.tables import ScoringRow, SubmissionRow


def counts_against_quota() -> ColumnElement[bool]:
    """Return the condition of submissions that count against quotas: a score was computed, or still may be.

    Withdrawing a submission that has been scored returns no quota, also while it is scored again.
    """
    kept = (ScoringRow.kind == "public", ScoringRow.state.in_(["queue", "running", "scored"]))
    has_one = select(ScoringRow.id).where(ScoringRow.submission_id == SubmissionRow.id, *kept).correlate(SubmissionRow)
    return and_(SubmissionRow.is_refused.is_(False), has_one.exists())


def find_same(session: Session, team_id: int | None, phase: str, track: Track, content: bytes) -> Record | None:
    """Return the latest submission of the same document that counted against a quota, if there is one.

    Args:
        session: Session of the portal's database.
        team_id: The participant; None for nobody, who has none.
        phase: Phase of the challenge.
        track: Team of the contract.
        content: The document. One with another order or other spaces is another document.
    """
    alike = (SubmissionRow.sha256 == hashlib.sha256(content).hexdigest(), *_counted(team_id, phase, track))
    number = session.scalar(select(func.max(SubmissionRow.id)).where(*alike))
    return None if number is None else find_record(session, number)


def counted_times(session: Session, team_id: int, phase: str, track: Track) -> Sequence[datetime]:
    """Return the times of a team's submissions that count against quotas."""
    return session.scalars(select(SubmissionRow.received).where(*_counted(team_id, phase, track))).all()


def _counted(team_id: int | None, phase: str, track: Track) -> tuple[ColumnElement[bool], ...]:
    own = (SubmissionRow.team_id == team_id, SubmissionRow.phase == phase, SubmissionRow.track == track)
    return *own, counts_against_quota()

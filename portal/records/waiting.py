"""The queue at one moment: positions in it, when a scoring is expected to end, and whether anything is at work."""

import math
from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import fmean

from sqlalchemy import and_, func, or_, select
from sqlalchemy.orm import Session

from headstart.portal.records.tables import QUEUE_ORDER, ScoringRow, SubmissionRow

# Without any sign of a process for so long, none is at work.
LATELY = timedelta(minutes=10)
RECENT = 60


@dataclass(frozen=True)
class Queue:
    """The queue of public scores.

    Attributes:
        now: The time.
        positions: Positions by scoring, from 1 on.
        is_stalled: Whether scorings wait and nothing is at work.
        running: Number of scorings that run: each process is at one, while something waits.
        usual: Mean seconds of the latest scorings by phase and team of the contract.
    """

    now: datetime
    positions: dict[int, int]
    is_stalled: bool
    running: int
    usual: dict[tuple[str, str], float]

    def expect(self, submission: SubmissionRow, scoring: ScoringRow) -> float | None:
        """Return in how many seconds a scoring is expected to end; None where nothing is known."""
        usual, position = self.usual.get((submission.phase, submission.track)), self.positions.get(scoring.id)
        if usual is None or self.is_stalled:
            return None
        if scoring.state == "running" and scoring.started is not None:
            left = usual - (self.now - scoring.started).total_seconds()
            return left if left > 0 else None
        return None if position is None else usual * math.ceil((position + self.running) / max(self.running, 1))


def read_queue(session: Session, now: datetime) -> Queue:
    """Read the queue."""
    waiting = select(ScoringRow.id).where(ScoringRow.state == "queue", ScoringRow.kind == "public")
    positions = {number: place for place, number in enumerate(session.scalars(waiting.order_by(*QUEUE_ORDER)), start=1)}
    # A process that died is at nothing any more.
    at_work = select(func.count()).where(ScoringRow.state == "running", ScoringRow.lease_until > now)
    times: dict[tuple[str, str], list[float]] = {}
    scored = (
        select(SubmissionRow.phase, SubmissionRow.track, ScoringRow.started, ScoringRow.ended)
        .join(SubmissionRow, SubmissionRow.id == ScoringRow.submission_id)
        .where(ScoringRow.state == "scored", ScoringRow.kind == "public")
        .order_by(ScoringRow.id.desc())
        .limit(RECENT)
    )
    for phase, track, start, end in session.execute(scored):
        assert start is not None
        assert end is not None
        times.setdefault((phase, track), []).append((end - start).total_seconds())
    usual = {key: fmean(seconds) for key, seconds in times.items()}
    return Queue(now, positions, is_stalled(session, now), session.scalar(at_work) or 0, usual)


def is_stalled(session: Session, now: datetime) -> bool:
    """Whether a scoring has been due for ten minutes, and no process has begun, prolonged or ended one meanwhile."""
    since = now - LATELY
    waiting = and_(ScoringRow.state == "queue", ScoringRow.not_before < since)
    abandoned = and_(ScoringRow.state == "running", ScoringRow.lease_until < since)
    # What a team or organisers cancel is no sign of a process.
    ended = and_(ScoringRow.ended > since, ScoringRow.state != "cancelled")
    signs = or_(ScoringRow.started > since, ended, ScoringRow.lease_until > since)
    is_due, has_sign = (select(ScoringRow.id).where(each).limit(1) for each in (or_(waiting, abandoned), signs))
    return session.scalar(is_due) is not None and session.scalar(has_sign) is None

"""What pages and the interface for programs show of submissions and of the log."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, case, func, literal, select
from sqlalchemy.orm import Session, aliased, undefer

from headstart.portal.database import EventRow, ScoringRow, SubmissionRow, TeamRow
from headstart.portal.queue import ORDER

LOG_LINES = 100
# Whose program hands in all day what is refused is to hold up nobody, not even with the list of it.
LIST_LINES = 100


@dataclass(frozen=True)
class Record:
    """A submission as its team sees it.

    Attributes:
        id: Its number.
        team: Who handed it in.
        track: Team of the contract.
        received: When it was handed in.
        state: `queue`, `running`, `scored`, `refused` or `failed`.
        place: Place in the queue, from 1 on; None where it is not in it.
        note: What else is to be said of its state.
        problems: For which it was refused.
        score: The public score, as of `headstart.portal.leaderboard.Standing`, and so are the rest.
        debiased: By the debiased estimate.
        calibrated: Calibrated against chance.
        low: Lower end of the score's interval.
        high: Its upper end.
        ended: When it was scored, or failed.
        sha256: Digest of the document.
    """

    id: int
    team: str
    track: str
    received: datetime
    state: str
    place: int | None
    note: str
    problems: list[dict[str, str]]
    score: float | None
    debiased: float | None
    calibrated: float | None
    low: float | None
    high: float | None
    ended: datetime | None
    sha256: str

    @property
    def is_waiting(self) -> bool:
        """Whether its state is going to change by itself."""
        return self.state in {"queue", "running"}


def latest_public() -> ColumnElement[bool]:
    """Give the condition on which a submission's latest public scoring is joined to it."""
    later = aliased(ScoringRow)
    last = select(func.max(later.round)).where(later.submission_id == SubmissionRow.id, later.kind == "public")
    return and_(
        ScoringRow.submission_id == SubmissionRow.id,
        ScoringRow.kind == "public",
        ScoringRow.round == last.scalar_subquery(),
    )


def find_record(session: Session, submission_id: int) -> Record | None:
    """Give the submission of a number; None where there is none."""
    query = _records().options(undefer(SubmissionRow.refused)).where(SubmissionRow.id == submission_id)
    return next(iter(_read(session, query)), None)


def find_records(session: Session, team_id: int, before: int | None, with_problems: bool) -> tuple[list[Record], bool]:
    """Give the submissions of a participant, the latest first.

    Args:
        session: Of the portal's database.
        team_id: The participant.
        before: Only those of lower numbers; None for the latest.
        with_problems: Whether they have the problems for which they were refused.

    Returns:
        At most 100, and whether there are earlier ones.
    """
    query = _records().where(SubmissionRow.team_id == team_id).limit(LIST_LINES + 1)
    if before is not None:
        query = query.where(SubmissionRow.id < before)
    if with_problems:
        query = query.options(undefer(SubmissionRow.refused))
    found = _read(session, query, with_problems)
    return found[:LIST_LINES], len(found) > LIST_LINES


def _records() -> Select[SubmissionRow, str, ScoringRow]:
    return (
        select(SubmissionRow, TeamRow.name, ScoringRow)
        .join(TeamRow, TeamRow.id == SubmissionRow.team_id)
        .outerjoin(ScoringRow, latest_public())
        .order_by(SubmissionRow.id.desc())
    )


def _read(session: Session, query: Select[SubmissionRow, str, ScoringRow], with_problems: bool = True) -> list[Record]:
    found = session.execute(query).all()
    waiting = any(scoring is not None and scoring.state == "queue" for _, _, scoring in found)
    places = _places(session) if waiting else {}
    return [_record(row, name, scoring, places, with_problems) for row, name, scoring in found]


def find_document(session: Session, submission_id: int) -> tuple[dict[str, Any], bool] | None:
    """Give the content of the latest `score.json` of a submission, and whether there is a picture; None without one."""
    query = (
        select(ScoringRow.document, ScoringRow.heatmap.is_not(None))
        .where(ScoringRow.submission_id == submission_id, ScoringRow.kind == "public", ScoringRow.state == "scored")
        .order_by(ScoringRow.round.desc())
        .limit(1)
    )
    row = session.execute(query).one_or_none()
    return None if row is None or row[0] is None else (json.loads(row[0]), row[1])


def find_heatmap(session: Session, submission_id: int) -> bytes | None:
    """Give the picture of a submission's latest public scoring as PNG."""
    query = (
        select(ScoringRow.heatmap)
        .where(ScoringRow.submission_id == submission_id, ScoringRow.kind == "public", ScoringRow.state == "scored")
        .order_by(ScoringRow.round.desc())
        .limit(1)
    )
    return session.scalar(query)


def read_log(session: Session, count: int = LOG_LINES) -> Sequence[EventRow]:
    """Give the latest lines of the log that everybody may read, the latest first."""
    query = select(EventRow).where(EventRow.public.is_(True)).order_by(EventRow.id.desc()).limit(count)
    return session.scalars(query).all()


def count_states(session: Session) -> dict[str, int]:
    """Count submissions by state."""
    state = case((SubmissionRow.is_refused, literal("refused")), else_=ScoringRow.state)
    query = select(state, func.count()).outerjoin(ScoringRow, latest_public()).group_by(state)
    return {name: count for name, count in session.execute(query) if name is not None}


def _places(session: Session) -> dict[int, int]:
    """Give the places in the queue by scoring."""
    query = select(ScoringRow.id).where(ScoringRow.state == "queue", ScoringRow.kind == "public").order_by(*ORDER)
    return {number: place for place, number in enumerate(session.scalars(query), start=1)}


def _record(
    row: SubmissionRow, team: str, scoring: ScoringRow | None, places: dict[int, int], with_problems: bool
) -> Record:
    return Record(
        id=row.id,
        team=team,
        track=row.track,
        received=row.received,
        state="refused" if row.is_refused or scoring is None else scoring.state,
        place=None if scoring is None else places.get(scoring.id),
        note="" if scoring is None else scoring.note,
        problems=json.loads(row.refused or "[]") if with_problems else [],
        score=None if scoring is None else scoring.score,
        debiased=None if scoring is None else scoring.debiased,
        calibrated=None if scoring is None else scoring.calibrated,
        low=None if scoring is None else scoring.low,
        high=None if scoring is None else scoring.high,
        ended=None if scoring is None else scoring.ended,
        sha256=row.sha256,
    )

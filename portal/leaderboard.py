"""The leaderboard: which of a team's scores stands, and in which place."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from headstart.contract.challenge import Challenge, choose_standing
from headstart.contract.schema import Team as Track
from headstart.portal.database import ScoringRow, SubmissionRow, TeamRow

# Of a scoring, in the order of `_Scored`.
SCORES: tuple[Any, ...] = (
    ScoringRow.score,
    ScoringRow.debiased,
    ScoringRow.calibrated,
    ScoringRow.low,
    ScoringRow.high,
)


@dataclass(frozen=True)
class Standing:
    """One line of the leaderboard.

    Attributes:
        rank: Place; equal scores share the better one.
        team: The participant.
        submission_id: The submission whose score stands.
        score: The public score.
        debiased: By the debiased estimate; None where that is undefined.
        calibrated: Calibrated against chance; None where that is not computed.
        low: Lower end of the score's 95 % interval over stimuli; None where it has none.
        high: Its upper end.
        held_out: The held-out score; None before it may be shown, and where there is none.
        received: When the submission was handed in.
        submissions: How many of the participant's submissions are scored.
    """

    rank: int
    team: str
    submission_id: int
    score: float
    debiased: float | None
    calibrated: float | None
    low: float | None
    high: float | None
    held_out: float | None
    received: datetime
    submissions: int


def rank_teams(session: Session, challenge: Challenge, track: Track, show_held_out: bool) -> list[Standing]:
    """Rank participants.

    Args:
        session: Of the portal's database.
        challenge: The challenge, which says whether the best or the last score of a participant stands.
        track: Team of the contract.
        show_held_out: Whether held-out scores are shown, and decide the order. Which submission stands is decided by
            public scores alone: nobody could choose by what nobody saw.

    Returns:
        The lines, from the first place on.
    """
    rules = challenge.rules(track)
    if rules is None:
        return []
    by_team: dict[int, list[_Scored]] = {}
    for scored in _read(session, track):
        by_team.setdefault(scored.team_id, []).append(scored)
    held_out = _read_held_out(session, track) if show_held_out else {}
    chosen: list[tuple[_Scored, int]] = []
    for group in by_team.values():
        place = choose_standing(rules, [each.score for each in group])
        if place is not None:
            chosen.append((group[place], len(group)))

    def decisive(each: _Scored) -> tuple[bool, float]:
        value = held_out.get(each.submission_id) if show_held_out else each.score
        # Those whose held-out score is not there yet come last, by their public one.
        return (value is None, -(each.score if value is None else value))

    chosen.sort(key=lambda pair: (*decisive(pair[0]), pair[0].received, pair[0].submission_id))
    keys = [decisive(each) for each, _ in chosen]
    return [
        Standing(
            rank=keys.index(decisive(each)) + 1,
            team=each.team,
            submission_id=each.submission_id,
            score=each.score,
            debiased=each.debiased,
            calibrated=each.calibrated,
            low=each.low,
            high=each.high,
            held_out=held_out.get(each.submission_id),
            received=each.received,
            submissions=count,
        )
        for each, count in chosen
    ]


class Leaderboard:
    """The leaderboard as it was last ranked, until something happens.

    Args:
        challenge: The challenge.
    """

    def __init__(self, challenge: Challenge) -> None:
        self._challenge = challenge
        self._lock = threading.Lock()
        self._ranked: dict[tuple[Track, bool], tuple[int, list[Standing]]] = {}

    def standings(self, session: Session, track: Track, show_held_out: bool) -> list[Standing]:
        """Give the lines; arguments as of `rank_teams`."""
        # What has ended stays so, and is counted once it can be seen; the highest number may be seen before lower ones.
        query = select(func.count()).select_from(ScoringRow).where(ScoringRow.state.in_(["scored", "refused"]))
        ended = session.scalar(query) or 0
        # Of many readers who come after a change one ranks.
        with self._lock:
            there = self._ranked.get((track, show_held_out))
            if there is None or there[0] < ended:
                there = ended, rank_teams(session, self._challenge, track, show_held_out)
                self._ranked[track, show_held_out] = there
            return there[1]


@dataclass(frozen=True)
class _Scored:
    submission_id: int
    team_id: int
    team: str
    received: datetime
    score: float
    debiased: float | None
    calibrated: float | None
    low: float | None
    high: float | None


def _read(session: Session, track: Track) -> Sequence[_Scored]:
    """Give the scored submissions in the order in which they were handed in, each by its latest scoring."""
    query = (
        select(SubmissionRow.id, SubmissionRow.team_id, TeamRow.name, SubmissionRow.received, *SCORES)
        .join(ScoringRow, ScoringRow.submission_id == SubmissionRow.id)
        .join(TeamRow, TeamRow.id == SubmissionRow.team_id)
        .where(SubmissionRow.track == track, ScoringRow.kind == "public", ScoringRow.state == "scored")
        # One that was scored under rules that have changed since may be refused when it is scored again.
        .where(SubmissionRow.is_refused.is_(False))
        .order_by(SubmissionRow.id, ScoringRow.round)
    )
    # Of several rounds the last one.
    return list({row[0]: _Scored(*row) for row in session.execute(query)}.values())


def _read_held_out(session: Session, track: Track) -> dict[int, float]:
    query = (
        select(SubmissionRow.id, ScoringRow.score)
        .join(ScoringRow, ScoringRow.submission_id == SubmissionRow.id)
        .where(SubmissionRow.track == track, ScoringRow.kind == "held_out", ScoringRow.state == "scored")
        .order_by(ScoringRow.round)
    )
    return {submission: score for submission, score in session.execute(query) if score is not None}

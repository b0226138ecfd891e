"""The leaderboard: which of a participant's scores stands, and its rank."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from sqlalchemy import Row, func, select
from sqlalchemy.orm import Session

from headstart.contract.challenge import Challenge, choose_standing
from headstart.contract.schema import Team as Track
from headstart.portal.records.scores import Scores
from headstart.portal.records.tables import ScoringRow, SubmissionRow, TeamRow


@dataclass(frozen=True)
class Standing:
    """One line of the leaderboard.

    Attributes:
        rank: Rank from 1 on; equal scores share the better one.
        team: The participant.
        submission_id: The submission whose score stands.
        scores: The public scores.
        held_out: The held-out score; None before it may be shown, and where there is none.
        received: Time at which the submission was received.
        submissions: Number of the participant's scored submissions.
    """

    rank: int
    team: str
    submission_id: int
    scores: Scores
    held_out: float | None
    received: datetime
    submissions: int

    def as_json(self, with_held_out: bool) -> dict[str, Any]:
        """Return the line under the names of the JSON interface."""
        line = {
            "rank": self.rank,
            "participant": self.team,
            "submission": self.submission_id,
            **self.scores.as_json(),
            "received": self.received.isoformat(),
            "submissions": self.submissions,
        }
        return {**line, "held_out_score": self.held_out} if with_held_out else line


def rank_teams(session: Session, challenge: Challenge, track: Track, show_held_out: bool) -> list[Standing]:
    """Rank participants.

    Args:
        session: Session of the portal's database.
        challenge: The challenge, whose rules choose the best or the last score of a participant.
        track: Team of the contract.
        show_held_out: Whether held-out scores are shown and decide the order. Public scores alone choose the submission
            that stands: no participant could choose by a hidden score.

    Returns:
        The lines, best rank first.
    """
    rules = challenge.rules(track)
    if rules is None:
        return []
    by_team: dict[int, list[Row[*tuple[Any, ...]]]] = {}
    for row in _read_scored(session, track):
        by_team.setdefault(row.team_id, []).append(row)
    held_out = _read_held_out(session, track) if show_held_out else {}

    standings = []
    for group in by_team.values():
        index = choose_standing(rules, [row.scores.score for row in group])
        if index is not None:
            row = group[index]
            line = Standing(0, row.name, row.id, row.scores, held_out.get(row.id), row.received, len(group))
            standings.append(line)

    def decisive(each: Standing) -> tuple[bool, float]:
        score = each.scores.score if each.held_out is None else each.held_out
        # Participants whose held-out score is still missing come last, ordered by their public score.
        return show_held_out and each.held_out is None, -(score or 0.0)

    standings.sort(key=lambda each: (*decisive(each), each.received, each.submission_id))
    keys = [decisive(each) for each in standings]
    return [replace(each, rank=keys.index(key) + 1) for each, key in zip(standings, keys, strict=True)]


def count_ended(session: Session) -> int:
    """Count the scorings that have ended in a way that may change the leaderboard."""
    # A count, since a scoring of a higher number may become visible before one of a lower number.
    query = select(func.count()).select_from(ScoringRow).where(ScoringRow.state.in_(["scored", "refused"]))
    return session.scalar(query) or 0


def _read_scored(session: Session, track: Track) -> Sequence[Row[*tuple[Any, ...]]]:
    """Return the scored submissions in the order of their numbers, each with its latest public scores."""
    query = (
        select(SubmissionRow.id, SubmissionRow.team_id, TeamRow.name, SubmissionRow.received, ScoringRow.scores)
        .join(ScoringRow, ScoringRow.submission_id == SubmissionRow.id)
        .join(TeamRow, TeamRow.id == SubmissionRow.team_id)
        .where(SubmissionRow.track == track, ScoringRow.kind == "public", ScoringRow.state == "scored")
        # A submission may be refused when it is scored again under changed rules.
        .where(SubmissionRow.is_refused.is_(False))
        .order_by(SubmissionRow.id, ScoringRow.round)
    )
    # The last round replaces earlier ones.
    return list({row.id: row for row in session.execute(query)}.values())


def _read_held_out(session: Session, track: Track) -> dict[int, float]:
    """Return the latest held-out score by submission."""
    query = (
        select(SubmissionRow.id, ScoringRow.scores)
        .join(ScoringRow, ScoringRow.submission_id == SubmissionRow.id)
        .where(SubmissionRow.track == track, ScoringRow.kind == "held_out", ScoringRow.state == "scored")
        .order_by(ScoringRow.round)
    )
    return {number: scores.score for number, scores in session.execute(query) if scores.score is not None}

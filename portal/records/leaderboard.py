"""The leaderboard: which of a participant's scores stands, and its rank."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Row, and_, func, select
from sqlalchemy.orm import Session

from headstart.contract.challenge import Challenge, choose_standing
from headstart.contract.schema import Team as Track
from headstart.portal.records.scores import Scores
from headstart.portal.records.tables import EventRow, ScoringRow, SubmissionRow, TeamRow

# Kinds of events after which the leaderboard may be another one.
CHANGES = ("scored", "refused", "rescored", "withdrawn", "disqualified", "reinstated", "chosen")
# Scores that differ by less are equal: the mean over the same models in another order may differ in the last bit.
DECIMALS = 9


@dataclass(frozen=True)
class Standing:
    """One line of the leaderboard.

    Attributes:
        rank: Rank from 1 on.
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


def rank_teams(
    session: Session, challenge: Challenge, track: Track, bases: Mapping[str, str]
) -> tuple[list[Standing], int]:
    """Rank participants by scores of the same documents and rules.

    Args:
        session: Session of the portal's database.
        challenge: The challenge, whose rules choose which score of a participant stands, and order equal scores.
        track: Team of the contract.
        bases: The basis of scores by kind. With `held_out`, held-out scores are shown and decide the order. Public
            scores alone choose the submission that stands: no participant could choose by a hidden score.

    Returns:
        The lines, the best rank first, and the number of submissions with scores that do not count, because they are
        of other documents or rules.
    """
    rules = challenge.rules(track)
    if rules is None:
        return [], 0
    current: dict[str, dict[int, Row[*tuple[Any, ...]]]] = {}
    held_back: set[int] = set()
    for kind, basis in bases.items():
        latest = _read_latest(session, challenge.name, track, kind)
        current[kind] = {number: row for number, row in latest.items() if row.basis == basis}
        held_back |= set(latest) - set(current[kind])
    show_held_out, held_out = "held_out" in bases, current.get("held_out", {})

    by_team: dict[int, list[Row[*tuple[Any, ...]]]] = {}
    for row in current["public"].values():
        by_team.setdefault(row.team_id, []).append(row)
    standings = []
    for group in by_team.values():
        chosen = next((index for index, row in enumerate(group) if row.chosen), None)
        row = group[choose_standing(rules, [round(row.scores.score, DECIMALS) for row in group], chosen)]
        hidden = held_out[row.id].scores.score if row.id in held_out else None
        standings.append(Standing(0, row.name, row.id, row.scores, hidden, row.received, len(group)))

    def decisive(each: Standing) -> tuple[bool, float]:
        score = each.scores.score if each.held_out is None else each.held_out
        # Participants whose held-out score is still missing come last, ordered by their public score.
        return show_held_out and each.held_out is None, -round(score or 0.0, DECIMALS)

    standings.sort(key=lambda each: (*decisive(each), each.received, each.submission_id))
    keys = [decisive(each) if challenge.ties == "shared" else index for index, each in enumerate(standings)]
    ranked = [replace(each, rank=keys.index(key) + 1) for each, key in zip(standings, keys, strict=True)]
    return ranked, len(held_back)


def counts_on_board() -> ColumnElement[bool]:
    """Return the condition of submissions that may stand on the leaderboard."""
    # A submission may be refused when it is scored again under changed rules.
    return and_(
        SubmissionRow.is_refused.is_(False), SubmissionRow.withdrawn.is_(None), SubmissionRow.disqualified.is_(None)
    )


def read_disqualified(session: Session, phase: str, track: Track) -> list[tuple[int, str, str]]:
    """Return number, participant and reason of each disqualified submission of a phase and team of the contract."""
    query = (
        select(SubmissionRow.id, TeamRow.name, SubmissionRow.disqualified)
        .join(TeamRow, TeamRow.id == SubmissionRow.team_id)
        .where(SubmissionRow.phase == phase, SubmissionRow.track == track, SubmissionRow.disqualified.is_not(None))
        .order_by(SubmissionRow.id)
    )
    return [(number, team, reason or "") for number, team, reason in session.execute(query)]


def count_changes(session: Session) -> int:
    """Count the events that may have changed the leaderboard."""
    # A count, since an event of a higher number may become visible before one of a lower number.
    return session.scalar(select(func.count()).select_from(EventRow).where(EventRow.kind.in_(CHANGES))) or 0


def _read_latest(session: Session, phase: str, track: Track, kind: str) -> dict[int, Row[*tuple[Any, ...]]]:
    """Return the latest scores of a kind by submission, in the order of their numbers."""
    query = (
        select(
            SubmissionRow.id,
            SubmissionRow.team_id,
            SubmissionRow.received,
            SubmissionRow.chosen,
            TeamRow.name,
            ScoringRow.basis,
            ScoringRow.scores,
        )
        .join(ScoringRow, ScoringRow.submission_id == SubmissionRow.id)
        .join(TeamRow, TeamRow.id == SubmissionRow.team_id)
        .where(SubmissionRow.phase == phase, SubmissionRow.track == track, counts_on_board())
        .where(ScoringRow.kind == kind, ScoringRow.state == "scored")
        .order_by(SubmissionRow.id, ScoringRow.round)
    )
    # The last round replaces earlier ones.
    return {row.id: row for row in session.execute(query)}

"""The leaderboard: which of a participant's scores stands, and its rank."""

from collections.abc import Mapping, Sequence
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
CHANGES = ("scored", "refused", "withdrawn", "disqualified", "reinstated", "chosen", "team revoked")


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


@dataclass(frozen=True)
class Ranking:
    """A ranked leaderboard.

    Attributes:
        standings: Its lines, the best rank first.
        held_back: Number of submissions with scores that do not count, because they are of other documents or rules.
    """

    standings: list[Standing]
    held_back: int


def rank_teams(session: Session, challenge: Challenge, track: Track, bases: Mapping[str, str]) -> Ranking:
    """Rank participants by scores of the same documents and rules.

    Args:
        session: Session of the portal's database.
        challenge: The challenge, whose rules choose which score of a participant stands, and order equal scores.
        track: Team of the contract.
        bases: The basis of scores by kind. With `held_out`, held-out scores are shown and decide the order. Public
            scores alone choose the submission that stands: no participant could choose by a hidden score.
    """
    rules = challenge.rules(track)
    if rules is None:
        return Ranking([], 0)
    scored = _read_scored(session, challenge.name, track)
    # The last round replaces earlier ones.
    current = {row.id: row for row in scored if row.basis == bases["public"]}
    by_team: dict[int, list[Row[*tuple[Any, ...]]]] = {}
    for row in current.values():
        by_team.setdefault(row.team_id, []).append(row)
    show_held_out = "held_out" in bases
    hidden = _read_held_out(session, challenge.name, track) if show_held_out else []
    held_out = {row.id: row.scores.score for row in hidden if row.basis == bases["held_out"]}
    held_back = {row.id for row in scored} - set(current) | {row.id for row in hidden if row.id in current} - set(
        held_out
    )

    standings = []
    for group in by_team.values():
        chosen = next((index for index, row in enumerate(group) if row.chosen), None)
        index = choose_standing(rules, [row.scores.score for row in group], chosen)
        if index is not None:
            row = group[index]
            line = Standing(0, row.name, row.id, row.scores, held_out.get(row.id), row.received, len(group))
            standings.append(line)

    def decisive(each: Standing) -> tuple[bool, float]:
        score = each.scores.score if each.held_out is None else each.held_out
        # Participants whose held-out score is still missing come last, ordered by their public score.
        return show_held_out and each.held_out is None, -(score or 0.0)

    standings.sort(key=lambda each: (*decisive(each), each.received, each.submission_id))
    keys = [decisive(each) if challenge.ties == "shared" else index for index, each in enumerate(standings)]
    ranked = [replace(each, rank=keys.index(key) + 1) for each, key in zip(standings, keys, strict=True)]
    return Ranking(ranked, len(held_back))


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


def _read_scored(session: Session, phase: str, track: Track) -> Sequence[Row[*tuple[Any, ...]]]:
    """Return the public scores of submissions in the order of their numbers and rounds."""
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
        .where(ScoringRow.kind == "public", ScoringRow.state == "scored")
        .order_by(SubmissionRow.id, ScoringRow.round)
    )
    return session.execute(query).all()


def _read_held_out(session: Session, phase: str, track: Track) -> Sequence[Row[*tuple[Any, ...]]]:
    """Return the held-out scores of submissions in the order of their rounds."""
    query = (
        select(SubmissionRow.id, ScoringRow.basis, ScoringRow.scores)
        .join(ScoringRow, ScoringRow.submission_id == SubmissionRow.id)
        .where(SubmissionRow.phase == phase, SubmissionRow.track == track)
        .where(ScoringRow.kind == "held_out", ScoringRow.state == "scored")
        .order_by(ScoringRow.round)
    )
    return session.execute(query).all()

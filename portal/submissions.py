"""Submissions and the leaderboard, as pages, programs and files show them."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Row, case, func, literal, select
from sqlalchemy.orm import Session

from headstart.contract.schema import Team as Track
from headstart.portal.documents import Documents, basis_key, read_bases
from headstart.portal.tables import QUEUE_ORDER, Kind, Scores, ScoringRow, State, SubmissionRow, TeamRow

# A program may submit invalid documents all day, and their list must not slow the portal down.
PAGE_LENGTH = 100
# Scores that differ by less are equal: the mean over the same models in another order may differ in the last bit.
DECIMALS = 9


@dataclass(frozen=True)
class Record:
    """A submission as its team sees it.

    Attributes:
        submission: The submission.
        team: The participant who submitted it.
        scoring: Its public scoring; an empty one for a submission that was refused on arrival.
        position: Position in the queue, from 1 on; None if it does not wait.
        is_held_back: Whether its score does not count, because it is of other documents or rules than today's.
    """

    submission: SubmissionRow
    team: str
    scoring: ScoringRow
    position: int | None
    is_held_back: bool

    @property
    def state(self) -> State:
        """`queue`, `running`, `scored`, `refused` or `failed`."""
        return "refused" if self.submission.problems else self.scoring.state

    @property
    def is_waiting(self) -> bool:
        """Whether its state is going to change by itself."""
        return self.state in {"queue", "running"}

    def as_json(self) -> dict[str, Any]:
        """Return the submission as its team may read it."""
        return {
            **submission_as_json(self.submission, self.team),
            "state": self.state,
            "held_back": self.is_held_back,
            "place_in_queue": self.position,
            "note": self.scoring.note,
            **self.scoring.scores.as_json(),
            "ended": self.scoring.ended and self.scoring.ended.isoformat(),
        }


def submission_as_json(submission: SubmissionRow, team: str) -> dict[str, Any]:
    """Return what a submission is, without its scorings."""
    return {
        "id": submission.id,
        "participant": team,
        "team": submission.track,
        "received": submission.received.isoformat(),
        "sha256": submission.sha256,
        "hidden": submission.hidden,
        "problems": [asdict(problem) for problem in submission.problems or []],
    }


def read_records(session: Session, *conditions: ColumnElement[bool], before: int | None = None) -> list[Record]:
    """Return the latest 100 submissions that fulfil conditions, the latest first.

    Args:
        session: Session of the portal's database.
        *conditions: The conditions, such as `SubmissionRow.team_id == 1`.
        before: Only submissions of lower numbers; None for the latest.
    """
    public = (ScoringRow.submission_id == SubmissionRow.id) & (ScoringRow.kind == "public")
    query = (
        select(SubmissionRow, TeamRow.name, ScoringRow)
        .join(TeamRow, TeamRow.id == SubmissionRow.team_id)
        .outerjoin(ScoringRow, public)
        .where(*conditions, *([] if before is None else [SubmissionRow.id < before]))
        .order_by(SubmissionRow.id.desc())
        .limit(PAGE_LENGTH)
    )
    rows = session.execute(query).all()
    places: dict[int, int] = {}
    if any(scoring is not None and scoring.state == "queue" for _, _, scoring in rows):
        waiting = select(ScoringRow.id).where(ScoringRow.state == "queue", ScoringRow.kind == "public")
        places = {number: place for place, number in enumerate(session.scalars(waiting.order_by(*QUEUE_ORDER)), 1)}

    records, bases = [], read_bases(session)
    for submission, team, found in rows:
        scoring = found or ScoringRow(state="refused", note="", error="", scores=Scores())
        is_old = scoring.scores.score is not None and scoring.basis != bases.get(basis_key(submission.track, "public"))
        records.append(Record(submission, team, scoring, places.get(scoring.id), is_old))
    return records


def find_record(session: Session, number: int) -> Record | None:
    """Return the submission of a number; None if there is none."""
    return next(iter(read_records(session, SubmissionRow.id == number)), None)


def find_public_score(session: Session, number: int, with_matrix: bool) -> dict[str, Any] | None:
    """Return the public part of a submission's `score.json`, if there is one.

    Its digests would reveal changes of held-out documents, its timings the work done.
    """
    text = session.scalar(
        select(ScoringRow.document).where(ScoringRow.submission_id == number, ScoringRow.kind == "public")
    )
    if text is None:
        return None
    document = json.loads(text)
    names = ["contract_version", "team", "n_models", "n_stimuli", *(["pairwise"] if with_matrix else [])]
    means = [f"mean_cka_{estimate}" for estimate in ("biased", "debiased", "calibrated")]
    return {name: document[name] for name in [*names, *means] if name in document}


def count_submissions(session: Session) -> dict[str, int]:
    """Count submissions by state."""
    public = (ScoringRow.submission_id == SubmissionRow.id) & (ScoringRow.kind == "public")
    state = case((SubmissionRow.problems.is_not(None), literal("refused")), else_=ScoringRow.state)
    query = select(state, func.count()).select_from(SubmissionRow).outerjoin(ScoringRow, public).group_by(state)
    return dict(session.execute(query).all())


@dataclass(frozen=True)
class Standing:
    """One line of the leaderboard.

    Attributes:
        rank: Rank from 1 on.
        team: The participant.
        submission_id: The submission with its best public score, the earliest of equal ones.
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

    def as_json(self) -> dict[str, Any]:
        """Return the line under the names of the JSON interface."""
        return {
            "rank": self.rank,
            "participant": self.team,
            "submission": self.submission_id,
            **self.scores.as_json(),
            "held_out_score": self.held_out,
            "received": self.received.isoformat(),
            "submissions": self.submissions,
        }


@dataclass(frozen=True)
class Board:
    """A leaderboard.

    Attributes:
        standings: Its lines, the best rank first.
        has_held_out: Whether held-out scores are shown, and decide the order.
        held_back: Number of submissions that are not in it, because they were scored with other documents or rules.
    """

    standings: Sequence[Standing]
    has_held_out: bool
    held_back: int

    @property
    def scale(self) -> tuple[float, float]:
        """The least and the largest end of an interval, between which intervals are drawn."""
        numbers = [
            number for each in self.standings for number in (each.scores.low, each.scores.high, each.scores.score)
        ]
        ends = [number for number in numbers if number is not None]
        return min(ends, default=0.0), max(ends, default=1.0)


def rank_teams(session: Session, documents: Documents, track: Track, now: datetime) -> Board:
    """Rank participants by scores of the same documents and rules.

    Public scores alone choose the submission that stands: no participant could choose by a hidden score. After the
    deadline, held-out scores are shown and decide the order.

    Args:
        session: Session of the portal's database.
        documents: The documents of the challenge.
        track: Team of the contract.
        now: The time.
    """
    kinds: list[Kind] = documents.kinds(track) if documents.challenge.is_over(now) else ["public"]
    scored: dict[Kind, dict[int, Row[*tuple[Any, ...]]]] = {}
    held_back: set[int] = set()
    for kind in kinds:
        basis, rows = documents.bases[basis_key(track, kind)], _read_scored(session, track, kind)
        scored[kind] = {row.id: row for row in rows if row.basis == basis}
        held_back |= {row.id for row in rows} - set(scored[kind])

    by_team: dict[int, list[Row[*tuple[Any, ...]]]] = {}
    for row in scored["public"].values():
        by_team.setdefault(row.team_id, []).append(row)
    best = [max(rows, key=lambda row: (round(row.scores.score, DECIMALS), -row.id)) for rows in by_team.values()]
    hidden = {number: row.scores.score for number, row in scored.get("held_out", {}).items()}

    def order(row: Row[*tuple[Any, ...]]) -> tuple[Any, ...]:
        # Participants whose held-out score is still missing come last, ordered by their public score.
        is_missing = "held_out" in kinds and row.id not in hidden
        return is_missing, -round(hidden.get(row.id, row.scores.score), DECIMALS), row.received, row.id

    standings = [
        Standing(rank, row.name, row.id, row.scores, hidden.get(row.id), row.received, len(by_team[row.team_id]))
        for rank, row in enumerate(sorted(best, key=order), 1)
    ]
    return Board(standings, "held_out" in kinds, len(held_back))


def _read_scored(session: Session, track: Track, kind: Kind) -> Sequence[Row[*tuple[Any, ...]]]:
    """Return the submissions that have a score of a kind and may be on the leaderboard, by their numbers."""
    columns = (SubmissionRow.id, SubmissionRow.team_id, SubmissionRow.received, TeamRow.name, ScoringRow.basis)
    query = (
        select(*columns, ScoringRow.scores)
        .join(ScoringRow, ScoringRow.submission_id == SubmissionRow.id)
        .join(TeamRow, TeamRow.id == SubmissionRow.team_id)
        .where(SubmissionRow.track == track, SubmissionRow.problems.is_(None), SubmissionRow.hidden.is_(False))
        .where(ScoringRow.kind == kind, ScoringRow.score.is_not(None))  # type: ignore[attr-defined]
        .order_by(SubmissionRow.id)
    )
    return session.execute(query).all()

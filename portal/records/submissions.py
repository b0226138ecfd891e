"""Submissions as pages and the JSON interface show them."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import ColumnElement, Select, SQLColumnExpression, and_, case, func, literal, or_, select
from sqlalchemy.orm import Session, aliased, undefer

from headstart.portal.records.basis import basis_key, read_bases
from headstart.portal.records.database import Database
from headstart.portal.records.scores import Scores
from headstart.portal.records.tables import Kind, ScoringRow, State, SubmissionRow, TeamRow
from headstart.portal.records.waiting import Queue, read_queue

# A program may submit invalid documents all day, and their list must not slow the portal down.
PAGE_LENGTH = 100
# Refused documents count against no quota of submissions, so little is kept of each.
MAX_PROBLEM_BYTES = 10_000


@dataclass(frozen=True)
class Record:
    """A submission as its team sees it.

    Attributes:
        submission: The submission.
        team: The participant who submitted it.
        scoring: Its latest public scoring; an empty one for a submission that was refused on arrival.
        problems: Problems for which it was refused.
        is_held_back: Whether its score does not count, because it is of other documents or rules than today's.
        queue: The queue at that moment; None if it was not read, because nothing is waited for.
    """

    submission: SubmissionRow
    team: str
    scoring: ScoringRow
    problems: list[dict[str, str]]
    is_held_back: bool
    queue: Queue | None

    @property
    def state(self) -> State:
        """`queue`, `running`, `scored`, `refused`, `failed` or `cancelled`."""
        return "refused" if self.submission.is_refused else self.scoring.state

    @property
    def is_waiting(self) -> bool:
        """Whether its state is going to change by itself."""
        return self.state in {"queue", "running"}

    @property
    def position(self) -> int | None:
        """Position in the queue, from 1 on; None if it is not in the queue."""
        return None if self.queue is None else self.queue.positions.get(self.scoring.id)

    @property
    def expected(self) -> float | None:
        """Seconds until its score is expected; None if it does not wait or nothing is known."""
        return None if self.queue is None else self.queue.expect(self.submission, self.scoring)

    @property
    def is_stalled(self) -> bool:
        """Whether it waits and no worker is active."""
        return self.queue is not None and self.is_waiting and self.queue.is_stalled

    @property
    def remark(self) -> str:
        """A sentence for a person about to submit the same document again."""
        score = self.scoring.scores.score
        what = "which has no score yet" if score is None else f"whose score is {score:.6f}"
        return f"It is the same document as submission {self.submission.id}, {what}."

    def as_json(self) -> dict[str, Any]:
        """Return the submission as its team may read it."""
        scoring = self.scoring
        return {
            **submission_as_json(self.submission, self.team),
            "state": self.state,
            "held_back": self.is_held_back,
            "place_in_queue": self.position,
            "expected_seconds": None if self.expected is None else round(self.expected),
            "stalled": self.is_stalled,
            "note": scoring.note,
            "problems": self.problems,
            **scoring.scores.as_json(),
            "ended": None if scoring.ended is None else scoring.ended.isoformat(),
        }


def submission_as_json(submission: SubmissionRow, team: str) -> dict[str, Any]:
    """Return what a submission is, without its scorings, as its team and organisers may read it."""
    return {
        "id": submission.id,
        "participant": team,
        "phase": submission.phase,
        "team": submission.track,
        "received": submission.received.isoformat(),
        "sha256": submission.sha256,
        "withdrawn": None if submission.withdrawn is None else submission.withdrawn.isoformat(),
        "disqualified": submission.disqualified,
        "chosen": submission.chosen,
    }


def latest_scoring(kind: Kind = "public") -> ColumnElement[bool]:
    """Return the condition that joins a submission with its latest scoring of a kind."""
    later = aliased(ScoringRow)
    last = select(func.max(later.round)).where(later.submission_id == SubmissionRow.id, later.kind == kind)
    return and_(
        ScoringRow.submission_id == SubmissionRow.id,
        ScoringRow.kind == kind,
        ScoringRow.round == last.scalar_subquery(),
    )


def find_record(session: Session, submission_id: int) -> Record | None:
    """Return the submission of a number; None if there is none."""
    return next(iter(_read(session, _records().where(SubmissionRow.id == submission_id))), None)


def find_all_records(
    session: Session, before: int | None, with_problems: bool, *conditions: ColumnElement[bool]
) -> tuple[list[Record], bool]:
    """Return the submissions that fulfil conditions, the latest first.

    Args:
        session: Session of the portal's database.
        before: Only submissions of lower numbers; None for the latest.
        with_problems: Whether to read the problems for which they were refused.
        *conditions: The conditions, such as `SubmissionRow.team_id == 1`.

    Returns:
        At most 100 submissions, and whether there are earlier ones.
    """
    query = _records().where(*conditions).limit(PAGE_LENGTH + 1)
    if before is not None:
        query = query.where(SubmissionRow.id < before)
    records = _read(session, query, with_problems)
    return records[:PAGE_LENGTH], len(records) > PAGE_LENGTH


def shorten_problems(problems: Sequence[dict[str, str]]) -> str:
    """Return the first problems as JSON of limited length, and whether there are others."""
    kept: list[dict[str, str]] = []
    length = 0
    for problem in problems:
        length += len(json.dumps(problem))
        if length > MAX_PROBLEM_BYTES:
            kept.append({"pointer": "", "value": "", "rule": "and more problems; check the document to list them"})
            break
        kept.append(problem)
    return json.dumps(kept)


def find_numbers(database: Database, state: State, *kinds: Kind) -> Sequence[int]:
    """Return the numbers of the submissions whose latest scoring of one of some kinds is in a state.

    Those that were withdrawn are left out.
    """
    scoring = or_(*(latest_scoring(kind) for kind in kinds))
    query = select(SubmissionRow.id).join(ScoringRow, scoring).where(ScoringRow.state == state)
    query = query.where(SubmissionRow.withdrawn.is_(None))
    with database.reading() as session:
        return session.scalars(query.distinct().order_by(SubmissionRow.id)).all()


def find_document(session: Session, submission_id: int) -> tuple[dict[str, Any] | None, bool]:
    """Return the content of a submission's latest public `score.json`, if any, and whether there is a heatmap."""
    query = _latest_scored(submission_id, ScoringRow.document, ScoringRow.heatmap.is_not(None))
    row = session.execute(query).one_or_none()
    return (None, False) if row is None or row[0] is None else (json.loads(row[0]), row[1])


def find_heatmap(session: Session, submission_id: int) -> bytes | None:
    """Return the heatmap of a submission's latest public scoring as PNG."""
    heatmap: bytes | None = session.scalar(_latest_scored(submission_id, ScoringRow.heatmap))
    return heatmap


def count_submissions(session: Session) -> dict[str, int]:
    """Count submissions by state."""
    state = case((SubmissionRow.is_refused, literal("refused")), else_=ScoringRow.state)
    query = select(state, func.count()).outerjoin(ScoringRow, latest_scoring()).group_by(state)
    return {name: count for name, count in session.execute(query) if name is not None}


def count_scorings(database: Database) -> list[tuple[str, str, int]]:
    """Count scorings by kind, `public` or `held_out`, and state."""
    query = select(ScoringRow.kind, ScoringRow.state, func.count()).group_by(ScoringRow.kind, ScoringRow.state)
    with database.reading() as session:
        return sorted((kind, state, count) for kind, state, count in session.execute(query))


def _records() -> Select[SubmissionRow, str, ScoringRow]:
    return (
        select(SubmissionRow, TeamRow.name, ScoringRow)
        .join(TeamRow, TeamRow.id == SubmissionRow.team_id)
        .outerjoin(ScoringRow, latest_scoring())
        .order_by(SubmissionRow.id.desc())
    )


def _read(session: Session, query: Select[SubmissionRow, str, ScoringRow], with_problems: bool = True) -> list[Record]:
    if with_problems:
        query = query.options(undefer(SubmissionRow.refused))
    rows = session.execute(query).all()
    waiting = any(scoring is not None and scoring.state in {"queue", "running"} for _, _, scoring in rows)
    queue = read_queue(session, datetime.now(UTC)) if waiting else None

    records, bases = [], read_bases(session)
    for submission, team, scoring in rows:
        # A submission that was refused on arrival has no scoring.
        latest = scoring or ScoringRow(state="refused", note="", scores=Scores())
        problems = json.loads(submission.refused or "[]") if with_problems else []
        basis = bases.get(basis_key(submission.phase, submission.track, "public"))
        is_held_back = latest.state == "scored" and latest.basis != basis
        records.append(Record(submission, team, latest, problems, is_held_back, queue))
    return records


def _latest_scored(submission_id: int, *columns: SQLColumnExpression[Any]) -> Select[*tuple[Any, ...]]:
    """Select columns of the latest public scoring of a submission that has a score."""
    public = (ScoringRow.kind == "public", ScoringRow.state == "scored")
    query = select(*columns).where(ScoringRow.submission_id == submission_id, *public)
    return query.order_by(ScoringRow.round.desc()).limit(1)

"""The queue of scorings: each is claimed under a lease and ends once.

A worker prolongs the lease of the scoring that it works on. When the worker dies, the lease runs out and another worker
claims the scoring with the next attempt number. Only the latest attempt can end a scoring, so a worker that was only
believed to be dead changes nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import and_, or_, select, update
from sqlalchemy.orm import Session

from headstart.contract.schema import Team as Track
from headstart.output.errors import UserError
from headstart.portal.records.basis import basis_key, read_bases
from headstart.portal.records.database import Database
from headstart.portal.records.log import log_event, name_of
from headstart.portal.records.scores import Scores
from headstart.portal.records.submissions import shorten_problems
from headstart.portal.records.tables import QUEUE_ORDER, Kind, ScoringRow, State, SubmissionRow, TeamRow

LEASE = timedelta(seconds=30)
MAX_ATTEMPTS = 50
MAX_DELAY = timedelta(minutes=5)


@dataclass(frozen=True)
class Job:
    """A claimed scoring.

    Attributes:
        id: Its number.
        attempt: The attempt that may end it.
        submission_id: The submission.
        kind: Which of the submission's two scores.
        phase: Phase of the challenge.
        track: Team of the contract, `blue` or `red`.
        content: The submitted document.
    """

    id: int
    attempt: int
    submission_id: int
    kind: Kind
    phase: str
    track: Track
    content: bytes


@dataclass(frozen=True)
class Outcome:
    """The end of a scoring.

    Attributes:
        state: `scored`, `failed`, or `refused` where the rules have changed since it was submitted.
        note: Note for the team.
        error: Error for the organisers.
        scores: The scores of a `scored` one.
        document: The content of `score.json`, as JSON.
        heatmap: A picture of the matrix.
        problems: Problems for which it is refused, JSON values.
    """

    state: State
    note: str = ""
    error: str = ""
    scores: Scores = Scores()  # noqa: RUF009 - frozen
    document: str | None = None
    heatmap: bytes | None = None
    problems: list[dict[str, str]] | None = None


def failed(reason: str, error: str) -> Outcome:
    """Return the outcome of a scoring that failed.

    Args:
        reason: The reason without any name, for the team: models and stimuli may be held out.
        error: The reason, for organisers.
    """
    note = f"It could not be scored, for a reason on our side: {reason}."
    return Outcome("failed", f"{note} The organisers can read the details and score it again.", error)


def enqueue(session: Session, submission_id: int, kind: Kind, round_number: int, now: datetime) -> None:
    """Add a scoring at the end of the queue."""
    session.add(ScoringRow(submission_id=submission_id, kind=kind, round=round_number, queued=now, not_before=now))


class OtherDocumentsError(UserError):
    """A process that scores has read other documents than the server."""


def claim(database: Database, worker: str, own_bases: Mapping[str, str] | None = None) -> Job | None:
    """Claim the first scoring that waits or whose lease has run out; public scores come before held-out ones.

    Args:
        database: The portal's database.
        worker: Name of the process that claims.
        own_bases: What the process computes scores from, by phase, team of the contract and kind.

    Returns:
        The scoring; None where none is due.

    Raises:
        OtherDocumentsError: The server has recorded that scores are computed from something else.
    """
    now = datetime.now(UTC)
    with database.writing() as session:
        bases = read_bases(session)
        if own_bases is not None and not bases:
            # No server has started yet.
            return None
        if own_bases is not None and own_bases != bases:
            raise OtherDocumentsError(
                "settings: this worker has read other documents or rules than the server; restart both with the same "
                "settings"
            )
        # A time further ahead than any delay comes from a wrong clock, and is ignored.
        due = or_(ScoringRow.not_before <= now, ScoringRow.not_before > now + 2 * MAX_DELAY)
        not_held = or_(ScoringRow.lease_until < now, ScoringRow.lease_until > now + 2 * MAX_DELAY)
        waiting = and_(ScoringRow.state == "queue", due)
        abandoned = and_(ScoringRow.state == "running", not_held)
        query = select(ScoringRow).where(or_(waiting, abandoned)).order_by(*QUEUE_ORDER).limit(1)
        row = session.scalar(query.with_for_update(skip_locked=True))
        if row is None:
            return None

        if row.attempt >= MAX_ATTEMPTS:
            error = f"the worker ended {MAX_ATTEMPTS} times while scoring this submission"
            _end(session, row, failed(error, error), now)
            return None

        row.state, row.worker, row.attempt = "running", worker, row.attempt + 1
        row.started, row.lease_until = now, now + LEASE
        submission = session.get_one(SubmissionRow, row.submission_id)
        row.basis = bases.get(basis_key(submission.phase, submission.track, row.kind), "")
        if row.kind == "public":
            _log(session, row, "started", f"attempt {row.attempt} began.", now)
        assert submission.content is not None
        return Job(row.id, row.attempt, submission.id, row.kind, submission.phase, submission.track, submission.content)


def prolong(database: Database, job: Job) -> bool:
    """Prolong the lease of a claimed scoring; False where another attempt has it."""
    with database.writing() as session:
        held = _held(job)
        changed = session.execute(update(ScoringRow).where(*held).values(lease_until=datetime.now(UTC) + LEASE))
        return bool(changed.rowcount)  # type: ignore[attr-defined] # of an UPDATE


def put_back(database: Database, job: Job, note: str, error: str) -> None:
    """Return a claimed scoring to the queue; the delay before the next attempt doubles with each one.

    Args:
        database: The portal's database.
        job: The scoring.
        note: The reason, for the team.
        error: The reason, for organisers.
    """
    now = datetime.now(UTC)
    delay = min(timedelta(seconds=2 ** min(job.attempt, 16)), MAX_DELAY)
    with database.writing() as session:
        row = session.scalar(select(ScoringRow).where(*_held(job)).with_for_update())
        if row is not None:
            row.state, row.not_before, row.lease_until = "queue", now + delay, None
            row.note, row.error = note, error
            if row.kind == "public":
                _log(session, row, "put back", note, now)


def free(database: Database, worker: str) -> None:
    """Free the scorings of a worker that has ended, without waiting for its leases to run out."""
    with database.writing() as session:
        held = (ScoringRow.state == "running", ScoringRow.worker == worker)
        session.execute(update(ScoringRow).where(*held).values(lease_until=datetime.now(UTC) - LEASE))


def finish(database: Database, job: Job, outcome: Outcome) -> bool:
    """End a claimed scoring; False, without any change, where another attempt has it or it has ended."""
    now = datetime.now(UTC)
    with database.writing() as session:
        row = session.scalar(select(ScoringRow).where(*_held(job)).with_for_update())
        if row is None:
            return False
        _end(session, row, outcome, now)
        return True


def _held(job: Job) -> tuple[Any, ...]:
    return ScoringRow.id == job.id, ScoringRow.attempt == job.attempt, ScoringRow.state == "running"


def _end(session: Session, row: ScoringRow, outcome: Outcome, now: datetime) -> None:
    row.state, row.ended, row.lease_until = outcome.state, now, None
    row.note, row.error, row.scores = outcome.note, outcome.error, outcome.scores
    row.document, row.heatmap = outcome.document, outcome.heatmap
    submission = session.get_one(SubmissionRow, row.submission_id)
    if outcome.problems is not None:
        submission.refused, submission.is_refused = shorten_problems(outcome.problems), True

    kind = "" if row.kind == "public" else "held-out "
    score = "" if outcome.scores.score is None else f", {outcome.scores.score:.6f}"
    # Only organisers may read about held-out scores.
    public = row.kind == "public" and row.state == "scored"
    _log(session, row, row.state, f"{kind}{row.state}{score}. {outcome.error}".strip(), now, public)


def _log(session: Session, row: ScoringRow, kind: str, what: str, now: datetime, public: bool = False) -> None:
    submission = session.get_one(SubmissionRow, row.submission_id)
    name = name_of(submission, session.get_one(TeamRow, submission.team_id).name)
    log_event(session, now, kind, f"{name}: {what}", submission.team_id, submission.id, public)

"""Submissions enter the queue, in which the scoring of each is claimed under a lease and ends once.

A worker prolongs the lease of the scoring that it works on. When the worker dies, the lease runs out and another worker
claims the scoring with the next attempt number. Only the latest attempt can end a scoring, so a worker that was only
believed to be dead changes nothing.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Text, and_, cast, func, or_, select, update
from sqlalchemy.orm import Session

from headstart.contract.challenge import Challenge
from headstart.contract.challenge_rules import find_untimely
from headstart.contract.problems import ContractError, Problem
from headstart.contract.schema import Track
from headstart.contract.submissions import SCORE_NAMES, check_submission
from headstart.output.errors import UserError
from headstart.portal.database import Database
from headstart.portal.documents import Documents, read_basis
from headstart.portal.tables import MAX_ID, QUEUE_ORDER, FactRow, State, SubmissionRow, TeamRow, log_event

LEASE = timedelta(seconds=30)
MAX_TRIES = 10
# More problems of one document are only counted: nobody reads them, and refused documents count against no quota.
MAX_PROBLEMS = 100
WAITING = ("queue", "running")
CLOSED = "closed"


def find_problems(documents: Documents, track: Track, content: bytes) -> list[Problem]:
    """Return the first problems of a document of a team of the contract, and how many others there are."""
    try:
        check_submission(content, "submission", documents.registry, documents.catalog, track, documents.challenge)
    except ContractError as error:
        return _limit(error.problems)
    return []


class NotTakenError(UserError):
    """A document is not stored, not even as refused."""


class Receipt(NamedTuple):
    """The number of a submission, and whether the team had not submitted the document before."""

    id: int
    new: bool


def store_submission(
    database: Database,
    challenge: Challenge,
    team_id: int,
    track: Track,
    content: bytes,
    problems: list[Problem],
    bytes_per_day: int,
    now: datetime,
) -> Receipt:
    """Store a submission, and queue it if it is valid.

    A document that the team has submitted before, and that waits or has a score, is not stored again: whoever sends it
    twice, because an answer was lost, uses one attempt.

    Args:
        database: The portal's database.
        challenge: The challenge, whose deadline and quotas hold.
        team_id: The team that submits it.
        track: Team of the contract.
        content: The document.
        problems: Its problems; with any it is refused.
        bytes_per_day: Size of all documents together that a team may submit on one day, the refused ones too, with
            their problems.
        now: Time at which it was received.

    Returns:
        The submission's number, and whether it is new.

    Raises:
        NotTakenError: Organisers have closed the portal or revoked the team, or it has submitted too much today.
    """
    digest = hashlib.sha256(content).hexdigest()
    with database.writing() as session:
        # The lock serialises the submissions of a team: two at once might both use the last one of a quota.
        team = session.scalar(select(TeamRow).where(TeamRow.id == team_id).with_for_update())
        if team is None or team.revoked is not None:
            raise NotTakenError("team: it was revoked; ask the organisers")
        counted = (SubmissionRow.team_id == team_id, SubmissionRow.track == track, counts_against_quota())
        same = session.scalar(select(SubmissionRow.id).where(SubmissionRow.sha256 == digest, *counted))
        if same is not None:
            return Receipt(same, new=False)
        if is_closed(session):
            raise NotTakenError("submission: the organisers have closed submissions")

        # The problems of a refused document are kept; they may be longer than the document.
        midnight = now.astimezone(challenge.time_zone).replace(hour=0, minute=0, second=0, microsecond=0)
        kept = func.sum(SubmissionRow.size + func.coalesce(func.length(cast(SubmissionRow.problems, Text)), 0))
        today = (SubmissionRow.team_id == team_id, SubmissionRow.received >= midnight)
        used = session.scalar(select(kept).where(*today)) or 0
        if used + len(content) > bytes_per_day:
            end = f"the next day begins at midnight ({challenge.time_zone})"
            raise NotTakenError(f"submission: {used:,} of {bytes_per_day:,} bytes per day are used; {end}")

        earlier = session.scalars(select(SubmissionRow.received).where(*counted)).all()
        reasons = [*find_untimely(challenge, track, earlier, now), *problems]
        submission = SubmissionRow(team_id=team_id, track=track, size=len(content), sha256=digest, received=now)
        if reasons:
            submission.state, submission.problems = "refused", [asdict(problem) for problem in reasons]
        else:
            submission.state, submission.queued, submission.content = "queue", now, content
        session.add(submission)
        session.flush()

        if reasons:
            log_event(session, "refused", f"refused, {reasons[0]}", submission)
        else:
            log_event(session, "received", "received.", submission, public=True)
        return Receipt(submission.id, new=True)


def counts_against_quota() -> ColumnElement[bool]:
    """Return the condition of submissions that count against quotas: they have a score, or still may get one."""
    return or_(
        SubmissionRow.state.in_(WAITING), and_(SubmissionRow.state != "refused", SubmissionRow.score.is_not(None))
    )


def score_again(session: Session, numbers: Sequence[int]) -> int:
    """Return submissions to the queue.

    Args:
        session: Session of the portal's database.
        numbers: Numbers of the submissions.

    Returns:
        The number of submissions.

    Raises:
        UserError: A submission does not exist, was refused when it was submitted, or is being scored.
    """
    now = datetime.now(UTC)
    for number in sorted(set(numbers)):
        submission = find_submission(session, number)
        session.refresh(submission, with_for_update=True)
        if submission.queued is None:
            raise UserError(f"numbers: submission {number} was refused when it was submitted; choose another")
        if submission.state in WAITING:
            raise UserError(f"numbers: submission {number} is being scored; wait for its end")

        submission.state, submission.queued, submission.tries = "queue", now, 0
        submission.note = submission.error = ""
        # A submission that changed rules refused may be valid again.
        submission.problems = None
        log_event(session, "rescored", "is scored again.", submission)
    return len(set(numbers))


def find_submission(session: Session, number: int) -> SubmissionRow:
    """Return a submission by its number; a UserError if there is none."""
    submission = session.get(SubmissionRow, number) if 0 < number <= MAX_ID else None
    if submission is None:
        raise UserError(f"number: there is no submission {number}; `submissions list` names all")
    return submission


def is_closed(session: Session) -> bool:
    """Return whether organisers have closed the portal."""
    return session.get(FactRow, CLOSED) is not None


@dataclass(frozen=True)
class Job:
    """A claimed scoring.

    Attributes:
        id: Number of the submission.
        attempt: The attempt that may end it.
        track: Team of the contract, `blue` or `red`.
        basis: Identifies the documents and rules of the score.
        content: The submitted document.
    """

    id: int
    attempt: int
    track: Track
    basis: str
    content: bytes


@dataclass(frozen=True)
class Outcome:
    """The end of a scoring.

    Attributes:
        state: `scored`, `failed`, or `refused` where the rules have changed since it was submitted.
        note: Note for the team.
        error: Error for the organisers.
        document: The content of `score.json` of a `scored` one, as JSON.
        problems: Problems for which it is refused.
    """

    state: State
    note: str = ""
    error: str = ""
    document: str = ""
    problems: list[Problem] | None = None


def failed(reason: str, error: str) -> Outcome:
    """Return the outcome of a scoring that failed.

    Args:
        reason: The reason for the team, without names of files.
        error: The reason, for organisers.
    """
    note = f"It could not be scored, for a reason on our side: {reason}."
    return Outcome("failed", f"{note} The organisers can read the details and score it again.", error)


def claim(database: Database, own_basis: str | None = None) -> Job | None:
    """Claim the first scoring that waits or whose lease has run out.

    Args:
        database: The portal's database.
        own_basis: Identifies the documents and rules that the process scores by; None for a stub.

    Returns:
        The scoring; None where none is due, or no server has started yet.

    Raises:
        UserError: The server has recorded another basis.
    """
    now = datetime.now(UTC)
    with database.writing() as session:
        basis = read_basis(session)
        if own_basis is not None and basis is None:
            return None
        if own_basis not in (None, basis):
            raise UserError(
                "settings: this worker has read other documents or rules than the server; restart both with the same "
                "settings"
            )

        abandoned = and_(SubmissionRow.state == "running", SubmissionRow.lease_until < now)
        due = select(SubmissionRow).where(or_(SubmissionRow.state == "queue", abandoned))
        row = session.scalar(due.order_by(*QUEUE_ORDER).limit(1).with_for_update(skip_locked=True))
        if row is None:
            return None
        if row.tries >= MAX_TRIES:
            error = f"the worker ended {MAX_TRIES} times while scoring this submission"
            _end(session, row, failed(error, error), row.basis, now)
            return None

        row.state, row.lease_until = "running", now + LEASE
        row.attempt, row.tries = row.attempt + 1, row.tries + 1
        assert row.content is not None
        return Job(row.id, row.attempt, row.track, basis or "", row.content)


def prolong(database: Database, job: Job) -> bool:
    """Prolong the lease of a claimed scoring; False where another attempt has it, or it is gone."""
    with database.writing() as session:
        changed = session.execute(
            update(SubmissionRow).where(*_is_claimed(job)).values(lease_until=datetime.now(UTC) + LEASE)
        )
        return bool(changed.rowcount)  # type: ignore[attr-defined] # of an UPDATE


def finish(database: Database, job: Job, outcome: Outcome) -> bool:
    """End a claimed scoring; False, without any change, where another attempt has it or it has ended."""
    with database.writing() as session:
        row = session.scalar(select(SubmissionRow).where(*_is_claimed(job)).with_for_update())
        if row is not None:
            _end(session, row, outcome, job.basis, datetime.now(UTC))
        return row is not None


def _limit(problems: list[Problem]) -> list[Problem]:
    more = len(problems) - MAX_PROBLEMS
    return [*problems[:MAX_PROBLEMS], Problem("", "", f"and {more:,} more problems")] if more > 0 else problems


def _is_claimed(job: Job) -> tuple[Any, ...]:
    return SubmissionRow.id == job.id, SubmissionRow.attempt == job.attempt, SubmissionRow.state == "running"


def _end(session: Session, row: SubmissionRow, outcome: Outcome, basis: str, now: datetime) -> None:
    row.state, row.ended, row.lease_until = outcome.state, now, None
    row.note, row.error = outcome.note, outcome.error
    # What fails leaves an earlier score as it is.
    if outcome.state == "scored":
        row.basis, row.document = basis, outcome.document
        scores = json.loads(outcome.document)["scores"]
        for name in SCORE_NAMES:
            setattr(row, name, scores.get(name))

    if outcome.problems is not None:
        row.problems = [asdict(problem) for problem in _limit(outcome.problems)]
    score = f", {row.score:.6f}" if outcome.state == "scored" and row.score is not None else ""
    message = f"{row.state}{score}. {outcome.error}".strip()
    log_event(session, row.state, message, row, public=row.state == "scored")

"""The queue of submissions, which they enter when they are received or scored again.

One process scores them in turn. It holds a file lock, which ends with it. Whatever it was scoring when it died is
queued again by the next one.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import NamedTuple

from sqlalchemy import ColumnElement, and_, or_, select, update
from sqlalchemy.orm import Session

from headstart.contract.challenge import Challenge
from headstart.contract.challenge_rules import find_untimely
from headstart.contract.problems import ContractError, Problem
from headstart.contract.schema import Team as Track
from headstart.contract.submissions import Submission
from headstart.output.errors import UserError
from headstart.portal.database import Database
from headstart.portal.tables import MAX_ID, State, SubmissionRow, TeamRow, read_scores

MAX_TRIES = 10
WAITING = ("queue", "running")
# A submission that ended its process several times may do so again, and goes behind the others.
QUEUE_ORDER = (SubmissionRow.tries > 3, SubmissionRow.id)


class Receipt(NamedTuple):
    """The number of a submission, and whether the team had not submitted the document before."""

    id: int
    new: bool


@dataclass(frozen=True)
class Job:
    """A submission that is being scored.

    Attributes:
        id: Its number.
        track: Team of the contract, `blue` or `red`.
        content: The submitted document.
    """

    id: int
    track: Track
    content: bytes


@dataclass(frozen=True)
class Outcome:
    """The end of a scoring.

    Attributes:
        state: `scored`, `failed`, or `refused` where the rules have changed since it was submitted.
        note: Note for the team.
        error: Error for the organisers.
        basis: What a score was computed from.
        documents: The content of `score.json` of the public score, and of the held-out one if there is one, as JSON.
    """

    state: State
    note: str = ""
    error: str = ""
    basis: str = ""
    documents: list[str] = field(default_factory=list)


def failed(reason: str, error: str) -> Outcome:
    """Return the outcome of a scoring that failed.

    Args:
        reason: The reason without any name, for the team: models and stimuli may be held out.
        error: The reason, for organisers.
    """
    note = f"It could not be scored, for a reason on our side: {reason}."
    return Outcome("failed", f"{note} The organisers can read the details and score it again.", error)


def store_submission(
    database: Database, challenge: Challenge, team_id: int, submission: Submission, now: datetime
) -> Receipt:
    """Queue a valid submission.

    A document that the team has submitted before, and that waits or has a score, is not stored again: whoever sends it
    twice, because an answer was lost, uses one attempt.

    Args:
        database: The portal's database.
        challenge: The rules, whose dates and quotas hold.
        team_id: The team that submits it.
        submission: The submission.
        now: Time at which it was received.

    Returns:
        The submission's number, and whether it is new.

    Raises:
        ContractError: It is too early or too late, a quota is used up, or the team was revoked.
    """
    # The transaction serialises submissions: two at once might both use the last one of a quota.
    with database.writing() as session:
        team = session.get(TeamRow, team_id)
        if team is None or team.revoked is not None:
            raise ContractError.of("submission", "the team was revoked; ask the organisers")
        counted = (
            SubmissionRow.team_id == team_id,
            SubmissionRow.track == submission.team,
            counts_against_quota(),
        )
        same = session.scalar(select(SubmissionRow.id).where(SubmissionRow.sha256 == submission.sha256, *counted))
        if same is not None:
            return Receipt(same, new=False)

        earlier = session.scalars(select(SubmissionRow.received).where(*counted)).all()
        problems: list[Problem] = find_untimely(challenge, submission.team, earlier, now)
        if problems:
            raise ContractError("submission", problems)
        row = SubmissionRow(
            team_id=team_id,
            track=submission.team,
            content=submission.content,
            sha256=submission.sha256,
            received=now,
        )
        session.add(row)
        session.flush()
        return Receipt(row.id, new=True)


def counts_against_quota() -> ColumnElement[bool]:
    """Return the condition of submissions that count against quotas: they have a score, or still may get one."""
    has_score = and_(SubmissionRow.score.is_not(None), SubmissionRow.state != "refused")
    return or_(SubmissionRow.state.in_(WAITING), has_score)


def requeue(database: Database) -> None:
    """Queue what a process that has ended was scoring again."""
    with database.writing() as session:
        session.execute(update(SubmissionRow).where(SubmissionRow.state == "running").values(state="queue"))


def claim(database: Database) -> Job | None:
    """Begin with the first submission that waits; None where none does."""
    with database.writing() as session:
        query = select(SubmissionRow).where(SubmissionRow.state == "queue").order_by(*QUEUE_ORDER).limit(1)
        row = session.scalar(query)
        if row is None:
            return None
        if row.tries >= MAX_TRIES:
            error = f"the worker ended {MAX_TRIES} times while scoring this submission"
            _end(row, failed(error, error))
            return None
        row.state, row.tries = "running", row.tries + 1
        return Job(row.id, row.track, row.content)


def finish(database: Database, job: Job, outcome: Outcome) -> None:
    """End a scoring; one that has ended already stays as it is."""
    with database.writing() as session:
        row = session.get(SubmissionRow, job.id)
        if row is not None and row.state == "running":
            _end(row, outcome)


def score_again(session: Session, numbers: Sequence[int]) -> None:
    """Return submissions to the queue.

    Raises:
        UserError: A submission does not exist, or is being scored.
    """
    for number in numbers:
        row = find_submission(session, number)
        if row.state in WAITING:
            raise UserError(f"which: submission {number} is being scored; wait for its end")
        row.state, row.tries, row.note, row.error = "queue", 0, "", ""


def find_submission(session: Session, number: int) -> SubmissionRow:
    """Return a submission by its number; a UserError if there is none."""
    row = session.get(SubmissionRow, number) if 0 < number <= MAX_ID else None
    if row is None:
        raise UserError(f"number: there is no submission {number}; `list-submissions` names all")
    return row


def _end(row: SubmissionRow, outcome: Outcome) -> None:
    row.state, row.ended, row.note, row.error = outcome.state, datetime.now(UTC), outcome.note, outcome.error
    # What fails leaves an earlier score as it is.
    if outcome.state == "scored":
        document, hidden = [*outcome.documents, None][:2]
        assert document is not None
        row.basis, row.document, row.held_out_document = outcome.basis, document, hidden
        row.held_out_score = None if hidden is None else json.loads(hidden)["score"]
        for name, number in read_scores(json.loads(document)).items():
            setattr(row, name, number)

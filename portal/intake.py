"""Submissions enter the queue: valid ones when they are received, and others to be scored again."""

import hashlib
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import NamedTuple

from sqlalchemy import ColumnElement, Text, and_, cast, func, or_, select
from sqlalchemy.orm import Session

from headstart.contract.challenge_rules import find_untimely
from headstart.contract.problems import ContractError, Problem
from headstart.contract.schema import Track
from headstart.contract.submissions import check_submission
from headstart.output.errors import UserError
from headstart.portal.database import Database
from headstart.portal.documents import Documents
from headstart.portal.queue import KEPT_PROBLEMS, limit_problems
from headstart.portal.tables import MAX_ID, FactRow, ScoringRow, SubmissionRow, TeamRow, log_event

CLOSED = "closed"


def find_problems(documents: Documents, track: Track, content: bytes) -> list[Problem]:
    """Return the problems of a document of a team of the contract."""
    try:
        check_submission(content, "submission", documents.registry, documents.catalog, track, documents.challenge)
    except ContractError as error:
        return error.problems
    return []


class NotTakenError(UserError):
    """A document is not stored, not even as refused."""


class Receipt(NamedTuple):
    """The number of a submission, and whether the team had not submitted the document before."""

    id: int
    new: bool


def store_submission(
    database: Database,
    documents: Documents,
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
        documents: The challenge, whose deadline and quotas hold.
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
    challenge, digest = documents.challenge, hashlib.sha256(content).hexdigest()
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

        # Of a refused document the problems are kept, which may be longer than itself.
        midnight = now.astimezone(challenge.zone).replace(hour=0, minute=0, second=0, microsecond=0)
        kept = func.sum(SubmissionRow.size + func.coalesce(func.length(cast(SubmissionRow.problems, Text)), 0))
        today = (SubmissionRow.team_id == team_id, SubmissionRow.received >= midnight)
        used = session.scalar(select(kept).where(*today)) or 0
        if used + len(content) > bytes_per_day:
            end = f"the next day begins at midnight ({challenge.time_zone})"
            raise NotTakenError(f"submission: {used:,} of {bytes_per_day:,} bytes per day are used; {end}")

        earlier = session.scalars(select(SubmissionRow.received).where(*counted)).all()
        reasons = limit_problems([*find_untimely(challenge, track, earlier, now), *problems], KEPT_PROBLEMS)
        submission = SubmissionRow(team_id=team_id, track=track, size=len(content), sha256=digest, received=now)
        if reasons:
            submission.problems = [asdict(problem) for problem in reasons]
        else:
            submission.content = content
        session.add(submission)
        session.flush()

        if reasons:
            log_event(session, "refused", f"refused, {reasons[0]}", submission)
        else:
            for kind in documents.kinds(track):
                session.add(ScoringRow(submission_id=submission.id, kind=kind, queued=now))
            log_event(session, "received", "received.", submission, public=True)
        return Receipt(submission.id, new=True)


def counts_against_quota() -> ColumnElement[bool]:
    """Return the condition of submissions that count against quotas: they have a score, or still may get one."""
    kept = or_(ScoringRow.state.in_(["queue", "running"]), ScoringRow.score.is_not(None))
    public = (ScoringRow.submission_id == SubmissionRow.id, ScoringRow.kind == "public", kept)
    return and_(
        SubmissionRow.problems.is_(None), select(ScoringRow.id).where(*public).correlate(SubmissionRow).exists()
    )


def score_again(session: Session, numbers: Sequence[int], documents: Documents) -> int:
    """Return submissions to the queue; a score that is waiting there keeps its position.

    Args:
        session: Session of the portal's database.
        numbers: Numbers of the submissions.
        documents: The documents of the challenge.

    Returns:
        The number of submissions.

    Raises:
        UserError: A submission does not exist, was refused when it was submitted, or is being scored.
    """
    now = datetime.now(UTC)
    for number in sorted(set(numbers)):
        submission = find_submission(session, number)
        query = select(ScoringRow).where(ScoringRow.submission_id == number).with_for_update()
        scorings = {row.kind: row for row in session.scalars(query)}
        if not scorings:
            raise UserError(f"numbers: submission {number} was refused when it was submitted; choose another")
        kinds = documents.kinds(submission.track)
        missing = [kind for kind in kinds if kind not in scorings]
        ended = [row for row in scorings.values() if row.kind in kinds and row.state not in {"queue", "running"}]
        if not missing and not ended:
            raise UserError(f"numbers: submission {number} is being scored; wait for its end")

        for row in ended:
            row.state, row.queued, row.tries, row.note, row.error = "queue", now, 0, "", ""
        for kind in missing:
            session.add(ScoringRow(submission_id=number, kind=kind, queued=now))
        # One that changed rules refused may be valid again.
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

"""Submissions enter the queue: valid ones when they are received, and others to be scored again."""

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime

from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from headstart.contract.challenge_times import find_untimely
from headstart.contract.problems import Problem
from headstart.contract.schema import Team as Track
from headstart.output.errors import UserError
from headstart.portal.phases import Phase
from headstart.portal.records.database import Database
from headstart.portal.records.log import log_event, name_of
from headstart.portal.records.quotas import counted_times, find_same
from headstart.portal.records.submissions import shorten_problems
from headstart.portal.records.tables import MAX_ID, AccountRow, FactRow, ScoringRow, SubmissionRow, TeamRow
from headstart.portal.records.terms import missing_terms
from headstart.portal.work.queue import enqueue

FROZEN = "frozen"
MAX_KEY_LENGTH = 160


class NotTakenError(UserError):
    """A document is not stored, not even as refused; `status` is the status of HTTP that says so."""

    status = 403


class OtherDocumentError(NotTakenError):
    """The key was already used for another document."""

    status = 409


class SameDocumentError(UserError):
    """The team has submitted the document before, and has not said that it wants to again."""


@dataclass(frozen=True)
class Receipt:
    """The result of a submission.

    Attributes:
        id: The submission's number.
        refused: Whether it was refused.
        new: Whether it was not submitted before with the same key.
    """

    id: int
    refused: bool
    new: bool


def store_submission(
    database: Database,
    phase: Phase,
    account: AccountRow,
    track: Track,
    content: bytes,
    problems: Sequence[dict[str, str]],
    key: str,
    bytes_per_day: int,
    now: datetime,
    again: bool = True,
) -> Receipt:
    """Store a submission, and queue it if it is valid.

    Args:
        database: The portal's database.
        phase: The phase of the challenge, whose deadline and quotas hold.
        account: The member of a team who submits it.
        track: Team of the contract.
        content: The document.
        problems: Its problems, as of `headstart.portal.work.validation`; with any it is refused.
        key: Text of at most 160 characters that the sender chose for it. A document that is sent again with the same
            key, because an answer was lost, is stored once.
        bytes_per_day: Size of all documents together that a team may submit on one day, the refused ones too, with
            their problems.
        now: Time at which it was received.
        again: Whether to take a document that the team has submitted before.

    Returns:
        The submission's number and whether it is refused or new.

    Raises:
        NotTakenError: Organisers have closed the portal, have not approved the team or have revoked it; the member has
            not accepted the terms; or the team has submitted too much today.
        OtherDocumentError: The key is that of another submission.
        SameDocumentError: The document is that of another submission that counted against a quota, and not `again`.
    """
    digest = hashlib.sha256(content).hexdigest()
    with database.writing() as session:
        # The lock serialises the submissions of a team: two at once might both use the last one of a quota.
        team = session.scalar(select(TeamRow).where(TeamRow.id == account.team_id).with_for_update())
        if team is None or team.revoked is not None or session.get_one(AccountRow, account.id).revoked is not None:
            raise NotTakenError("team: your access was revoked; ask the organisers")
        if team.approved is None:
            raise NotTakenError("team: the organisers must approve it before it can submit")

        same_key = (SubmissionRow.team_id == team.id, SubmissionRow.key == key)
        earlier = session.scalar(select(SubmissionRow).where(*same_key))
        if earlier is not None:
            if (earlier.sha256, earlier.track) != (digest, track):
                raise OtherDocumentError("key: another document was submitted with this key; choose another key")
            return Receipt(earlier.id, earlier.is_refused, new=False)
        if is_frozen(session):
            raise NotTakenError("submission: the organisers have paused submissions")
        if terms := missing_terms(session, account.id, phase.challenge):
            reason = f"terms: accept version {terms.version!r} first, in the form or by POST /api/terms"
            raise NotTakenError(reason)

        local = now.astimezone(phase.challenge.zone)
        midnight = local.replace(hour=0, minute=0, second=0, microsecond=0)
        today = (SubmissionRow.team_id == team.id, SubmissionRow.received >= midnight)
        # Of a refused document the problems are kept, which may be longer than itself.
        kept = SubmissionRow.size + func.coalesce(func.length(SubmissionRow.refused), 0)
        used = session.scalar(select(func.sum(kept)).where(*today)) or 0
        if used + len(content) > bytes_per_day:
            end = f"the next day begins at midnight ({phase.challenge.time_zone})"
            raise NotTakenError(f"submission: {used:,} of {bytes_per_day:,} bytes per day are used; {end}")

        untimely = find_untimely(phase.challenge, track, counted_times(session, team.id, phase.name, track), now)
        reasons = [*(asdict(problem) for problem in untimely), *problems]
        same = None if again or reasons else find_same(session, team.id, phase.name, track, content)
        if same is not None:
            raise SameDocumentError(f"{same.remark} Nothing was submitted.")
        submission = SubmissionRow(
            team_id=team.id,
            account_id=account.id,
            phase=phase.name,
            track=track,
            key=key,
            content=None if reasons else content,
            size=len(content),
            sha256=digest,
            received=now,
            refused=shorten_problems(reasons) if reasons else None,
            is_refused=bool(reasons),
        )
        session.add(submission)
        session.flush()

        name = name_of(submission, team.name)
        if reasons:
            message = f"{name}: refused, {Problem(**reasons[0])}"
            log_event(session, now, "refused", message, team.id, submission.id)
        else:
            for kind in phase.kinds(track):
                enqueue(session, submission.id, kind, 1, now)
            log_event(session, now, "received", f"{name}: received.", team.id, submission.id, public=True)
        return Receipt(submission.id, bool(reasons), new=True)


def score_again(database: Database, numbers: Sequence[int], phases: Sequence[Phase]) -> int:
    """Return submissions to the queue; a score that is already waiting there keeps its position.

    Args:
        database: The portal's database.
        numbers: Numbers of the submissions.
        phases: The phases of the challenge.

    Returns:
        The number of submissions.

    Raises:
        UserError: A submission does not exist, was refused when it was submitted, was withdrawn, or is in the queue;
            then none is queued.
    """
    now, unique, by_name = datetime.now(UTC), sorted(set(numbers)), {phase.name: phase for phase in phases}
    with database.writing() as session:
        # Teams and organisers decide about no submission meanwhile; in one order, so that two of these wait in turn.
        session.scalars(select(TeamRow.id).order_by(TeamRow.id).with_for_update(key_share=True)).all()
        for number in unique:
            submission = session.get(SubmissionRow, number) if 0 < number <= MAX_ID else None
            if submission is None:
                raise _impossible(number, "there is none")
            if submission.withdrawn is not None:
                raise _impossible(number, "its team withdrew it")

            # A submission that changed rules refused may be valid again; one refused on arrival has no scoring.
            query = select(ScoringRow.kind, ScoringRow.state, ScoringRow.round)
            scorings = session.execute(query.where(ScoringRow.submission_id == number)).all()
            if not scorings:
                raise _impossible(number, "it was refused, and has no score")

            phase = by_name.get(submission.phase)
            if phase is None:
                raise _impossible(number, f"the settings name no phase {submission.phase!r}")
            kinds = phase.kinds(submission.track)
            pending = {kind for kind, state, _ in scorings if state in {"queue", "running"}}
            if pending.issuperset(kinds):
                raise _impossible(number, "it is being scored")
            for kind in kinds:
                if kind not in pending:
                    last = max((rounds for each, _, rounds in scorings if each == kind), default=0)
                    enqueue(session, number, kind, last + 1, now)

            # In any case: a process may be about to refuse it.
            accepted = update(SubmissionRow).where(SubmissionRow.id == number)
            session.execute(accepted.values(refused=None, is_refused=False))
            log_event(session, now, "rescored", f"Submission {number} is scored again.", submission.team_id, number)
    return len(unique)


def _impossible(number: int, reason: str) -> UserError:
    return UserError(f"numbers: submission {number} cannot be scored again: {reason}")


def log_too_large(database: Database, team: TeamRow, track: Track, size: int, limit: int) -> None:
    """Log for organisers that a document was refused for its size in bytes; the document is not stored."""
    message = f"A submission of {team.name} ({track.title()} Team): refused, has {size:,} bytes, limit {limit:,}"
    with database.writing() as session:
        log_event(session, datetime.now(UTC), "refused", message, team.id)


def freeze(database: Database) -> None:
    """Accept no submissions until `thaw`."""
    now = datetime.now(UTC)
    with database.writing() as session:
        if not is_frozen(session):
            session.add(FactRow(name=FROZEN, value=now.isoformat()))
            log_event(session, now, "frozen", "Submissions are paused.", public=True)


def thaw(database: Database) -> None:
    """Accept submissions again."""
    now = datetime.now(UTC)
    with database.writing() as session:
        fact = session.get(FactRow, FROZEN)
        if fact is not None:
            session.delete(fact)
            log_event(session, now, "thawed", "Submissions are open again.", public=True)


def is_frozen(session: Session) -> bool:
    """Whether organisers have closed the portal."""
    return session.get(FactRow, FROZEN) is not None

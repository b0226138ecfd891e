"""Submissions are handed in: kept whatever is wrong with them, and queued where nothing is."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime

from sqlalchemy import select
from sqlalchemy.orm import Session

from headstart.contract.challenge import Challenge, find_untimely
from headstart.contract.problems import Problem
from headstart.contract.schema import Team as Track
from headstart.output.errors import UserError
from headstart.portal.accounts import Team
from headstart.portal.database import Database, FactRow, ScoringRow, SubmissionRow, TeamRow, record
from headstart.portal.queue import enqueue
from headstart.portal.records import latest_public

FROZEN = "frozen"
LONGEST_KEY = 160


class ClosedError(UserError):
    """The portal takes nothing in, whatever it is."""


class OtherDocumentError(UserError):
    """A key was used before, for something else."""


@dataclass(frozen=True)
class Receipt:
    """What became of a document that was handed in.

    Attributes:
        id: The submission's number.
        refused: Whether it was refused.
        new: Whether it was not handed in before with the same key.
    """

    id: int
    refused: bool
    new: bool


def hand_in(
    database: Database,
    challenge: Challenge,
    team: Team,
    track: Track,
    content: bytes,
    problems: Sequence[dict[str, str]],
    key: str,
    held_out: bool,
    now: datetime,
) -> Receipt:
    """Take in a submission.

    Args:
        database: The portal's.
        challenge: The challenge, whose deadline and quotas hold.
        team: Who hands it in.
        track: Team of the contract that it is for.
        content: The document.
        problems: What is wrong with it, as `headstart.portal.validation` says it; with any it is refused.
        key: Text of at most 160 characters that the sender chose for it: what is sent again with the same one, because
            no answer came, is taken once.
        held_out: Whether it has a held-out score, too.
        now: When it is handed in.

    Returns:
        What became of it.

    Raises:
        ClosedError: Organisers have closed the portal, or the team's token was revoked meanwhile.
        OtherDocumentError: The key is that of another submission.
    """
    digest = hashlib.sha256(content).hexdigest()
    with database.writing() as session:
        # One after the other of one team: of two at once, both would find that a quota leaves room for one.
        row = session.scalar(select(TeamRow).where(TeamRow.id == team.id).with_for_update())
        if row is None or row.revoked is not None:
            raise ClosedError("team: its token was revoked; ask the organisers")
        there = session.scalar(select(SubmissionRow).where(SubmissionRow.team_id == team.id, SubmissionRow.key == key))
        if there is not None:
            if (there.sha256, there.track) != (digest, track):
                raise OtherDocumentError("key: another document was handed in with it; choose another key")
            return Receipt(there.id, there.is_refused, new=False)
        if is_frozen(session):
            raise ClosedError("submission: the organisers take in no submissions at present")
        untimely = find_untimely(challenge, track, counted_times(session, team, track), now)
        found = [*(asdict(problem) for problem in untimely), *problems]
        submission = SubmissionRow(
            team_id=team.id,
            track=track,
            key=key,
            content=content,
            sha256=digest,
            received=now,
            refused=json.dumps(found) if found else None,
            is_refused=bool(found),
        )
        session.add(submission)
        session.flush()
        what = f"Submission {submission.id} of {team.name} ({track.title()} Team)"
        if found:
            message = f"{what}: refused, {Problem(**found[0])}"
            record(session, now, "refused", message, team.id, submission.id)
        else:
            enqueue(session, submission.id, "public", 1, now)
            if held_out:
                enqueue(session, submission.id, "held_out", 1, now)
            record(session, now, "received", f"{what}: received.", team.id, submission.id, public=True)
        return Receipt(submission.id, bool(found), new=True)


def note_too_large(database: Database, team: Team, track: Track, size: int, limit: int) -> None:
    """Log for organisers that a document was refused for its size in bytes alone; it is not kept."""
    message = f"A submission of {team.name} ({track.title()} Team): refused, has {size:,} bytes, beyond {limit:,}"
    with database.writing() as session:
        record(session, datetime.now(UTC), "refused", message, team.id)


def freeze(database: Database) -> None:
    """Take in nothing more."""
    now = datetime.now(UTC)
    with database.writing() as session:
        if not is_frozen(session):
            session.add(FactRow(name=FROZEN, value=now.isoformat()))
            record(session, now, "frozen", "No submissions are taken in at present.", public=True)


def thaw(database: Database) -> None:
    """Take in submissions again."""
    now = datetime.now(UTC)
    with database.writing() as session:
        fact = session.get(FactRow, FROZEN)
        if fact is not None:
            session.delete(fact)
            record(session, now, "thawed", "Submissions are taken in again.", public=True)


def is_frozen(session: Session) -> bool:
    """Tell whether organisers have closed the portal."""
    return session.get(FactRow, FROZEN) is not None


def counted_times(session: Session, team: Team, track: Track) -> Sequence[datetime]:
    """Give when the submissions of a team that count were handed in: those not refused that have not failed."""
    query = (
        select(SubmissionRow.received)
        .join(ScoringRow, latest_public())
        .where(SubmissionRow.team_id == team.id, SubmissionRow.track == track, SubmissionRow.is_refused.is_(False))
        .where(ScoringRow.state != "failed")
    )
    return session.scalars(query).all()

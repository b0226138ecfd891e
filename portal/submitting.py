"""A document that somebody sent: measured, validated, and taken in."""

from __future__ import annotations

import hashlib
import secrets
from datetime import UTC, datetime

from fastapi import HTTPException, Request
from starlette.concurrency import run_in_threadpool

from headstart.contract.schema import Team as Track
from headstart.portal.accounts import Team
from headstart.portal.intake import LONGEST_KEY, ClosedError, OtherDocumentError, Receipt, hand_in, note_too_large
from headstart.portal.state import Portal
from headstart.portal.validation import ValidatorError

WAIT = {"Retry-After": "30"}


def new_key() -> str:
    """Give a key by which a form that is sent twice is told."""
    return secrets.token_urlsafe(16)


def key_of_form(nonce: str, content: bytes) -> str:
    """Give the key of what a form sends: the same document sent twice from one page is taken once, another is not."""
    return f"{_digest(nonce.encode())}:{_digest(content)}"


async def find_problems(portal: Portal, request: Request, track: Track, content: bytes) -> list[dict[str, str]]:
    """Validate a document that is not handed in.

    Raises:
        HTTPException: Too many are sent, it is too large, or the validator is away.
    """
    who = request.client.host if request.client else ""
    if not portal.rates.take("validations", who):
        raise HTTPException(429, "Too many documents within a minute; wait a little.", WAIT)
    return await _validate(portal, track, content, handed_in=False)


async def submit(portal: Portal, team: Team, track: Track, content: bytes, key: str) -> Receipt:
    """Validate a document and hand it in.

    Args:
        portal: Where.
        team: Who hands it in.
        track: Team of the contract that it is for.
        content: The document.
        key: By which it is known where it is sent again.

    Raises:
        HTTPException: It is not taken in, not even as refused.
    """
    if not 0 < len(key) <= LONGEST_KEY:
        raise HTTPException(400, f"A key has 1 to {LONGEST_KEY} characters.")
    if not portal.rates.take("submissions", str(team.id)):
        raise HTTPException(429, "Too many submissions within a minute; wait a little.", WAIT)
    # Who was in time is not late because others were validated first.
    now, limit = datetime.now(UTC), int(portal.settings.max_submission_bytes)
    if len(content) > limit:
        await run_in_threadpool(note_too_large, portal.database, team, track, len(content), limit)
    problems = await _validate(portal, track, content, handed_in=True)
    held_out = portal.settings.has_held_out_score(track)
    try:
        return await run_in_threadpool(
            hand_in, portal.database, portal.challenge, team, track, content, problems, key, held_out, now
        )
    except ClosedError as error:
        raise HTTPException(403, str(error)) from error
    except OtherDocumentError as error:
        raise HTTPException(409, str(error)) from error


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


async def _validate(portal: Portal, track: Track, content: bytes, handed_in: bool) -> list[dict[str, str]]:
    limit = portal.settings.max_submission_bytes
    if len(content) > limit:
        raise HTTPException(413, f"The document is larger than {limit:,} bytes, the limit.")
    try:
        return await portal.validator.find_problems(content, track, handed_in)
    except ValidatorError as error:
        raise HTTPException(503, "The document could not be validated now; send it again.", WAIT) from error

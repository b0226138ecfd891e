"""Documents that arrive over HTTP: limits, validation, submission."""

import hashlib
import secrets
from datetime import UTC, datetime

from fastapi import HTTPException, Request
from starlette.concurrency import run_in_threadpool

from headstart.contract.schema import Team as Track
from headstart.portal.phases import Phase, current_phase
from headstart.portal.records.quotas import find_same
from headstart.portal.records.submissions import Record
from headstart.portal.records.tables import AccountRow
from headstart.portal.web.state import Portal
from headstart.portal.work import intake
from headstart.portal.work.validation import ValidatorError

WAIT = {"Retry-After": "30"}


def new_key() -> str:
    """Return a key that identifies a form that is sent twice."""
    return secrets.token_urlsafe(16)


def key_of_form(nonce: str, content: bytes) -> str:
    """Return the key of a sent form; the same document sent twice from one page has the same key."""
    return ":".join(hashlib.sha256(part).hexdigest() for part in (nonce.encode(), content))


def client_address(request: Request) -> str:
    """Return the address that a request comes from."""
    return request.client.host if request.client else ""


async def check_document(
    portal: Portal, request: Request, account: AccountRow | None, track: Track, content: bytes
) -> tuple[list[dict[str, str]], Record | None]:
    """Validate a document without submitting it.

    Requests are counted by team, because behind some proxies all have one address, and by address without a team.

    Returns:
        Its problems, and the submission of the same document by the account's team in this phase, if there is one.

    Raises:
        HTTPException: There are too many requests, the document is too large, or the validator is unavailable.
    """
    client = client_address(request) if account is None or account.team_id is None else str(account.team_id)
    if not portal.allow("validations", client):
        raise HTTPException(429, "Too many documents within a minute. Wait a little.", WAIT)
    phase = portal.phase
    problems = await _validate(portal, phase, track, content, submitted=False)

    def find() -> Record | None:
        with portal.database.reading() as session:
            return find_same(session, account.team_id if account else None, phase.name, track, content)

    return problems, await run_in_threadpool(find)


async def submit(
    portal: Portal, account: AccountRow, track: Track, content: bytes, key: str, again: bool
) -> intake.Receipt:
    """Validate a document and submit it.

    Args:
        portal: The portal.
        account: The member of a team who submits it.
        track: Team of the contract.
        content: The document.
        key: Key that identifies the document when it is sent again.
        again: Whether to submit a document that the team has submitted before.

    Raises:
        HTTPException: The document is not stored, not even as refused.
        SameDocumentError: The team has submitted it before, and not `again`.
    """
    if not 0 < len(key) <= intake.MAX_KEY_LENGTH:
        raise HTTPException(400, f"A key must have 1 to {intake.MAX_KEY_LENGTH} characters.")
    if account.team is None:
        raise HTTPException(403, "Organisers without a team cannot submit.")
    if not portal.allow("submissions", str(account.team_id)):
        raise HTTPException(429, "Too many submissions within a minute. Wait a little.", WAIT)

    # The time before the validation counts: waiting for other documents must not make a submission late.
    now, limit, daily = datetime.now(UTC), int(portal.settings.max_submission_bytes), int(portal.settings.bytes_per_day)
    if len(content) > limit:
        await run_in_threadpool(intake.log_too_large, portal.database, account.team, track, len(content), limit)
    phase = current_phase(portal.phases, now)
    problems = await _validate(portal, phase, track, content, submitted=True)

    try:
        return await run_in_threadpool(
            intake.store_submission, portal.database, phase, account, track, content, problems, key, daily, now, again
        )
    except intake.NotTakenError as error:
        raise HTTPException(error.status, str(error)) from error


async def _validate(
    portal: Portal, phase: Phase, track: Track, content: bytes, submitted: bool
) -> list[dict[str, str]]:
    limit = portal.settings.max_submission_bytes
    if len(content) > limit:
        raise HTTPException(413, f"The document is larger than the limit of {limit:,} bytes.")
    try:
        return await portal.validator.find_problems(content, phase.name, track, submitted)
    except ValidatorError as error:
        raise HTTPException(503, "The document could not be checked now. Send it again.", WAIT) from error

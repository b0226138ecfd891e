"""The state of a running server: the challenge, the database, limits, validation and authentication.

Programs send the token of their team in the header Authorization; their cookies are ignored. Browsers send the token as
a cookie, which no script and no other site can read or use. Tokens cannot be guessed, so wrong tokens are not counted.
"""

import asyncio
import re
from datetime import UTC, datetime
from typing import Annotated, Literal

from fastapi import Depends, HTTPException, Request
from limits import RateLimitItemPerMinute
from limits.storage import MemoryStorage
from limits.strategies import MovingWindowRateLimiter
from prometheus_client import CollectorRegistry, Counter
from sqlalchemy.orm import Session
from starlette.concurrency import run_in_threadpool

from headstart.contract.problems import Problem
from headstart.contract.schema import Track
from headstart.portal.database import Database
from headstart.portal.documents import read_documents
from headstart.portal.queue import Receipt, find_problems, is_closed, store_submission
from headstart.portal.settings import Settings
from headstart.portal.submissions import record_basis
from headstart.portal.tables import TeamRow
from headstart.portal.teams import find_by_token

COOKIE = "headstart_token"
PROGRAM_PATHS = ("/api/", "/health", "/metrics")
WAIT = {"Retry-After": "30"}
MAX_WAIT_SECONDS = 60.0


class Portal:
    """The state of a running server. It creates the tables, and records the basis of scores.

    Args:
        settings: The organiser's settings.

    Attributes:
        held_back: Number of submissions that must be scored again.

    Raises:
        UserError: A document cannot be read, or the tables are not the portal's.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.documents = read_documents(settings)
        self.challenge = self.documents.challenge
        self.database = Database(settings.database_url)
        self.database.create_tables()
        with self.database.writing() as session:
            self.held_back = record_basis(session, self.documents.basis)

        # Documents are validated one at a time, so that large ones delay pages little.
        self._validating = asyncio.Lock()
        self.registry = CollectorRegistry()
        self.responses = Counter("headstart_requests", "Answers.", ["route", "status"], registry=self.registry)
        self._limiter = MovingWindowRateLimiter(MemoryStorage())
        self._documents_per_minute = RateLimitItemPerMinute(settings.documents_per_minute)

    def find_state(self, session: Session) -> Literal["over", "closed", "ahead", "open"]:
        """Return the state: over (the deadline), closed (by the organisers), ahead (of the opening) or open."""
        now = datetime.now(UTC)
        if self.challenge.is_over(now):
            return "over"
        if is_closed(session):
            return "closed"
        return "ahead" if self.challenge.is_ahead(now) else "open"

    def address(self, request: Request) -> str:
        """Return the base URL of the portal in browsers, without a trailing slash."""
        address = (self.settings.url or f"{request.url.scheme}://{request.headers.get('host', '')}").rstrip("/")
        # Browsers leave out the default port of the scheme (RFC 6454).
        return re.sub(r"^(http://.*):80$|^(https://.*):443$", r"\1\2", address)

    async def submit(self, team: TeamRow, track: Track, content: bytes) -> Receipt:
        """Validate a document and submit it.

        Raises:
            HTTPException: There are too many requests, or the document is too large.
            NotTakenError: The document is not stored, not even as refused.
        """
        # The time before the validation counts: waiting for other documents must not make a submission late.
        now, per_day = datetime.now(UTC), int(self.settings.bytes_per_day)
        problems = await self.check(team, track, content)
        arguments = (self.database, self.challenge, team.id, track, content)
        return await run_in_threadpool(store_submission, *arguments, problems, per_day, now)

    async def check(self, team: TeamRow, track: Track, content: bytes) -> list[Problem]:
        """Return the problems of a document without submitting it.

        Raises:
            HTTPException: There are too many requests, or the document is too large.
        """
        if not self._limiter.hit(self._documents_per_minute, str(team.id)):
            raise HTTPException(429, "Too many documents within a minute. Wait a little.", WAIT)
        limit = self.settings.max_submission_bytes
        if len(content) > limit:
            raise HTTPException(413, f"The document is larger than the limit of {limit:,} bytes.")
        try:
            async with asyncio.timeout(MAX_WAIT_SECONDS), self._validating:
                return await run_in_threadpool(find_problems, self.documents, track, content)
        except TimeoutError as error:
            raise HTTPException(503, "Too many documents wait to be checked. Send it again.", WAIT) from error


def find_portal(request: Request) -> Portal:
    """Return the portal that serves a request."""
    portal: Portal = request.app.state.portal
    return portal


PortalDependency = Annotated[Portal, Depends(find_portal)]


def visiting_team(request: Request, portal: PortalDependency) -> TeamRow | None:
    """Return the team by the cookie (pages) or the header Authorization (programs); None without a valid token."""
    token = request.cookies.get(COOKIE, "")
    if request.url.path.startswith(PROGRAM_PATHS):
        scheme, _, sent = request.headers.get("authorization", "").partition(" ")
        token = sent.strip() if scheme.lower() == "bearer" else ""
    return find_by_token(portal.database, token) if token else None


Visitor = Annotated[TeamRow | None, Depends(visiting_team)]


def calling_team(team: Visitor) -> TeamRow:
    """Return the team of a program's request.

    Raises:
        HTTPException: The header has no valid token.
    """
    if team is None:
        raise HTTPException(401, "The header Authorization has no valid token.", {"WWW-Authenticate": "Bearer"})
    return team


Caller = Annotated[TeamRow, Depends(calling_team)]

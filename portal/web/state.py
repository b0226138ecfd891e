"""The state of a running server: the challenge, the database, limits, and how documents arrive."""

import asyncio
import threading
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from typing import Annotated

from fastapi import Depends, HTTPException, Request
from limits import parse
from limits.storage import MemoryStorage
from limits.strategies import MovingWindowRateLimiter
from markupsafe import Markup
from prometheus_client import CollectorRegistry, Counter
from sqlalchemy import func, select
from sqlalchemy.orm import Session
from starlette.concurrency import run_in_threadpool

from headstart.contract.problems import Problem
from headstart.contract.schema import Team as Track
from headstart.portal.database import Database
from headstart.portal.documents import read_documents, record_bases
from headstart.portal.intake import NotTakenError, Receipt, find_problems, store_submission
from headstart.portal.queue import limit_problems
from headstart.portal.settings import Settings
from headstart.portal.submissions import Board, rank_teams
from headstart.portal.tables import EventRow, TeamRow

# Wrong tokens from one address.
MISTAKES_PER_MINUTE = 20
WAIT = {"Retry-After": "30"}
MAX_WAIT_SECONDS = 60.0
# Kinds of events after which the leaderboard may be another one.
CHANGES = ("scored", "refused", "rescored", "hidden", "team removed", "team added")
# More problems of one document are only counted: nobody reads them, and writing them would delay pages.
MAX_PROBLEMS = 1000


class Portal:
    """The state of a running server.

    Args:
        settings: The organiser's settings.

    Raises:
        UserError: A document cannot be read.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.documents = read_documents(settings)
        self.challenge = self.documents.challenge
        self.database = Database(settings.database_url)
        # One document at a time, so that a large one delays pages little.
        self._validating, self._checking = asyncio.Lock(), asyncio.Lock()
        self.registry = CollectorRegistry()
        self.answers = Counter("headstart_requests", "Answers.", ["route", "status"], registry=self.registry)
        self._boards: dict[Track, tuple[object, Board]] = {}
        self.tables: dict[Track, tuple[Board, Markup]] = {}
        self._boards_lock = threading.Lock()
        self._limiter = MovingWindowRateLimiter(MemoryStorage())
        self._limits = {
            "submissions": parse(f"{settings.submissions_per_minute}/minute"),
            "validations": parse(f"{settings.validations_per_minute}/minute"),
            "mistakes": parse(f"{MISTAKES_PER_MINUTE}/minute"),
        }

    def open(self) -> int:
        """Create the tables, record what scores are computed from, and return how many must be computed again.

        Raises:
            UserError: The tables are not the portal's.
        """
        self.database.create_tables()
        with self.database.writing() as session:
            return record_bases(session, self.documents.bases)

    @property
    def is_over(self) -> bool:
        """Whether the deadline has passed."""
        return self.challenge.is_over(datetime.now(UTC))

    @property
    def is_ahead(self) -> bool:
        """Whether the challenge has not opened yet."""
        return self.challenge.is_ahead(datetime.now(UTC))

    def find_board(self, session: Session, track: Track) -> Board:
        """Return a leaderboard; it is ranked once for each change, however many read it."""
        now, changes = datetime.now(UTC), select(func.count(), func.max(EventRow.id)).where(EventRow.kind.in_(CHANGES))
        # A line of a lower number may become visible after one of a higher number.
        state = self.is_over, *session.execute(changes).one()
        with self._boards_lock:
            if track not in self._boards or self._boards[track][0] != state:
                self._boards[track] = state, rank_teams(session, self.documents, track, now)
            return self._boards[track][1]

    def address(self, request: Request) -> str:
        """Return the address of the portal in browsers, without a slash at its end."""
        return (self.settings.url or f"{request.url.scheme}://{request.headers.get('host', '')}").rstrip("/")

    def require_within_limit(self, kind: str, client: str) -> None:
        """Count a request of this process; arguments are the kind of limit, and the address or team that sends it.

        Raises:
            HTTPException: There were too many within a minute.
        """
        if not self._limiter.hit(self._limits[kind], kind, client):
            raise HTTPException(429, f"Too many {kind} within a minute. Wait a little.", WAIT)

    async def check(self, request: Request, team: TeamRow | None, track: Track, content: bytes) -> list[Problem]:
        """Return the problems of a document without submitting it.

        Requests are counted by team, because behind some proxies all have one address, and by address without a team.

        Raises:
            HTTPException: There are too many requests, or the document is too large.
        """
        self.require_within_limit("validations", client_address(request) if team is None else str(team.id))
        return limit_problems(await self._validate(content, track, submitted=False), MAX_PROBLEMS)

    async def submit(self, team: TeamRow, track: Track, content: bytes) -> Receipt:
        """Validate a document and submit it.

        Raises:
            HTTPException: The document is not stored, not even as refused.
        """
        self.require_within_limit("submissions", str(team.id))
        # The time before the validation counts: waiting for other documents must not make a submission late.
        now, per_day = datetime.now(UTC), int(self.settings.bytes_per_day)
        problems = await self._validate(content, track, submitted=True)
        place = (self.database, self.documents, team.id, track, content)
        try:
            return await run_in_threadpool(store_submission, *place, problems, per_day, now)
        except NotTakenError as error:
            raise HTTPException(403, str(error)) from error

    async def _validate(self, content: bytes, track: Track, submitted: bool) -> list[Problem]:
        limit = self.settings.max_submission_bytes
        if len(content) > limit:
            raise HTTPException(413, f"The document is larger than the limit of {limit:,} bytes.")
        async with AsyncExitStack() as locks:
            try:
                async with asyncio.timeout(MAX_WAIT_SECONDS):
                    # Anybody may check documents, so at most one such document comes before one that is submitted.
                    if not submitted:
                        await locks.enter_async_context(self._checking)
                    await locks.enter_async_context(self._validating)
            except TimeoutError as error:
                raise HTTPException(503, "Too many documents wait to be checked. Send it again.", WAIT) from error
            return await run_in_threadpool(find_problems, self.documents, track, content)


def client_address(request: Request) -> str:
    """Return the address that a request comes from."""
    return request.client.host if request.client else ""


def find_portal(request: Request) -> Portal:
    """Return the portal of a request."""
    portal: Portal = request.app.state.portal
    return portal


PortalDependency = Annotated[Portal, Depends(find_portal)]

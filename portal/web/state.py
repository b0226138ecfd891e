"""The state of a running server: the challenge, the database, and how documents arrive."""

import asyncio
import re
from datetime import UTC, datetime
from typing import Annotated, Literal

from fastapi import Depends, HTTPException, Request
from starlette.concurrency import run_in_threadpool

from headstart.contract.schema import Team as Track
from headstart.contract.submissions import Submission, check_submission
from headstart.portal.database import Database
from headstart.portal.documents import read_documents
from headstart.portal.queue import Receipt, store_submission
from headstart.portal.settings import Settings
from headstart.portal.submissions import find_held_back
from headstart.portal.tables import TeamRow


class Portal:
    """The state of a running server. It creates the tables.

    Args:
        settings: The organiser's settings.

    Raises:
        UserError: A document cannot be read, or the tables are not the portal's.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.documents = read_documents(settings)
        self.challenge = self.documents.challenge
        self.database = Database(settings.folder)
        self.database.create_tables()
        # One document at a time, so that a large one delays pages little.
        self._checking = asyncio.Lock()

    def count_held_back(self) -> int:
        """Count the submissions that must be scored again, because documents or rules have changed."""
        with self.database.reading() as session:
            return len(find_held_back(session, self.documents.bases))

    @property
    def state(self) -> Literal["over", "ahead", "open"]:
        """Whether submissions are accepted, and if not, why."""
        now = datetime.now(UTC)
        return "over" if self.challenge.is_over(now) else "ahead" if self.challenge.is_ahead(now) else "open"

    def address(self, request: Request) -> str:
        """Return the address of the portal in browsers, without a slash at its end."""
        address = (self.settings.url or f"{request.url.scheme}://{request.headers.get('host', '')}").rstrip("/")
        # Browsers leave out the scheme's own port (RFC 6454).
        return re.sub(r"^(http://.*):80$|^(https://.*):443$", r"\1\2", address)

    async def check(self, content: bytes, track: Track | None = None) -> Submission:
        """Check a document.

        Args:
            content: The document.
            track: The team of the contract that it must be of; None for either.

        Raises:
            ContractError: It breaks a rule.
            HTTPException: It is too large.
        """
        limit = self.settings.max_submission_bytes
        if len(content) > limit:
            raise HTTPException(413, f"The document is larger than the limit of {limit:,} bytes.")
        documents = (self.documents.registry, self.documents.catalog)
        async with self._checking:
            place = (content, "submission", *documents, track, self.challenge)
            return await run_in_threadpool(check_submission, *place)

    async def submit(self, team: TeamRow, content: bytes, track: Track | None = None) -> Receipt:
        """Check a document and submit it; arguments and errors as of `check` and `store_submission`."""
        # The time before the check counts: waiting for other documents must not make a submission late.
        now = datetime.now(UTC)
        submission = await self.check(content, track)
        return await run_in_threadpool(store_submission, self.database, self.challenge, team.id, submission, now)


def find_portal(request: Request) -> Portal:
    """Return the portal of a request."""
    portal: Portal = request.app.state.portal
    return portal


PortalDependency = Annotated[Portal, Depends(find_portal)]

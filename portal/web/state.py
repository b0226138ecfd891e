"""The state of a running server: the challenge, the database, the validator, the limits of requests."""

from datetime import UTC, datetime
from typing import Annotated

from fastapi import Depends, HTTPException, Request
from limits import parse
from limits.storage import MemoryStorage
from limits.strategies import MovingWindowRateLimiter
from sqlalchemy.orm import Session

from headstart.contract.challenge import Challenge
from headstart.contract.schema import Team as Track
from headstart.contract.submissions import KEYS
from headstart.portal.phases import Phase, current_phase, read_phases, record_bases
from headstart.portal.records.database import Database
from headstart.portal.settings import Settings
from headstart.portal.web.boards import Board, Boards
from headstart.portal.web.examples import make_example
from headstart.portal.web.metrics import Metrics
from headstart.portal.work.validation import Validator

# Wrong tokens from one address.
MISTAKES_PER_MINUTE = 20
# Invitations and new tokens of one team.
CHANGES_PER_MINUTE = 20


class Portal:
    """The state of a running server.

    Args:
        settings: The organiser's settings.

    Raises:
        UserError: A document cannot be read.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.phases = read_phases(settings)
        self.examples = {
            (phase.name, track): make_example(phase, track, int(settings.max_submission_bytes))
            for phase in self.phases
            for track in KEYS
        }

        self.database = Database(settings.database_url)
        self.validator = Validator(self.phases)
        self.boards = Boards()
        self.metrics = Metrics()
        self._limiter = MovingWindowRateLimiter(MemoryStorage())
        self._limits = {
            "submissions": parse(f"{settings.submissions_per_minute}/minute"),
            "validations": parse(f"{settings.validations_per_minute}/minute"),
            "mistakes": parse(f"{MISTAKES_PER_MINUTE}/minute"),
            "changes": parse(f"{CHANGES_PER_MINUTE}/minute"),
        }

    def open(self) -> list[str]:
        """Create or migrate the tables, and record the documents that scores are computed from.

        Returns:
            What the organiser must know of it, in sentences.

        Raises:
            UserError: The tables are not the portal's.
        """
        copy = self.database.create_tables()
        with self.database.writing() as session:
            held_back = record_bases(session, self.phases, datetime.now(UTC))

        news = [] if copy is None else [f"The database of an earlier version was copied to {copy} and updated."]
        if held_back:
            news.append(
                f"Submissions off the leaderboard, because scored with other documents or rules: {held_back}. "
                "`headstart portal admin rescore --held_back` scores them again."
            )
        return news

    def allow(self, kind: str, client: str) -> bool:
        """Count a request, and return whether it is within the limit of the last minute; in this process alone.

        Args:
            kind: `submissions`, `validations`, `mistakes` or `changes`.
            client: Address or team that sends it.
        """
        return self._limiter.hit(self._limits[kind], kind, client)

    @property
    def phase(self) -> Phase:
        """The phase that submissions belong to now."""
        return current_phase(self.phases, datetime.now(UTC))

    @property
    def challenge(self) -> Challenge:
        """The rules of that phase."""
        return self.phase.challenge

    def is_over(self, phase: Phase | None = None) -> bool:
        """Whether the deadline of a phase has passed, by default of the last one."""
        return (phase or self.phase).challenge.is_over(datetime.now(UTC))

    def find_phase(self, name: str | None) -> Phase:
        """Return the phase of a name; the current one without a name.

        Raises:
            HTTPException: There is no such phase.
        """
        phase = self.phase if name is None else next((each for each in self.phases if each.name == name), None)
        if phase is None:
            raise HTTPException(404, f"There is no such phase. Phases: {', '.join(p.name for p in self.phases)}.")
        return phase

    def find_board(self, session: Session, phase: Phase, track: Track) -> Board:
        """Return a leaderboard, with held-out scores once the phase is over."""
        return self.boards.find(session, phase, track, self.is_over(phase))

    def address(self, request: Request) -> str:
        """Return the address of the portal in browsers, without a slash at its end."""
        return (self.settings.url or f"{request.url.scheme}://{request.headers.get('host', '')}").rstrip("/")

    def close(self) -> None:
        """End the validator and close the database."""
        self.validator.close()
        self.database.close()


def find_portal(request: Request) -> Portal:
    """Return the portal of a request."""
    portal: Portal = request.app.state.portal
    return portal


PortalDependency = Annotated[Portal, Depends(find_portal)]

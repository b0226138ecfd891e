"""The state of a running server: the challenge, the database, the validator, the limits of requests."""

from datetime import UTC, datetime
from typing import Annotated

from fastapi import Depends, Request
from limits import parse
from limits.storage import MemoryStorage
from limits.strategies import MovingWindowRateLimiter

from headstart.contract.challenge import challenge_path, read_challenge
from headstart.contract.documents import catalog_path, read_catalog, read_registry, registry_path
from headstart.contract.submissions import KEYS
from headstart.portal.records.database import Database
from headstart.portal.settings import Settings
from headstart.portal.web.boards import Boards
from headstart.portal.web.examples import make_example
from headstart.portal.web.metrics import Metrics
from headstart.portal.work.validation import Validator

# Wrong tokens from one address.
MISTAKES_PER_MINUTE = 20


class Portal:
    """The state of a running server.

    Args:
        settings: The organiser's settings.

    Raises:
        UserError: A document cannot be read.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.challenge = read_challenge(challenge_path(settings.challenge))
        registry_file, self.catalog_file = registry_path(settings.registry), catalog_path(settings.catalog)
        registry, catalog = read_registry(registry_file), read_catalog(self.catalog_file)
        self.models, self.stimuli = tuple(registry.entries), len(catalog.stimuli)
        limit = int(settings.max_submission_bytes)
        self.examples = {track: make_example(self.challenge, track, registry, catalog, limit) for track in KEYS}

        self.database = Database(settings.database_url)
        self.validator = Validator(registry_file, self.catalog_file, self.challenge)
        self.boards = Boards(self.challenge)
        self.metrics = Metrics()
        self._limiter = MovingWindowRateLimiter(MemoryStorage())
        self._limits = {
            "submissions": parse(f"{settings.submissions_per_minute}/minute"),
            "validations": parse(f"{settings.validations_per_minute}/minute"),
            "mistakes": parse(f"{MISTAKES_PER_MINUTE}/minute"),
        }

    def allow(self, kind: str, client: str) -> bool:
        """Count a request, and return whether it is within the limit of the last minute; in this process alone.

        Args:
            kind: `submissions`, `validations` or `mistakes`.
            client: Address or team that sends it.
        """
        return self._limiter.hit(self._limits[kind], kind, client)

    def is_over(self) -> bool:
        """Whether the deadline has passed."""
        return self.challenge.is_over(datetime.now(UTC))

    def shows_held_out(self, track: str) -> bool:
        """Whether the held-out scores of a team of the contract are shown."""
        return self.is_over() and self.settings.has_held_out_score(track)

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

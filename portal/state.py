"""What the server's answers are made from: the challenge, the database, the validator."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from fastapi import Depends, Request

from headstart.contract.challenge import challenge_path, read_challenge
from headstart.contract.documents import catalog_path, read_catalog, read_registry, registry_path
from headstart.contract.submissions import KEYS
from headstart.portal.boards import Boards
from headstart.portal.database import Database
from headstart.portal.examples import make_example
from headstart.portal.leaderboard import Leaderboard
from headstart.portal.metrics import Metrics
from headstart.portal.rates import Rates
from headstart.portal.settings import Settings
from headstart.portal.validation import Validator

# Wrong tokens from one address.
MISTAKES_PER_MINUTE = 20


class Portal:
    """What holds while the server runs.

    Args:
        settings: The organiser's.

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
        self.leaderboard = Leaderboard(self.challenge)
        self.boards = Boards(self.challenge)
        self.metrics = Metrics()
        self.rates = Rates(
            submissions=int(settings.submissions_per_minute),
            validations=int(settings.validations_per_minute),
            mistakes=MISTAKES_PER_MINUTE,
        )

    def is_over(self) -> bool:
        """Tell whether the deadline has passed."""
        return self.challenge.is_over(datetime.now(UTC))

    def shows_held_out(self, track: str) -> bool:
        """Tell whether the held-out scores of a team of the contract are shown."""
        return self.is_over() and self.settings.has_held_out_score(track)

    def address(self, request: Request) -> str:
        """Give the address by which browsers reach the portal, without a slash at its end."""
        return (self.settings.url or f"{request.url.scheme}://{request.headers.get('host', '')}").rstrip("/")

    def close(self) -> None:
        """End what runs beside."""
        self.validator.close()
        self.database.close()


def find_portal(request: Request) -> Portal:
    """Give the portal that a request is for."""
    portal: Portal = request.app.state.portal
    return portal


PortalDependency = Annotated[Portal, Depends(find_portal)]

"""The documents of a challenge, and the basis of its scores.

The basis of a score is a digest of its documents and rules. Scores of different bases are never ranked together.
"""

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property

from sqlalchemy.orm import Session

from headstart.contract.challenge import Challenge, challenge_path, read_challenge
from headstart.contract.documents import Catalog, Registry, catalog_path, read_catalog, read_registry, registry_path
from headstart.contract.schema import CONTRACT_VERSION
from headstart.portal.settings import Settings
from headstart.portal.tables import FactRow

BASIS = "basis"


@dataclass(frozen=True)
class Documents:
    """The documents of a challenge.

    Attributes:
        challenge: The rules of the challenge.
        registry: The models of the challenge.
        catalog: The stimuli of the challenge.
        extraction: The settings of the feature extraction that change scores.
    """

    challenge: Challenge
    registry: Registry
    catalog: Catalog
    extraction: dict[str, object]

    @cached_property
    def basis(self) -> str:
        """The basis of scores."""
        digests = [self.registry.sha256, self.catalog.sha256, self.challenge.scoring_digest]
        parts = [digests, self.extraction, CONTRACT_VERSION]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def read_documents(settings: Settings) -> Documents:
    """Read the documents that the settings name.

    Raises:
        UserError: A document cannot be read.
    """
    rules = read_challenge(challenge_path(settings.challenge))
    registry, catalog = read_registry(registry_path(settings.registry)), read_catalog(catalog_path(settings.catalog))
    return Documents(rules, registry, catalog, settings.extraction.score_settings)


def read_basis(session: Session) -> str | None:
    """Return the basis that the server recorded; None before its first start."""
    fact = session.get(FactRow, BASIS)
    return None if fact is None else fact.value

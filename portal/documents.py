"""The documents of a challenge, and what its scores are computed from.

The basis of a score identifies its documents and rules: scores of different ones are never ranked together.
"""

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property

from sqlalchemy.orm import Session

from headstart.contract.challenge import Challenge, challenge_path, read_challenge
from headstart.contract.documents import Catalog, Registry, catalog_path, read_catalog, read_registry, registry_path
from headstart.contract.schema import CONTRACT_VERSION
from headstart.contract.schema import Team as Track
from headstart.contract.submissions import KEYS
from headstart.portal.settings import Settings
from headstart.portal.tables import FactRow, Kind

BASES = "bases"


@dataclass(frozen=True)
class Documents:
    """The documents of a challenge.

    Attributes:
        challenge: Its rules.
        registry: Its models.
        catalog: Its stimuli.
        held_out_registry: Models that are not published; None without a held-out score of the Red Team.
        held_out_catalog: Stimuli that are not published; None without a held-out score of the Blue Team.
        extraction: The settings of the extraction that change scores.
    """

    challenge: Challenge
    registry: Registry
    catalog: Catalog
    held_out_registry: Registry | None
    held_out_catalog: Catalog | None
    extraction: dict[str, object]

    def kinds(self, track: Track) -> list[Kind]:
        """Return the kinds of scores that submissions of a team of the contract have."""
        held_out = self.held_out_catalog if track == "blue" else self.held_out_registry
        return ["public"] if held_out is None else ["public", "held_out"]

    def of(self, track: Track, kind: Kind) -> tuple[Registry, Catalog]:
        """Return the models and the stimuli of a score.

        A submission keeps the models or the stimuli that it names; only the others are held out.
        """
        if kind == "public":
            return self.registry, self.catalog
        if track == "blue":
            return self.registry, self.held_out_catalog or self.catalog
        return self.held_out_registry or self.registry, self.catalog

    @cached_property
    def bases(self) -> dict[str, str]:
        """The basis of each score, by team of the contract and kind."""
        bases = {}
        for track in KEYS:
            for kind in self.kinds(track):
                digests = [document.sha256 for document in self.of(track, kind)]
                parts = [digests, self.extraction, self.challenge.scoring_digest, CONTRACT_VERSION]
                bases[basis_key(track, kind)] = hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
        return bases


def read_documents(settings: Settings) -> Documents:
    """Read the documents that the settings name.

    Raises:
        UserError: A document cannot be read.
    """
    held_out_registry, held_out_catalog = settings.held_out_registry, settings.held_out_catalog
    return Documents(
        read_challenge(challenge_path(settings.challenge)),
        read_registry(registry_path(settings.registry)),
        read_catalog(catalog_path(settings.catalog)),
        None if held_out_registry is None else read_registry(registry_path(held_out_registry)),
        None if held_out_catalog is None else read_catalog(catalog_path(held_out_catalog)),
        settings.extraction.score_settings,
    )


def basis_key(track: str, kind: str) -> str:
    """Return the key of a basis."""
    return f"{track}/{kind}"


def read_bases(session: Session) -> dict[str, str]:
    """Return what scores are computed from, as the server recorded it; nothing before its first start."""
    fact = session.get(FactRow, BASES)
    return {} if fact is None else json.loads(fact.value)

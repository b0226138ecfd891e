"""The documents of a challenge, and the bases of its scores.

The basis of a score is a digest of its documents and rules. Scores of different bases are never ranked together.
"""

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property

from sqlalchemy.orm import Session

from headstart.contract.challenge import Challenge, challenge_path, read_challenge
from headstart.contract.documents import Catalog, Registry, catalog_path, read_catalog, read_registry, registry_path
from headstart.contract.schema import CONTRACT_VERSION, Track
from headstart.contract.submissions import KEYS
from headstart.portal.settings import Settings
from headstart.portal.tables import FactRow, Kind

BASES = "bases"


@dataclass(frozen=True)
class Documents:
    """The documents of a challenge.

    Attributes:
        challenge: The rules of the challenge.
        registry: The models of the challenge.
        catalog: The stimuli of the challenge.
        pairs: The models and the stimuli by `basis_key`. A held-out score has other models for Red Team, and other
            stimuli for Blue Team.
        extraction: The settings of the feature extraction that change scores.
    """

    challenge: Challenge
    registry: Registry
    catalog: Catalog
    pairs: dict[str, tuple[Registry, Catalog]]
    extraction: dict[str, object]

    def kinds(self, track: Track) -> list[Kind]:
        """Return the kinds of scores that submissions of a track have."""
        return ["public", "held_out"] if basis_key(track, "held_out") in self.pairs else ["public"]

    @cached_property
    def bases(self) -> dict[str, str]:
        """The bases by `basis_key`."""
        shared = [self.extraction, self.challenge.scoring_digest, CONTRACT_VERSION]
        parts = {key: [[document.sha256 for document in pair], *shared] for key, pair in self.pairs.items()}
        return {
            key: hashlib.sha256(json.dumps(part, sort_keys=True).encode()).hexdigest() for key, part in parts.items()
        }


def read_documents(settings: Settings) -> Documents:
    """Read the documents that the settings name.

    Raises:
        UserError: A document cannot be read.
    """
    rules = read_challenge(challenge_path(settings.challenge))
    registry, catalog = read_registry(registry_path(settings.registry)), read_catalog(catalog_path(settings.catalog))
    pairs = {basis_key(track, "public"): (registry, catalog) for track in KEYS}
    if settings.held_out_registry is not None:
        pairs[basis_key("red", "held_out")] = read_registry(registry_path(settings.held_out_registry)), catalog
    if settings.held_out_catalog is not None:
        pairs[basis_key("blue", "held_out")] = registry, read_catalog(catalog_path(settings.held_out_catalog))
    return Documents(rules, registry, catalog, pairs, settings.extraction.score_settings)


def basis_key(track: str, kind: str) -> str:
    """Return the key of the basis of a track and a kind of score."""
    return f"{track}/{kind}"


def read_bases(session: Session) -> dict[str, str]:
    """Return the bases that the server recorded; an empty mapping before its first start."""
    fact = session.get(FactRow, BASES)
    return {} if fact is None else json.loads(fact.value)

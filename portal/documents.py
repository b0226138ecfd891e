"""The documents of a challenge, and what its scores are computed from.

The basis of a score identifies its documents and rules: scores of different ones are never ranked together.
"""

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property

from headstart.contract.challenge import Challenge, challenge_path, read_challenge
from headstart.contract.documents import Catalog, Registry, catalog_path, read_catalog, read_registry, registry_path
from headstart.contract.schema import CONTRACT_VERSION
from headstart.contract.schema import Team as Track
from headstart.portal.settings import Settings


@dataclass(frozen=True)
class Documents:
    """The documents of a challenge.

    Attributes:
        challenge: Its rules.
        registry: Its models.
        catalog: Its stimuli.
        held_out: The models and the stimuli of the held-out score, by team of the contract. A submission keeps the
            models or the stimuli that it names; only the others are held out.
        extraction: The settings of the extraction that change scores.
    """

    challenge: Challenge
    registry: Registry
    catalog: Catalog
    held_out: dict[Track, tuple[Registry, Catalog]]
    extraction: dict[str, object]

    def pairs(self, track: Track) -> list[tuple[Registry, Catalog]]:
        """Return the models and stimuli of a team's public score, and those of its held-out score if it has one."""
        hidden = self.held_out.get(track)
        return [(self.registry, self.catalog), *([hidden] if hidden else [])]

    @cached_property
    def bases(self) -> dict[Track, str]:
        """The basis of a score, by team of the contract."""
        rest = [self.extraction, self.challenge.scoring_digest, CONTRACT_VERSION]
        tracks: tuple[Track, ...] = ("blue", "red")
        parts = {track: [[each.sha256 for pair in self.pairs(track) for each in pair], *rest] for track in tracks}
        return {
            track: hashlib.sha256(json.dumps(part, sort_keys=True).encode()).hexdigest()
            for track, part in parts.items()
        }


def read_documents(settings: Settings) -> Documents:
    """Read the documents that the settings name.

    Raises:
        UserError: A document cannot be read.
    """
    rules = read_challenge(challenge_path(settings.challenge))
    registry, catalog = read_registry(registry_path(settings.registry)), read_catalog(catalog_path(settings.catalog))
    held_out: dict[Track, tuple[Registry, Catalog]] = {}
    if settings.held_out_registry is not None:
        held_out["red"] = read_registry(registry_path(settings.held_out_registry)), catalog
    if settings.held_out_catalog is not None:
        held_out["blue"] = registry, read_catalog(catalog_path(settings.held_out_catalog))
    return Documents(rules, registry, catalog, held_out, settings.extraction.score_settings)

"""What a score was computed from, as a text that is compared: scores of different documents are never ranked together.

A basis has two parts: a digest of the registry, the catalog and the settings of the extraction, and one of the rules.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from headstart.portal.records.tables import FactRow, ScoringRow, SubmissionRow

BASES = "bases"
_DIGITS = 32


def documents_digest(registry: str | None, catalog: str | None, extraction: Any) -> str:  # noqa: ANN401 - any JSON
    """Return the digest of the documents that a score was computed from.

    Args:
        registry: SHA-256 of the registry.
        catalog: SHA-256 of the catalog.
        extraction: The settings of the extraction that change scores, a JSON value.
    """
    return _digest([registry, catalog, extraction])


def make_basis(documents: str, rules: str, contract: str) -> str:
    """Return the basis of a score.

    Args:
        documents: The digest of its documents.
        rules: The digest of the challenge's rules that scores depend on.
        contract: The version of the contract that this program scores by.
    """
    return f"{documents}/{_digest([rules, contract])}"


def unknown_rules(documents: str) -> str:
    """Return the basis of a score of the first version of the portal, which did not store the rules' digest."""
    return f"{documents}/"


def basis_key(phase: str, track: str, kind: str) -> str:
    """Return the key of a basis."""
    return f"{phase}/{track}/{kind}"


def read_bases(session: Session) -> dict[str, str]:
    """Return what scores are computed from, as the server recorded it; nothing before its first start."""
    fact = session.get(FactRow, BASES)
    return {} if fact is None else json.loads(fact.value)


def find_held_back(session: Session, bases: Mapping[str, str]) -> list[int]:
    """Return the numbers of submissions that have a score of other documents or rules, and none of a basis given.

    Args:
        session: Session of the portal's database.
        bases: The basis by phase, team of the contract and kind.
    """
    query = (
        select(SubmissionRow.id, SubmissionRow.phase, SubmissionRow.track, ScoringRow.kind, ScoringRow.basis)
        .join(ScoringRow, ScoringRow.submission_id == SubmissionRow.id)
        .where(ScoringRow.state.in_(["scored", "queue", "running"]))
        .where(SubmissionRow.is_refused.is_(False), SubmissionRow.withdrawn.is_(None))
    )
    by_score: dict[tuple[int, str], set[str]] = {}
    for number, phase, track, kind, basis in session.execute(query):
        by_score.setdefault((number, basis_key(phase, track, kind)), set()).add(basis)
    # The basis of a scoring in the queue is empty until a worker claims it.
    return sorted({number for (number, key), found in by_score.items() if found.isdisjoint({bases.get(key), ""})})


def _digest(value: Any) -> str:  # noqa: ANN401 - any JSON value
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:_DIGITS]

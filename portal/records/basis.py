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


def unknown_rules(basis: str) -> str:
    """Return the basis of a score of these documents in the first version, which did not store the rules' digest."""
    return f"{basis.partition('/')[0]}/"


def basis_key(phase: str, track: str, kind: str) -> str:
    """Return the key of a basis."""
    return f"{phase}/{track}/{kind}"


def read_bases(session: Session) -> dict[str, str]:
    """Return what scores are computed from, as the server recorded it; nothing before its first start."""
    fact = session.get(FactRow, BASES)
    return {} if fact is None else json.loads(fact.value)


def find_held_back(session: Session, bases: Mapping[str, str]) -> list[int]:
    """Return the numbers of submissions whose latest score is of other documents or rules, or that lack a score.

    A scoring that waits or runs will end by the documents of its time, and is left out.

    Args:
        session: Session of the portal's database.
        bases: The basis by phase, team of the contract and kind.
    """
    query = (
        select(
            SubmissionRow.id,
            SubmissionRow.phase,
            SubmissionRow.track,
            ScoringRow.kind,
            ScoringRow.state,
            ScoringRow.basis,
        )
        .join(ScoringRow, ScoringRow.submission_id == SubmissionRow.id)
        .where(SubmissionRow.is_refused.is_(False), SubmissionRow.withdrawn.is_(None))
        .order_by(ScoringRow.round)
    )
    latest: dict[tuple[int, str], tuple[str, str]] = {}
    for number, phase, track, kind, state, basis in session.execute(query):
        key = number, basis_key(phase, track, kind)
        # What failed or was cancelled leaves an earlier score as it is.
        if state in {"scored", "queue", "running"} or key not in latest:
            latest[key] = state, basis

    def is_held_back(number: int, key: str, basis: str) -> bool:
        # Held-out documents may be named after it was submitted.
        held_out = f"{key.rpartition('/')[0]}/held_out"
        return basis != bases.get(key, basis) or (held_out in bases and (number, held_out) not in latest)

    scored = [(*key, basis) for key, (state, basis) in latest.items() if state == "scored"]
    return sorted({number for number, key, basis in scored if is_held_back(number, key, basis)})


def _digest(value: Any) -> str:  # noqa: ANN401 - any JSON value
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:_DIGITS]

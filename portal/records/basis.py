"""What a score was computed from, as a text that is compared: scores of different documents are never ranked together.

A basis has two parts: a digest of the registry, the catalog and the settings of the extraction, and one of the rules.
"""

import hashlib
import json
from typing import Any

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


def _digest(value: Any) -> str:  # noqa: ANN401 - any JSON value
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:_DIGITS]

"""The versions of the contract: which forms each has, and by which one a document is judged.

Version 1.1 is 1.0 with more to leave out and more to say; what is scored, and how, is the same in both.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from pydantic import TypeAdapter

from headstart.contract import plain_forms, schema
from headstart.contract.problems import Problem, short_json
from headstart.contract.schema import CATALOG_LINE, Team, check_document

Version = Literal["1.0", "1.1"]
VERSIONS: tuple[Version, ...] = ("1.0", "1.1")

REGISTRIES: dict[Version, TypeAdapter[Any]] = {
    "1.0": TypeAdapter(plain_forms.RegistryForm),
    "1.1": TypeAdapter(schema.RegistryForm),
}
SUBMISSIONS: dict[Version, dict[Team, TypeAdapter[Any]]] = {
    "1.0": {"blue": TypeAdapter(plain_forms.BlueSubmission), "red": TypeAdapter(plain_forms.RedSubmission)},
    "1.1": {"blue": TypeAdapter(schema.BlueSubmission), "red": TypeAdapter(schema.RedSubmission)},
}


def check_versioned(
    document: Any,  # noqa: ANN401 - any JSON value
    adapters: dict[Version, TypeAdapter[Any]],
    accepted: Sequence[Version] = VERSIONS,
) -> tuple[Any, Version, list[Problem]]:
    """Check a parsed document by the version that it names.

    One that names none is judged by the oldest version whose form it has, and where it has none by the newest.

    Args:
        document: The document.
        adapters: Its type by version.
        accepted: The versions that it may be of, from the oldest to the newest.

    Returns:
        The document typed, or None; the version that it was judged by; and all problems at once.
    """
    named = isinstance(document, dict) and "contract_version" in document
    version, problems = _named_version(document["contract_version"], accepted) if named else (None, [])
    if problems:
        # What else is wrong is told by the newest, as if it had named none.
        document = {key: value for key, value in document.items() if key != "contract_version"}
    for tried in [version] if version else accepted:
        of = "the contract" if tried == VERSIONS[-1] else f"version {tried} of the contract"
        checked, found = check_document(document, adapters[tried], of)
        if not found:
            break
    return (None if problems else checked), tried, [*problems, *found]


def _named_version(asked: object, accepted: Sequence[Version]) -> tuple[Version | None, list[Problem]]:
    version = next((each for each in accepted if each == asked), None)
    return version, [] if version else [describe_version(asked, accepted)]


def describe_version(asked: object, accepted: Sequence[Version] = VERSIONS) -> Problem:
    """Refuse a document of another version of the contract, with a problem that names all."""
    value, here = short_json(asked), " and ".join(map(short_json, accepted))
    verb = "version here is" if len(accepted) == 1 else "versions here are"
    return Problem("/contract_version", value, f"contract version {value} is asked for, and the {verb} {here}")


def json_schemas(version: Version) -> dict[str, dict[str, Any]]:
    """Describe the four documents of a version as JSON Schema, by name.

    A schema says what it can: that a crop fits into what it is cut from, that names are in the registry and that none
    comes twice in another spelling is checked by the code alone.
    """
    submissions = {f"{team}_submission": adapter for team, adapter in SUBMISSIONS[version].items()}
    adapters: dict[str, TypeAdapter[Any]] = {
        "model_registry": REGISTRIES[version],
        "stimuli_catalog": CATALOG_LINE,
        **submissions,
    }
    return {
        name: {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "$id": f"headstart:contract:{version}:{name}",
            "contract_version": version,
            **adapter.json_schema(),
        }
        for name, adapter in adapters.items()
    }

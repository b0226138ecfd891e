"""Read a submission: everything that is wrong with it, or what it asks to be scored."""

from __future__ import annotations

import difflib
import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headstart.contract.challenge import Challenge
from headstart.contract.challenge_breaches import find_breaches
from headstart.contract.documents import Catalog, Registry
from headstart.contract.names import LONGEST_NAME, canonical_name, canonical_stimulus
from headstart.contract.problems import ContractError, Problem, short_json
from headstart.contract.schema import (
    MAX_ENTRIES,
    ModelEntry,
    Stimulus,
    Team,
)
from headstart.contract.untrusted_json import parse_json, read_limited
from headstart.contract.versions import SUBMISSIONS, VERSIONS, Version, check_versioned, describe_version

DEFAULT_MAX_BYTES = 1_000_000
KEYS: dict[Team, str] = {"blue": "models", "red": "differentiating_images"}

# Looking for a close name takes milliseconds, and a submission may hold many thousand unknown ones.
_SUGGESTIONS = 5


@dataclass(frozen=True)
class Submission:
    """A valid submission.

    Attributes:
        team: Whose.
        models: Names of registry models, of the Blue Team.
        stimuli: Stimuli of the catalog, of the Red Team.
        sha256: Digest of the file's bytes.
        content: The file's bytes.
        contract_version: The version of the contract that it names; the oldest whose form it has where it names none.
    """

    team: Team
    models: tuple[str, ...]
    stimuli: tuple[Stimulus, ...]
    sha256: str
    content: bytes
    contract_version: Version


def read_submission(
    path: Path,
    registry: Registry,
    catalog: Catalog,
    team: Team | None = None,
    max_bytes: int = DEFAULT_MAX_BYTES,
    challenge: Challenge | None = None,
) -> Submission:
    """Read and check a submission of either team, which its key tells.

    Args:
        path: A JSON file of a stranger.
        registry: The models that there are.
        catalog: The stimuli that there are.
        team: The team that it must be of; None for either.
        max_bytes: The largest size of the file in bytes.
        challenge: The challenge whose rules hold beside the contract's, but for its deadline and quotas.

    Returns:
        The submission.

    Raises:
        ContractError: The file cannot be read, is no clean JSON, or breaks the contract; all problems are named.
    """
    document = f"submission {path}"
    return check_submission(read_limited(path, max_bytes, document), document, registry, catalog, team, challenge)


def check_submission(
    content: bytes,
    document: str,
    registry: Registry,
    catalog: Catalog,
    team: Team | None = None,
    challenge: Challenge | None = None,
) -> Submission:
    """Check a submission that was read, or came over a network.

    Args:
        content: Its bytes.
        document: What it is called in messages.
        registry: As of `read_submission`, and so are the rest.
        catalog: The stimuli that there are.
        team: The team that it must be of; None for either.
        challenge: The challenge whose rules hold beside the contract's, but for its deadline and quotas.

    Returns:
        The submission.

    Raises:
        ContractError: As `read_submission`.
    """
    parsed = parse_json(content, document)
    accepted = VERSIONS if challenge is None else challenge.contract_versions
    found = _tell_team(parsed, accepted)
    if isinstance(found, list):
        raise ContractError(document, found)
    entries = parsed[KEYS[found]]
    if isinstance(entries, list) and len(entries) > MAX_ENTRIES:
        # Before the schema, which would describe every wrong entry of hundreds of thousands.
        rule = f"must have at most {MAX_ENTRIES} items, not {len(entries)}"
        raise ContractError(document, [Problem(f"/{KEYS[found]}", "", rule)])
    forms = {each: by_team[found] for each, by_team in SUBMISSIONS.items()}
    checked, version, problems = check_versioned(parsed, forms, accepted)
    if team not in (None, found):
        rule = f"this is a {found.title()} Team submission, and one of the {str(team).title()} Team is asked for"
        problems.insert(0, Problem(f"/{KEYS[found]}", "", rule))
    if isinstance(entries, list):
        broken = {problem.pointer for problem in problems}
        models = found == "blue"
        problems += _search_models(entries, registry, broken) if models else _search_stimuli(entries, catalog, broken)
        if challenge is not None:
            problems += find_breaches(challenge, found, KEYS[found], entries)
    if checked is None or problems:
        raise ContractError(document, sorted(problems, key=_entry))
    digest = hashlib.sha256(content).hexdigest()
    if found == "red":
        return Submission(found, (), checked.differentiating_images, digest, content, version)
    names = tuple(entry if isinstance(entry, str) else entry.model_name for entry in checked.models)
    return Submission(found, names, (), digest, content, version)


def _entry(problem: Problem) -> int:
    """Give the place of the entry that a problem is about, -1 for the document, to keep those of an entry together."""
    place = re.match(r"/\w+/(\d+)", problem.pointer)
    return int(place[1]) if place else -1


def _tell_team(parsed: object, accepted: Sequence[Version]) -> Team | list[Problem]:
    """Tell the team by the document's key, or say why that cannot be told."""
    choice = 'either "models" (Blue Team) or "differentiating_images" (Red Team)'
    if not isinstance(parsed, dict):
        return [Problem("", short_json(parsed), f"must be an object with {choice}")]
    found = [team for team, key in KEYS.items() if key in parsed]
    if len(found) == 1:
        return found[0]
    version = parsed.get("contract_version", accepted[-1])
    # Another version may well have other keys.
    problems = [] if version in accepted else [describe_version(version, accepted)]
    return [*problems, Problem("", short_json(parsed), f"must have {choice}{', not both' if found else ''}")]


def _search_models(entries: list[Any], registry: Registry, broken: set[str]) -> Iterator[Problem]:
    """Find models that come twice, are not in the registry, or are described otherwise there.

    Entries may break the schema; what the broken pointers point to does, and so is not sought.
    """
    first: dict[str, str] = {}
    spellings = {canonical_name(name): name for name in registry.entries}
    unknown = 0
    for index, entry in enumerate(entries):
        place = f"/models/{index}"
        name, pointer = (entry.get("model_name"), f"{place}/model_name") if isinstance(entry, dict) else (entry, place)
        if not isinstance(name, str) or len(name) > LONGEST_NAME:
            continue
        canonical = canonical_name(name)
        earlier = first.setdefault(canonical, pointer)
        if earlier != pointer:
            yield Problem(pointer, short_json(name), f"the same model as {earlier}; models must be unique")
        known = registry.entries.get(name)
        if known is not None and isinstance(entry, dict):
            yield from _find_disagreements(entry, known, place, broken)
        elif known is None and pointer not in broken:
            unknown += 1
            close = difflib.get_close_matches(canonical, spellings, n=1) if unknown <= _SUGGESTIONS else []
            hint = f" (closest: {short_json(spellings[close[0]])})" if close else ""
            yield Problem(pointer, short_json(name), f"not in the model registry{hint}")


def _find_disagreements(entry: dict[str, Any], known: ModelEntry, place: str, broken: set[str]) -> Iterator[Problem]:
    """Compare the longer form of a submitted model with the registry, where it says something."""
    expected = {"source": known.source, "model_parameters": known.model_parameters, "layer_name": known.layer}
    meant_by_null: dict[str, Any] = {**expected, "model_parameters": {}}
    for field, there in expected.items():
        given = entry.get(field, there)
        given = meant_by_null[field] if given is None else given
        # As text, because Python takes True for 1.
        if f"{place}/{field}" not in broken and json.dumps(given, sort_keys=True) != json.dumps(there, sort_keys=True):
            yield Problem(f"{place}/{field}", short_json(given), f"disagrees with the registry: {short_json(there)}")


def _search_stimuli(entries: list[Any], catalog: Catalog, broken: set[str]) -> Iterator[Problem]:
    """Find stimuli that come twice or are not in the catalog; entries and broken pointers as of `_search_models`."""
    first: dict[tuple[str, str], str] = {}
    # The catalog may be very much longer than the submission.
    known = set(map(_names, entries)).intersection(catalog.table.pairs())
    datasets = set(catalog.table.datasets)
    for index, entry in enumerate(entries):
        place = f"/differentiating_images/{index}"
        dataset, identifier = _names(entry)
        if not dataset or not identifier:
            continue
        earlier = first.setdefault(canonical_stimulus(dataset, identifier), place)
        if earlier != place:
            yield Problem(place, short_json(identifier), f"the same stimulus as {earlier}; stimuli must be unique")
        pointers = {f"{place}/dataset_name", f"{place}/image_identifier"}
        if (dataset, identifier) in known or not broken.isdisjoint(pointers):
            continue
        if dataset in datasets:
            rule = f"not in the stimuli catalog under dataset {short_json(dataset)}"
            yield Problem(f"{place}/image_identifier", short_json(identifier), rule)
        else:
            yield Problem(f"{place}/dataset_name", short_json(dataset), "not a dataset of the stimuli catalog")


def _names(entry: object) -> tuple[str, str]:
    """Give both names of a submitted stimulus, or empty ones where they cannot be compared."""
    match entry:
        case {"dataset_name": str(dataset), "image_identifier": str(identifier)}:
            return (dataset, identifier) if max(len(dataset), len(identifier)) <= LONGEST_NAME else ("", "")
    return "", ""

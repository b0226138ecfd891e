"""Reading and checking submissions; all problems are reported together."""

import difflib
import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from headstart.contract.challenge import Challenge
from headstart.contract.challenge_rules import find_breaches
from headstart.contract.documents import Catalog, Registry
from headstart.contract.names import LONGEST_NAME, canonical_name, canonical_stimulus, named_models
from headstart.contract.problems import ContractError, Problem, short_json
from headstart.contract.schema import MAX_ENTRIES, ModelEntry, Stimulus, Track
from headstart.contract.untrusted_json import parse_json, read_limited
from headstart.contract.versions import SUBMISSIONS, VERSIONS, Version, check_versioned
from headstart.output.arguments import expand_home

MAX_BYTES = 16_000_000
KEYS: dict[Track, str] = {"blue": "models", "red": "differentiating_images"}
# The numbers of a scored submission, higher is better: its score; the same by the debiased estimate, and calibrated
# against chance; the ends of its interval over stimuli. An undefined one is None.
SCORE_NAMES = ("score", "debiased", "calibrated", "low", "high")

# A search for a close name takes milliseconds, and a submission may hold many thousand unknown names.
_MAX_SUGGESTIONS = 5


@dataclass(frozen=True)
class Submission:
    """A valid submission.

    Attributes:
        team: The team.
        models: Names of registry models, of the Blue Team.
        stimuli: Stimuli of the catalog, of the Red Team.
        sha256: Digest of the file's bytes.
        content: The file's bytes.
        contract_version: The version of the contract that it names, else the oldest version that it is valid in.
    """

    team: Track
    models: tuple[str, ...]
    stimuli: tuple[Stimulus, ...]
    sha256: str
    content: bytes
    contract_version: Version


def read_submission(
    file: str,
    registry: Registry,
    catalog: Catalog,
    team: Track | None = None,
    challenge: Challenge | None = None,
) -> Submission:
    """Read and check the file of a submission, JSON of at most 16 MB; arguments and errors as of `check_submission`."""
    document = f"submission {file}"
    content = read_limited(expand_home(file), MAX_BYTES, document)
    return check_submission(content, document, registry, catalog, team, challenge)


def check_submission(
    content: bytes,
    document: str,
    registry: Registry,
    catalog: Catalog,
    team: Track | None = None,
    challenge: Challenge | None = None,
) -> Submission:
    """Check the bytes of a submission; its key determines the team.

    Args:
        content: Its bytes.
        document: Its name in messages.
        registry: The known models.
        catalog: The known stimuli.
        team: The required team; None for either.
        challenge: The challenge whose rules hold beside the contract's, except its deadline and quotas.

    Returns:
        The submission.

    Raises:
        ContractError: It is no clean JSON, or breaks the contract; it holds all problems.
    """
    parsed = parse_json(content, document)
    accepted = VERSIONS if challenge is None else challenge.contract_versions
    actual_team = find_team(parsed, document)
    key = KEYS[actual_team]
    entries = parsed[key]
    if isinstance(entries, list) and len(entries) > MAX_ENTRIES:
        # Checked before the schema, which would describe every wrong entry of hundreds of thousands.
        rule = f"must have at most {MAX_ENTRIES} items, not {len(entries)}"
        raise ContractError(document, [Problem(f"/{key}", "", rule)])

    adapters = {version: by_team[actual_team] for version, by_team in SUBMISSIONS.items()}
    checked, version, problems = check_versioned(parsed, adapters, accepted)
    if team not in (None, actual_team):
        rule = f"this is a {actual_team.title()} Team submission; a {str(team).title()} Team submission is expected"
        problems.insert(0, Problem(f"/{key}", "", rule))

    if isinstance(entries, list):
        # Values that break the schema need no second problem.
        broken = {problem.pointer for problem in problems}
        if actual_team == "blue":
            problems += _check_models(entries, registry, broken)
        else:
            problems += _check_stimuli(entries, catalog, broken)
        if challenge is not None:
            problems += find_breaches(challenge, actual_team, key, entries)
    if checked is None or problems:
        raise ContractError(document, sorted(problems, key=_entry_index))

    stimuli = checked.differentiating_images if actual_team == "red" else ()
    models = checked.models if actual_team == "blue" else ()
    names = tuple(model if isinstance(model, str) else model.model_name for model in models)
    return Submission(actual_team, names, stimuli, hashlib.sha256(content).hexdigest(), content, version)


def _entry_index(problem: Problem) -> int:
    """Return the index of a problem's entry, -1 for the document, to sort the problems of an entry together."""
    match = re.match(r"/\w+/(\d+)", problem.pointer)
    return int(match[1]) if match else -1


def find_team(parsed: object, document: str) -> Track:
    """Return the team of a submission by its key.

    Args:
        parsed: The document.
        document: Its name in messages.

    Raises:
        ContractError: It has not exactly one of both keys.
    """
    choice = 'either "models" (Blue Team) or "differentiating_images" (Red Team)'
    if not isinstance(parsed, dict):
        raise ContractError(document, [Problem("", short_json(parsed), f"must be an object with {choice}")])
    teams = [team for team, key in KEYS.items() if key in parsed]
    if len(teams) == 1:
        return teams[0]

    both = ", not both" if teams else ""
    raise ContractError(document, [Problem("", short_json(parsed), f"must have {choice}{both}")])


def _check_models(entries: list[Any], registry: Registry, broken: set[str]) -> Iterator[Problem]:
    """Find models that are repeated, are not in the registry, or disagree with it.

    Args:
        entries: Entries, which may break the schema.
        registry: The known models.
        broken: Pointers to values that break the schema, which need no second problem.
    """
    first: dict[str, str] = {}
    spellings = {canonical_name(name): name for name in registry.entries}
    unknown = 0
    for entry, pointer, name in named_models(KEYS["blue"], entries):
        canonical = canonical_name(name)
        earlier = first.setdefault(canonical, pointer)
        if earlier != pointer:
            yield Problem(pointer, short_json(name), f"the same model as {earlier}; models must be unique")

        registered = registry.entries.get(name)
        if registered is not None and isinstance(entry, dict):
            yield from _find_disagreements(entry, registered, pointer.removesuffix("/model_name"), broken)
        elif registered is None and pointer not in broken:
            unknown += 1
            close = difflib.get_close_matches(canonical, spellings, n=1) if unknown <= _MAX_SUGGESTIONS else []
            hint = f" (closest: {short_json(spellings[close[0]])})" if close else ""
            yield Problem(pointer, short_json(name), f"not in the model registry{hint}")


def _find_disagreements(
    entry: dict[str, Any], registered: ModelEntry, pointer: str, broken: set[str]
) -> Iterator[Problem]:
    """Compare the fields of a submitted model with the registry."""
    expected = {
        "source": registered.source,
        "model_parameters": registered.model_parameters,
        "layer_name": registered.layer,
    }
    for field, value in expected.items():
        submitted = entry.get(field, value)
        if submitted is None:
            submitted = {} if field == "model_parameters" else value
        # Compared as text, because True == 1 in Python.
        agrees = json.dumps(submitted, sort_keys=True) == json.dumps(value, sort_keys=True)
        if not agrees and f"{pointer}/{field}" not in broken:
            rule = f"disagrees with the registry: {short_json(value)}"
            yield Problem(f"{pointer}/{field}", short_json(submitted), rule)


def _check_stimuli(entries: list[Any], catalog: Catalog, broken: set[str]) -> Iterator[Problem]:
    """Find stimuli that are repeated or are not in the catalog; arguments as of `_check_models`."""
    first: dict[tuple[str, str], str] = {}
    for index, entry in enumerate(entries):
        pointer = f"/{KEYS['red']}/{index}"
        dataset, identifier = _names(entry)
        if not dataset or not identifier:
            continue
        earlier = first.setdefault(canonical_stimulus(dataset, identifier), pointer)
        if earlier != pointer:
            yield Problem(pointer, short_json(identifier), f"the same stimulus as {earlier}; stimuli must be unique")

        parts = {f"{pointer}/dataset_name", f"{pointer}/image_identifier"}
        if identifier in catalog.identifiers.get(dataset, ()) or not broken.isdisjoint(parts):
            continue
        if dataset in catalog.identifiers:
            rule = f"not in the stimuli catalog under dataset {short_json(dataset)}"
            yield Problem(f"{pointer}/image_identifier", short_json(identifier), rule)
        else:
            yield Problem(f"{pointer}/dataset_name", short_json(dataset), "not a dataset of the stimuli catalog")


def _names(entry: object) -> tuple[str, str]:
    """Return both names of a submitted stimulus, or empty ones where they cannot be compared."""
    match entry:
        case {"dataset_name": str(dataset), "image_identifier": str(identifier)}:
            return (dataset, identifier) if max(len(dataset), len(identifier)) <= LONGEST_NAME else ("", "")
    return "", ""

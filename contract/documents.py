"""The operator's documents: the model registry and the stimuli catalog."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from contract.names import canonical_name, canonical_stimulus
from contract.problems import ContractError, Problem, short_json
from contract.schema import CATALOG_LINE, REGISTRY, ModelEntry, ModelRegistry, Stimulus
from contract.schema_problems import check_document
from contract.untrusted_json import parse_json, read_limited

REGISTRY_VARIABLE = "HACKATHON_MODEL_REGISTRY"
CATALOG_VARIABLE = "HACKATHON_STIMULI_CATALOG"
REGISTRY_MAX_BYTES = 16_000_000
CATALOG_MAX_BYTES = 64_000_000

_SHIPPED = Path(__file__).resolve().parents[1] / "configs"


@dataclass(frozen=True)
class Registry:
    """The models that submissions are scored with.

    Attributes:
        path: The file.
        entries: Entries by model name, in the order of the file.
        sha256: Digest of the file's bytes.
    """

    path: Path
    entries: dict[str, ModelEntry]
    sha256: str


@dataclass(frozen=True)
class Catalog:
    """The stimuli that submissions are scored on.

    Attributes:
        path: The file.
        stimuli: The stimuli in the order of the file.
        sha256: Digest of the file's bytes.
    """

    path: Path
    stimuli: tuple[Stimulus, ...]
    sha256: str


def registry_path(chosen: str | None) -> Path:
    """Choose the registry's file.

    Args:
        chosen: The option's value, which wins.

    Returns:
        The option's file, else that of `HACKATHON_MODEL_REGISTRY`, else the one that comes with the project.
    """
    return _choose(chosen, REGISTRY_VARIABLE, "model_registry.json")


def catalog_path(chosen: str | None) -> Path:
    """Choose the catalog's file.

    Args:
        chosen: The option's value, which wins.

    Returns:
        The option's file, else that of `HACKATHON_STIMULI_CATALOG`, else the one that comes with the project.
    """
    return _choose(chosen, CATALOG_VARIABLE, "stimuli_catalog.jsonl")


def read_registry(path: Path) -> Registry:
    """Read a model registry: a list of entries, or an object with that list under `models`.

    Args:
        path: A JSON file of at most 16 MB.

    Returns:
        The registry.

    Raises:
        ContractError: The file cannot be read, or breaks the contract; all problems are named.
    """
    document = f"model registry {path}"
    content = read_limited(path, REGISTRY_MAX_BYTES, document)
    parsed = parse_json(content, document)
    outcome = check_document(parsed, REGISTRY)
    checked, problems = outcome
    models = checked.models if isinstance(checked, ModelRegistry) else checked or ()
    prefix = "" if isinstance(parsed, list) else "/models"
    problems.extend(_find_repeated_models(models, prefix))
    if problems:
        raise ContractError(document, problems)
    return Registry(path, {entry.model_name: entry for entry in models}, hashlib.sha256(content).hexdigest())


def read_catalog(path: Path) -> Catalog:
    """Read a stimuli catalog: one JSON object per line; blank lines do not count.

    Args:
        path: A JSON lines file of at most 64 MB.

    Returns:
        The catalog.

    Raises:
        ContractError: The file cannot be read, or breaks the contract; all problems are named with their lines.
    """
    document = f"stimuli catalog {path}"
    content = read_limited(path, CATALOG_MAX_BYTES, document)
    stimuli: dict[int, Stimulus] = {}
    problems: list[Problem] = []
    for number, line in enumerate(content.split(b"\n"), start=1):
        if not line.strip():
            continue
        stimulus, found = _read_line(line)
        problems.extend(Problem(each.pointer, each.value, f"line {number}: {each.rule}") for each in found)
        if stimulus is not None:
            stimuli[number] = stimulus
    problems.extend(_find_repeated_stimuli(stimuli))
    if not stimuli and not problems:
        problems.append(Problem("", "", "is empty; one line per stimulus is needed"))
    if problems:
        raise ContractError(document, problems)
    return Catalog(path, tuple(stimuli.values()), hashlib.sha256(content).hexdigest())


def _read_line(line: bytes) -> tuple[Stimulus | None, list[Problem]]:
    try:
        return check_document(parse_json(line, "line"), CATALOG_LINE)
    except ContractError as error:
        return None, error.problems


def _choose(chosen: str | None, variable: str, shipped: str) -> Path:
    """Take the option, else the variable, else the shipped file; an empty text chooses nothing."""
    given = chosen or os.environ.get(variable)
    return Path(given).expanduser() if given else _SHIPPED / shipped


def _find_repeated_models(models: tuple[ModelEntry, ...], prefix: str) -> Iterator[Problem]:
    first: dict[str, int] = {}
    for index, entry in enumerate(models):
        earlier = first.setdefault(canonical_name(entry.model_name), index)
        if earlier != index:
            rule = f"the same name as {prefix}/{earlier}/model_name, {short_json(models[earlier].model_name)}"
            yield Problem(f"{prefix}/{index}/model_name", short_json(entry.model_name), rule + "; names must be unique")


def _find_repeated_stimuli(stimuli: dict[int, Stimulus]) -> Iterator[Problem]:
    first: dict[tuple[str, str], int] = {}
    for line, stimulus in stimuli.items():
        earlier = first.setdefault(canonical_stimulus(stimulus.dataset_name, stimulus.image_identifier), line)
        if earlier != line:
            value = short_json(f"{stimulus.dataset_name}/{stimulus.image_identifier}")
            yield Problem("", value, f"line {line}: the same stimulus as in line {earlier}; stimuli must be unique")

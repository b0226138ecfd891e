"""The operator's documents: the model registry and the stimuli catalog."""

import hashlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from headstart.contract.names import canonical_name, canonical_stimulus
from headstart.contract.problems import ContractError, Problem, short_json
from headstart.contract.schema import CATALOG_LINE, ModelEntry, Stimulus, check_document
from headstart.contract.stimulus_files import root_variable
from headstart.contract.untrusted_json import parse_json, read_limited
from headstart.contract.versions import REGISTRIES, check_versioned
from headstart.modules.networks.preprocessing import Preprocessing
from headstart.modules.networks.spec import CUSTOM, WEIGHT_FILES, MessageTerms, NetworkSpec, prefix_model_errors
from headstart.modules.networks.taps import PIXELS
from headstart.output.arguments import expand_home
from headstart.output.errors import UserError
from headstart.output.shipped_files import CONFIGS, find_file

REGISTRY_VARIABLE = "HACKATHON_MODEL_REGISTRY"
CATALOG_VARIABLE = "HACKATHON_STIMULI_CATALOG"
REGISTRY_MAX_BYTES = 16_000_000
CATALOG_MAX_BYTES = 64_000_000
MAX_PROBLEMS = 1000


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
    _networks: dict[Any, NetworkSpec] = field(default_factory=dict, init=False, repr=False, compare=False)

    def networks(
        self, names: Sequence[str], seed: int, allowed_modules: Sequence[str] = (), random_weights: bool = False
    ) -> dict[str, NetworkSpec]:
        """Return the networks of entries.

        The constructor is the one that `model_parameters` name under the library's own argument. This is `name` for
        torchvision, `model_name` for timm and open_clip, and `name` with a dotted path for custom sources. Without it,
        the constructor is that of the entry's name. Otherwise it is the one of the library's names that the entry's
        name contains between separators.

        Args:
            names: Names of entries.
            seed: Seed of random weights, together with the name, so that two entries never share weights.
            allowed_modules: Python modules and packages that custom networks may come from.
            random_weights: Whether to use random weights instead of those that the entries name.

        Returns:
            Networks by name; later calls return the same ones, so their files are read once.

        Raises:
            UserError: A file of weights or of code is missing, or the code is not allowed.
        """
        networks = {}
        for name in names:
            with prefix_model_errors(name):
                key = name, seed, random_weights, *allowed_modules
                entry = self.entries[name].model_copy(update={"weights": None} if random_weights else {})
                networks[name] = self._networks.get(key) or self._network(entry, seed, allowed_modules)
                # Computing the identity finds missing files before the first network runs.
                networks[name].identity  # noqa: B018
                self._networks[key] = networks[name]
        return networks

    def require(self, option: str, names: Sequence[str]) -> None:
        """Check that names have entries.

        Args:
            option: The option that holds the names; an error begins with it.
            names: The names.

        Raises:
            UserError: A name has no entry.
        """
        unknown = [name for name in names if name not in self.entries]
        if unknown:
            raise UserError(
                f"{option}: {', '.join(map(repr, unknown))} not in the registry; it has {', '.join(self.entries)}"
            )

    def _network(self, entry: ModelEntry, seed: int, allowed_modules: Sequence[str]) -> NetworkSpec:
        argument = "name" if entry.source in {"torchvision", CUSTOM} else "model_name"
        digest = hashlib.sha256(f"{seed}\0{entry.model_name}".encode()).digest()
        return NetworkSpec(
            name=entry.model_name,
            library=entry.source,
            model=entry.model_parameters.get(argument),
            weights=None if entry.weights is None else self.weights_file(entry.model_name) or entry.weights,
            arguments={key: value for key, value in entry.model_parameters.items() if key != argument},
            seed=int.from_bytes(digest[:8]),
            preprocessing=Preprocessing(**entry.preprocess.model_dump()),
            forward_args=entry.forward_args,
            pixels=entry.layer == PIXELS,
            allowed_modules=allowed_modules,
            terms=MessageTerms(model=f"model_parameters.{argument}"),
        )

    def weights_file(self, name: str) -> Path | None:
        """Return the local file of an entry's weights; None where they are no file.

        It is relative to the registry's folder, else to the working directory, and may not exist.
        """
        weights = self.entries[name].weights
        if weights is None or not weights.endswith(WEIGHT_FILES):
            return None
        path = expand_home(weights)
        beside = self.path.parent / path
        return path.absolute() if not beside.is_file() and path.is_file() else beside


@dataclass(frozen=True)
class Catalog:
    """The stimuli that submissions are scored on.

    Attributes:
        path: The file.
        stimuli: The stimuli in the order of the file.
        sha256: Digest of the file's bytes.
    """

    path: Path
    stimuli: list[Stimulus]
    sha256: str

    @cached_property
    def identifiers(self) -> dict[str, set[str]]:
        """The pictures of each data set."""
        identifiers: dict[str, set[str]] = {}
        for stimulus in self.stimuli:
            identifiers.setdefault(stimulus.dataset_name, set()).add(stimulus.image_identifier)
        return identifiers


def registry_path(option: str | None) -> Path:
    """Return the file of an option, else of `HACKATHON_MODEL_REGISTRY`, else the one that comes with the project."""
    return _document_path(option, REGISTRY_VARIABLE, "model_registry.json")


def catalog_path(option: str | None) -> Path:
    """Return the file of an option, else of `HACKATHON_STIMULI_CATALOG`, else the one that comes with the project."""
    return _document_path(option, CATALOG_VARIABLE, "stimuli_catalog.jsonl")


def _document_path(option: str | None, variable: str, shipped: str) -> Path:
    """Return the file of the option, else of the variable, else the shipped file; an empty text counts as none.

    A file that does not exist in the working folder is looked up in the checkout, because shipped configurations name
    other shipped files and may be used from any folder.
    """
    name = option or os.environ.get(variable)
    return find_file(name) if name else CONFIGS / shipped


def read_registry(path: Path) -> Registry:
    """Read a model registry, JSON of at most 16 MB: a list of entries, or an object with that list under `models`.

    Raises:
        ContractError: The file cannot be read, or breaks the contract; it holds all problems.
    """
    document = f"model registry {path}"
    content = read_limited(path, REGISTRY_MAX_BYTES, document)
    parsed = parse_json(content, document)
    checked, _, problems = check_versioned(parsed, REGISTRIES)
    models: tuple[ModelEntry, ...] = getattr(checked, "models", checked) or ()
    prefix = "" if isinstance(parsed, list) else "/models"
    problems.extend(_find_repeated_models(models, prefix))
    if problems:
        raise ContractError(document, problems)
    return Registry(path, {entry.model_name: entry for entry in models}, hashlib.sha256(content).hexdigest())


def read_registries(paths: Sequence[Path]) -> Registry:
    """Read several model registries as one, with unique names.

    Args:
        paths: Their files; weights are relative to each file's own folder.

    Raises:
        ContractError: A file cannot be read, or breaks the contract.
        UserError: Two of them have entries of the same name, or there are none.
    """
    if not paths:
        raise UserError("registry: an empty list is given; name a file, or leave the option out")
    registries = [read_registry(path) for path in paths]
    if len(registries) == 1:
        return registries[0]
    entries: dict[str, ModelEntry] = {}
    homes: dict[str, Path] = {}
    for registry in registries:
        for name, entry in registry.entries.items():
            if (home := homes.setdefault(canonical_name(name), registry.path)) != registry.path:
                raise UserError(
                    f"registry: {name!r} is in {str(home)!r} and in {str(registry.path)!r}; rename it in one of them"
                )
            file = registry.weights_file(name)
            entries[name] = entry if file is None else entry.model_copy(update={"weights": str(file.absolute())})
    digests = "\0".join(registry.sha256 for registry in registries)
    return Registry(paths[0], entries, hashlib.sha256(digests.encode()).hexdigest())


def read_catalog(path: Path) -> Catalog:
    """Read a stimuli catalog of at most 64 MB line by line: one JSON object per line; blank lines do not count.

    Stimuli whose paths differ in case are different; stimuli that differ in Unicode normalisation alone are equal.

    Raises:
        ContractError: The file cannot be read, or breaks the contract; it holds all problems with their lines, up to a
            thousand.
    """
    document = f"stimuli catalog {path}"
    content = read_limited(path, CATALOG_MAX_BYTES, document)
    stimuli: list[Stimulus] = []
    lines: dict[tuple[str, str], int] = {}
    variables: dict[str, list[str]] = {}
    problems: list[Problem] = []
    for number, line in enumerate(content.split(b"\n"), start=1):
        if not line.strip():
            continue

        stimulus, violations = _read_line(line)
        if stimulus is not None:
            stimuli.append(stimulus)
            violations += [*_find_shared_variable(stimulus, variables), *_find_repetition(stimulus, number, lines)]
        problems += [Problem(fault.pointer, fault.value, f"line {number}: {fault.rule}") for fault in violations]
        if len(problems) >= MAX_PROBLEMS:
            problems.append(Problem("", "", f"lines after line {number} were not read"))
            break

    if not stimuli and not problems:
        problems.append(Problem("", "", "is empty; one line per stimulus is needed"))
    if problems:
        raise ContractError(document, problems)
    return Catalog(path, stimuli, hashlib.sha256(content).hexdigest())


def _read_line(line: bytes) -> tuple[Stimulus | None, list[Problem]]:
    try:
        return check_document(parse_json(line, "line"), CATALOG_LINE)
    except ContractError as error:
        return None, error.problems


def _find_repeated_models(models: tuple[ModelEntry, ...], prefix: str) -> Iterator[Problem]:
    first: dict[str, int] = {}
    for index, entry in enumerate(models):
        earlier = first.setdefault(canonical_name(entry.model_name), index)
        if earlier != index:
            rule = f"the same name as {prefix}/{earlier}/model_name, {short_json(models[earlier].model_name)}"
            yield Problem(f"{prefix}/{index}/model_name", short_json(entry.model_name), rule + "; names must be unique")


def _find_repetition(stimulus: Stimulus, number: int, lines: dict[tuple[str, str], int]) -> Iterator[Problem]:
    """Find a stimulus that an earlier line has, also in another spelling.

    Args:
        stimulus: The stimulus.
        number: Its line.
        lines: The first line of each stimulus so far; this one is added.
    """
    earlier = lines.setdefault(canonical_stimulus(stimulus.dataset_name, stimulus.image_identifier), number)
    if earlier != number:
        value = short_json(f"{stimulus.dataset_name}/{stimulus.image_identifier}")
        yield Problem("", value, f"the same stimulus as in line {earlier}; stimuli must be unique")


def _find_shared_variable(stimulus: Stimulus, variables: dict[str, list[str]]) -> Iterator[Problem]:
    """Find a data set with the environment variable of another: both would be read from the same folder.

    Args:
        stimulus: A stimulus of the data set.
        variables: The data sets of each variable so far; this one is added.
    """
    variable = root_variable(stimulus.dataset_name)
    datasets = variables.setdefault(variable, [stimulus.dataset_name])
    if stimulus.dataset_name not in datasets:
        datasets.append(stimulus.dataset_name)
        rule = f"shares the variable {variable} with data set {short_json(datasets[0])}; rename one of them"
        yield Problem("/dataset_name", short_json(stimulus.dataset_name), rule)

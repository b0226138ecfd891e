"""The operator's documents: the model registry and the stimuli catalog."""

from __future__ import annotations

import hashlib
import os
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from headstart.contract.names import canonical_name
from headstart.contract.problems import ContractError, Problem, short_json
from headstart.contract.schema import CATALOG_LINE, ModelEntry, Stimulus, check_document
from headstart.contract.stimulus_files import root_variable
from headstart.contract.stimulus_table import StimulusTable
from headstart.contract.untrusted_json import parse_json, read_limited, read_lines
from headstart.contract.versions import REGISTRIES, check_versioned
from headstart.modules.networks.preprocessing import Preprocessing
from headstart.modules.networks.spec import CUSTOM, WEIGHT_FILES, NetworkSpec, Terms, prefix_model_errors
from headstart.modules.networks.taps import PIXELS
from headstart.output.errors import UserError
from headstart.output.home import expand_home
from headstart.output.shipped_files import CONFIGS, find_file

REGISTRY_VARIABLE = "HACKATHON_MODEL_REGISTRY"
CATALOG_VARIABLE = "HACKATHON_STIMULI_CATALOG"
REGISTRY_MAX_BYTES = 16_000_000
CATALOG_MAX_BYTES = 64_000_000
MOST_PROBLEMS = 1000


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
        """Tell which networks the entries of some names mean.

        The constructor is the one that `model_parameters` name under the library's own argument (`name` for
        torchvision, `model_name` for timm and open_clip, `name` with a dotted path for custom sources); else the one
        of the entry's name; else the one of the library's names that the entry's name contains between separators.

        Args:
            names: Names of entries.
            seed: Seed of random weights, together with the name: two entries never share theirs.
            allowed_modules: Python modules and packages that custom networks may come from.
            random_weights: Whether all have random weights, whatever their entries name.

        Returns:
            Networks by name, the same ones whenever they are asked for: their files are read once.

        Raises:
            UserError: A file of weights or of code is missing, or the code is not allowed.
        """
        found = {}
        for name in names:
            with prefix_model_errors(name):
                key = name, seed, random_weights, *allowed_modules
                entry = self.entries[name].model_copy(update={"weights": None} if random_weights else {})
                found[name] = self._networks.get(key) or self._network(entry, seed, allowed_modules)
                # What can be told without running a network is told before the first one runs.
                found[name].identity  # noqa: B018
                self._networks[key] = found[name]
        return found

    def require(self, option: str, names: Sequence[str]) -> None:
        """Check that there are entries of some names.

        Args:
            option: What the names were given by, with which an error begins.
            names: The names.

        Raises:
            UserError: One has none.
        """
        unknown = [name for name in names if name not in self.entries]
        if unknown:
            raise UserError(
                f"{option}: {', '.join(map(repr, unknown))} not in the registry; it has {', '.join(self.entries)}"
            )

    def _network(self, entry: ModelEntry, seed: int, allowed_modules: Sequence[str]) -> NetworkSpec:
        argument = "name" if entry.source in {"torchvision", CUSTOM} else "model_name"
        drawn = hashlib.sha256(f"{seed}\0{entry.model_name}".encode()).digest()
        return NetworkSpec(
            name=entry.model_name,
            library=entry.source,
            model=entry.model_parameters.get(argument),
            weights=None if entry.weights is None else self.weights_file(entry.model_name) or entry.weights,
            arguments={key: value for key, value in entry.model_parameters.items() if key != argument},
            seed=int.from_bytes(drawn[:8]),
            preprocessing=Preprocessing(**entry.preprocess.model_dump()),
            forward_args=entry.forward_args,
            pixels=entry.layer == PIXELS,
            allowed_modules=allowed_modules,
            terms=Terms(model=f"model_parameters.{argument}"),
        )

    def weights_file(self, name: str) -> Path | None:
        """Find the local file that the weights of an entry name; None where they are no file.

        It is relative to the registry's folder or else to the working directory, and need not exist.
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
        stimuli: The stimuli in the order of the file; any sequence of them is made a `StimulusTable`.
        sha256: Digest of the file's bytes.
    """

    path: Path
    stimuli: Sequence[Stimulus]
    sha256: str

    def __post_init__(self) -> None:
        """Bring the stimuli into the form that takes little memory."""
        if not isinstance(self.stimuli, StimulusTable):
            object.__setattr__(self, "stimuli", StimulusTable(self.stimuli))

    @property
    def table(self) -> StimulusTable:
        """The stimuli, of which names can be had without making one."""
        assert isinstance(self.stimuli, StimulusTable)
        return self.stimuli


def registry_path(chosen: str | None) -> Path:
    """Give the file of an option, else of `HACKATHON_MODEL_REGISTRY`, else the one that comes with the project."""
    return _choose(chosen, REGISTRY_VARIABLE, "model_registry.json")


def catalog_path(chosen: str | None) -> Path:
    """Give the file of an option, else of `HACKATHON_STIMULI_CATALOG`, else the one that comes with the project."""
    return _choose(chosen, CATALOG_VARIABLE, "stimuli_catalog.jsonl")


def read_registry(path: Path) -> Registry:
    """Read a model registry of at most 16 MB of JSON: a list of entries, or an object with that list under `models`.

    Raises:
        ContractError: The file cannot be read, or breaks the contract; all problems are named.
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
    """Read several model registries as one, in which names are unique, too.

    Args:
        paths: Their files; weights are found from each one's own folder.

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
    for known in registries:
        for name, entry in known.entries.items():
            if (home := homes.setdefault(canonical_name(name), known.path)) != known.path:
                raise UserError(
                    f"registry: {name!r} is in {str(home)!r} and in {str(known.path)!r}; give another name in one"
                )
            file = known.weights_file(name)
            entries[name] = entry if file is None else entry.model_copy(update={"weights": str(file.absolute())})
    together = "\0".join(known.sha256 for known in registries)
    return Registry(paths[0], entries, hashlib.sha256(together.encode()).hexdigest())


def read_catalog(path: Path, max_bytes: int = CATALOG_MAX_BYTES) -> Catalog:
    """Read a stimuli catalog line by line: one JSON object per line; blank lines do not count.

    Two stimuli that differ in the case of their paths are two; those that differ in Unicode normalisation are one.

    Args:
        path: The file.
        max_bytes: The largest size of the file in bytes.

    Raises:
        ContractError: The file cannot be read, or breaks the contract; all problems are named with their lines, up to
            a thousand.
    """
    document = f"stimuli catalog {path}"
    digest = hashlib.sha256()
    table, lines = StimulusTable(), array("Q")
    datasets: set[str] = set()
    variables: dict[str, str] = {}
    problems: list[Problem] = []
    for number, line in enumerate(read_lines(path, max_bytes, "max_catalog_bytes", document), start=1):
        digest.update(line)
        if not line.strip():
            continue
        try:
            outcome = check_document(parse_json(line, "line"), CATALOG_LINE)
        except ContractError as error:
            outcome = None, error.problems
        stimulus, found = outcome
        problems.extend(Problem(each.pointer, each.value, f"line {number}: {each.rule}") for each in found)
        if len(problems) >= MOST_PROBLEMS:
            problems.append(Problem("", "", f"what follows line {number} is not read"))
            break
        if stimulus is not None:
            if stimulus.dataset_name not in datasets:
                datasets.add(stimulus.dataset_name)
                problems.extend(_find_shared_variable(stimulus.dataset_name, variables, number))
            table.append(stimulus)
            lines.append(number)
    problems.extend(islice(_find_repeated_stimuli(table, lines), max(MOST_PROBLEMS - len(problems), 0)))
    if not table and not problems:
        problems.append(Problem("", "", "is empty; one line per stimulus is needed"))
    if problems:
        raise ContractError(document, problems)
    return Catalog(path, table, digest.hexdigest())


def _choose(chosen: str | None, variable: str, shipped: str) -> Path:
    """Take the option, else the variable, else the shipped file; an empty text chooses nothing.

    What is not in the working folder, but in the checkout, is taken from there: shipped configurations name what comes
    with them, and can be given from any folder.
    """
    given = chosen or os.environ.get(variable)
    return find_file(given) if given else CONFIGS / shipped


def _find_repeated_models(models: tuple[ModelEntry, ...], prefix: str) -> Iterator[Problem]:
    first: dict[str, int] = {}
    for index, entry in enumerate(models):
        earlier = first.setdefault(canonical_name(entry.model_name), index)
        if earlier != index:
            rule = f"the same name as {prefix}/{earlier}/model_name, {short_json(models[earlier].model_name)}"
            yield Problem(f"{prefix}/{index}/model_name", short_json(entry.model_name), rule + "; names must be unique")


def _find_repeated_stimuli(table: StimulusTable, lines: Sequence[int]) -> Iterator[Problem]:
    for place, earlier in table.repeated():
        stimulus = table[place]
        value = short_json(f"{stimulus.dataset_name}/{stimulus.image_identifier}")
        rule = f"line {lines[place]}: the same stimulus as in line {lines[earlier]}; stimuli must be unique"
        yield Problem("", value, rule)


def _find_shared_variable(dataset: str, variables: dict[str, str], line: int) -> Iterator[Problem]:
    """Find a data set whose root another's variable names: a submission of either would be scored on one of them.

    Args:
        dataset: A data set, which comes for the first time.
        variables: The first data set of each variable before; this one is added.
        line: Its line.
    """
    variable = root_variable(dataset)
    other = variables.setdefault(variable, dataset)
    if other != dataset:
        rule = f"line {line}: shares the variable {variable} with data set {short_json(other)}; rename one of them"
        yield Problem("/dataset_name", short_json(dataset), rule)

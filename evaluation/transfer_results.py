"""Results of sources on targets: read from runs of fine-tuning, and grouped by source and target."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from glob import glob
from operator import itemgetter
from pathlib import Path, PurePath
from typing import Any, Literal

import numpy as np

from headstart.contract.tables.grouping import grouped
from headstart.evaluation.protocol_differences import LISTED, flatten, show
from headstart.metrics.arrays import Floats
from headstart.metrics.sample_efficiency.result_warnings import one_class_warnings
from headstart.modules.networks.backbone_spec import URL_PREFIXES
from headstart.modules.networks.spec import WEIGHT_FILES, WHOLE_NETWORK
from headstart.output.errors import UserError, other_schema, reason_of
from headstart.output.version import TRAINING_SCHEMA
from headstart.store.json_digest import read_sealed

TASK = "target_accuracy"
RESULTS, CONFIG = "results.json", "config.yaml"
Trained = Literal["all", "tail", "head"]
# Settings that all sources of a target share, and settings that all targets of a source share.
OF_A_TARGET = ("train_photos_sha256", "validation_photos_sha256", "unreadable")
OF_A_SOURCE = ("network", "preprocessing", "trainable_from")
SHARE = "selection_share"
TITLES = {
    "all": "the whole network fine-tuned",
    "tail": "fine-tuned behind a freeze boundary",
    "head": "the head alone trained",
}
# A source and a target.
Pair = tuple[str, str]
# Values of the orderings by source and target.
PairedResults = dict[Pair, Floats]


# What a message says where results differ in settings that they must share, by the kind of the settings.
REMEDIES = {
    "recipe": "give runs of one recipe",
    "common": "only sources, targets and orderings may differ",
    "source": "both are of the source {0.source}",
    "target": "both are of the target {0.target}",
}


@dataclass(frozen=True)
class TransferResult:
    """Values that one source reached on one target, by ordering, and the settings that they depend on.

    Attributes:
        folder: The run's folder.
        source: Name of the source.
        target: Name of the target.
        values: Values by the number of the ordering.
        settings: Settings by their kind, one of `REMEDIES`: those of the training and others that all results share,
            and those that all results of the source or of the target share.
        only_classes: The class that is predicted for all validation photos, by the orderings in which one is.
    """

    folder: Path
    source: str
    target: str
    values: Mapping[int, float]
    settings: Mapping[str, Mapping[str, Any]]
    only_classes: Mapping[int, str] = field(default_factory=dict)

    @property
    def pair(self) -> Pair:
        """Source and target."""
        return self.source, self.target

    def __str__(self) -> str:
        """Return source, target and folder, as messages name them."""
        return f"{self.source} on {self.target} in {str(self.folder)!r}"


def name_source(backbone: str, weights: str, registry: object) -> str:
    """Return the name of a source: its entry in a registry if it has one, else a name by its weights.

    Args:
        backbone: The network's name.
        weights: The name of its weights, or their file.
        registry: The registry of the entry, if any.
    """
    plain, path = backbone.removeprefix("timm/"), PurePath(weights)
    if registry is not None or weights.startswith(URL_PREFIXES):
        return plain
    if path.suffix in WEIGHT_FILES:
        return path.stem
    return plain if path.name == "DEFAULT" else f"{plain}_{path}"


def rename(results: Sequence[TransferResult], names: Mapping[str, str]) -> list[TransferResult]:
    """Return results with other names of sources and targets.

    Raises:
        UserError: A name belongs to none of them.
    """
    present = sorted({name for result in results for name in result.pair})
    if unknown := sorted(set(names) - set(present)):
        raise UserError(f"names: {', '.join(unknown)} given, but the runs are of {', '.join(present)}")
    pairs = [[names.get(name, name) for name in result.pair] for result in results]
    return [replace(result, source=pair[0], target=pair[1]) for result, pair in zip(results, pairs, strict=True)]


def pair_results(results: Sequence[TransferResult]) -> PairedResults:
    """Group results by source and target, after checking that they differ in nothing else.

    An ordering that two runs have counts once.

    Returns:
        The values in the order of the orderings' numbers, by source and target.

    Raises:
        UserError: The results cannot be compared, or an ordering is there twice, with two values.
    """
    groups = grouped(
        (REMEDIES[kind].format(result), (result, settings))
        for result in results
        for kind, settings in result.settings.items()
    )
    for remedy, members in groups.items():
        _require_same(members, remedy)

    pairs: dict[Pair, dict[int, float]] = {}
    for result in results:
        values = pairs.setdefault(result.pair, {})
        for ordering, value in result.values.items():
            if values.setdefault(ordering, value) != value:
                raise UserError(
                    f"runs: {str(result.folder)!r} holds ordering {ordering} of {result.source} on {result.target} "
                    "again, and differently; leave one out"
                )
    return {pair: np.array([values[number] for number in sorted(values)]) for pair, values in pairs.items()}


def _require_same(members: Sequence[tuple[TransferResult, Mapping[str, Any]]], remedy: str) -> None:
    """Raise a UserError that names results, settings and their values unless the settings of all agree."""
    one, first = members[0][0], flatten(members[0][1])
    for result, settings in members[1:]:
        other = flatten(settings)
        differing = [key for key in {**first, **other} if first.get(key) != other.get(key)]
        if differing:
            values = [f"{key} ({_show(other.get(key))}, {_show(first.get(key))})" for key in differing]
            listed = ", ".join([*values[:LISTED], *["…"] * (len(values) > LISTED)])
            raise UserError(f"runs: {result} differs from {one} in {listed}; {remedy}")


def _show(value: object) -> str:
    """Return the value of a setting as text: a digest shortened, a dash where there is none."""
    return "–" if value is None else show(value)


def pair_warnings(results: Sequence[TransferResult]) -> dict[Pair, list[str]]:
    """Return the warnings of results by source and target."""
    warnings = {}
    for pair, its in grouped((result.pair, result) for result in results).items():
        only = {ordering: name for result in its for ordering, name in result.only_classes.items()}
        orderings = {ordering for result in its for ordering in result.values}
        # Where pixels have no classes, accuracies name no measure.
        warnings[pair] = one_class_warnings(only, len(orderings), "measure" in its[0].settings["common"])
    return warnings


def find_folders(patterns: str | Sequence[str]) -> list[Path]:
    """Return the folders of runs that patterns of the shell match, those of each pattern sorted, each once.

    Raises:
        UserError: A pattern matches none.
    """
    folders: dict[Path, None] = {}
    for pattern in [patterns] if isinstance(patterns, str) else patterns:
        matches = map(Path, sorted(glob(pattern)))  # noqa: PTH207 - Path.glob takes no absolute pattern
        # One that was cut off has its configuration alone, and is refused later.
        runs = [path for path in matches if any((path / name).is_file() for name in (RESULTS, CONFIG))]
        if not runs:
            raise UserError(f"runs: {pattern!r} matches no folder of a run; name folders that headstart train wrote")
        folders |= dict.fromkeys(runs)
    return list(folders)


def _read_document(folder: Path) -> dict[str, Any]:
    try:
        return read_sealed(folder / RESULTS)
    except (OSError, ValueError) as error:
        raise UserError(
            f"runs: the files in {str(folder)!r} are damaged ({reason_of(error)}); run headstart train again"
        ) from error


def read_accuracies(folders: Sequence[Path], trained: Trained | None) -> tuple[list[TransferResult], str]:
    """Read the accuracies of runs.

    Args:
        folders: Their folders.
        trained: The kind to select; None where all are of one kind.

    Returns:
        The accuracies, and their title.

    Raises:
        UserError: There are several kinds, or none, or a file is damaged or cannot be read.
    """
    results = list(map(_read, folders))
    kinds = {_trained(result): result for result in reversed(results)}
    if trained is None and len(kinds) > 1:
        listed = " and ".join(f"of {kind} ({result})" for kind, result in sorted(kinds.items(), key=itemgetter(0)))
        raise UserError(f"trained: accuracies {listed} are given; choose by --trained")
    selected = [result for result in results if trained in (None, _trained(result))]
    if not selected:
        raise UserError(f"runs: no accuracy of {trained} is in what is given; they are of {' and of '.join(kinds)}")
    measure = selected[0].settings["common"].get("measure", "accuracy")
    return selected, f"{measure}, {TITLES[_trained(selected[0])]}"


def _trained(result: TransferResult) -> str:
    trained = str(result.settings["recipe"]["trained"])
    return "tail" if trained == "all" and result.settings["source"]["trainable_from"] != WHOLE_NETWORK else trained


def _read(folder: Path) -> TransferResult:
    document = _read_document(folder)
    if (task := document.get("task", "comparison")) != TASK:
        instead = "headstart leaderboard has its accuracies" if task == "comparison" else "leave it out"
        raise UserError(f"runs: {str(folder)!r} is of {task}, and not of {TASK}; {instead}")
    if document.get("schema") != TRAINING_SCHEMA:
        raise other_schema(f"runs: {RESULTS} in {str(folder)!r}", document.get("schema"), TRAINING_SCHEMA)

    names, stream, orderings = document["protocol"], document["key"]["stream"], document["key"]["orderings"]
    common = {
        key: value
        for key, value in {**stream, **document["key"]["method"]}.items()
        if key not in {*OF_A_SOURCE, *OF_A_TARGET}
    }
    recipe = {SHARE: common.get(SHARE), **common.pop("hyperparameters")}
    recipe |= {key: common.pop(key) for key in ("batch_size", "trainer")}
    settings = {
        "recipe": recipe,
        "common": common,
        "source": {key: stream.get(key) for key in OF_A_SOURCE},
        "target": {key: stream.get(key) for key in OF_A_TARGET},
    }

    classes = zip(orderings, document["only_classes"], strict=True)
    return TransferResult(
        folder,
        name_source(names["backbone"], names["weights"], names["registry"]),
        names["dataset"],
        dict(zip(orderings, document["accuracies"], strict=True)),
        settings,
        {ordering: name for ordering, name in classes if name is not None},
    )

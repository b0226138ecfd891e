"""Results of sources on targets, checked to be comparable and grouped by source and target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headstart.evaluation.runs import require_same
from headstart.modules.networks.spec import WEIGHT_FILES
from headstart.output.errors import UserError

# Values of the orderings by source and target.
PairedResults = dict[tuple[str, str], NDArray[np.float64]]


@dataclass(frozen=True)
class TransferResult:
    """Values that one source reached on one target, by ordering, and the settings that they depend on.

    Attributes:
        folder: The run's folder or the ledger's.
        source: Name of the source.
        target: Name of the target.
        values: Values by the number of the ordering.
        common: Settings that all results must share.
        of_source: Settings that all results of the source must share.
        of_target: Settings that all results of the target must share.
        of_pair: Settings that all results of the source on the target must share.
    """

    folder: Path
    source: str
    target: str
    values: Mapping[int, float]
    common: Mapping[str, Any]
    of_source: Mapping[str, Any]
    of_target: Mapping[str, Any]
    of_pair: Mapping[str, Any]


def name_source(backbone: str, weights: str, registry: object) -> str:
    """Return the name of a source: its entry in a registry if it has one, else a name by its weights.

    Args:
        backbone: The network's name.
        weights: The name of its weights, or their file.
        registry: The registry of the entry, if any.
    """
    plain, path = backbone.removeprefix("timm/"), PurePath(weights)
    if registry is not None:
        return plain
    if path.suffix in WEIGHT_FILES:
        return path.stem
    return plain if path.name == "DEFAULT" else f"{plain}_{path}"


def pair_results(results: Sequence[TransferResult], names: Mapping[str, str]) -> PairedResults:
    """Group results by source and target, after checking that they differ in nothing else.

    An ordering that is there twice, such as in a run and in a ledger, counts once.

    Args:
        results: The results.
        names: Other names for sources and targets.

    Returns:
        The values in the order of the orderings' numbers, by source and target.

    Raises:
        UserError: The results cannot be compared, or a name belongs to none of them.
    """
    own = sorted({name for each in results for name in (each.source, each.target)})
    if unknown := sorted(set(names) - set(own)):
        raise UserError(f"names: {', '.join(unknown)} given, but the runs are of {', '.join(own)}")
    results = [
        replace(each, source=names.get(each.source, each.source), target=names.get(each.target, each.target))
        for each in results
    ]

    _require_comparable(results)
    pairs: dict[tuple[str, str], dict[int, float]] = {}
    for each in results:
        values = pairs.setdefault((each.source, each.target), {})
        for ordering, value in each.values.items():
            if values.setdefault(ordering, value) != value:
                raise UserError(
                    f"runs: {str(each.folder)!r} holds ordering {ordering} of {each.source} on {each.target} again, "
                    "and differently; leave one out"
                )
    return {pair: np.array([values[number] for number in sorted(values)]) for pair, values in pairs.items()}


def _require_comparable(results: Sequence[TransferResult]) -> None:
    """Raise a UserError unless results differ in nothing but source, target and orderings."""
    folders = [each.folder for each in results]
    require_same(folders, [each.common for each in results], "only sources, targets and orderings may differ")

    # Results of one source, of one target, and of both must agree in further settings.
    groups: dict[str, list[tuple[Path, Mapping[str, Any]]]] = {}
    for each in results:
        for group, settings in (
            (f"the source {each.source}", each.of_source),
            (f"the target {each.target}", each.of_target),
            (f"{each.source} on {each.target}", each.of_pair),
        ):
            groups.setdefault(group, []).append((each.folder, settings))
    for group, members in groups.items():
        require_same([folder for folder, _ in members], [settings for _, settings in members], f"both are of {group}")

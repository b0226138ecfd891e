"""Settings that differ in the seed of the stream alone are one: the orderings of all seeds are pooled."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from headstart.contract.tables.grouping import grouped
from headstart.evaluation.class_accuracies import join_class_accuracies
from headstart.evaluation.leaderboard.settings import STREAM, Setting
from headstart.metrics.arrays import Floats
from headstart.metrics.sample_efficiency.curves import NOT_EVALUATED, Curves
from headstart.store.json_digest import digest_of

# Keys that follow from the seed. Random weights of several seeds are several networks.
SEEDED = ("seed", STREAM, "validation_photos_sha256")


def pool_seeds(settings: Sequence[Setting]) -> list[Setting]:
    """Pool the settings that differ in their seeds alone, and have the same methods and baseline.

    Args:
        settings: The settings; those whose runs were cut off are pooled among themselves.
    """
    groups = grouped((digest_of(_shared_by_seeds(each)), each) for each in settings)
    return [_pool(group) if len(group) > 1 else group[0] for group in groups.values()]


def _shared_by_seeds(setting: Setting) -> dict[str, Any]:
    return {
        "protocol": _without_seed(setting.protocol),
        "methods": {name: setting.method_keys[name] for name in sorted(setting.curves.methods)},
        "others": [setting.baseline, setting.is_pooled, setting.curves.all_correct],
    }


def _without_seed(protocol: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in protocol.items() if key not in SEEDED}


def _pool(settings: Sequence[Setting]) -> Setting:
    """Pool the orderings of settings of several seeds."""
    first = settings[0]
    all_curves = [each.curves.select(first.curves.methods) for each in settings]
    longest = max(all_curves, key=lambda curves: len(curves.samples_seen))
    curves = replace(
        longest,
        orderings=np.concatenate([each.orderings for each in all_curves]),
        correct=np.concatenate([_as_long(each, len(longest.samples_seen)) for each in all_curves], axis=1),
        class_accuracies=_join_classes(all_curves),
        limit=min(each.limit for each in all_curves),
    )

    seeds = ", ".join(str(each.protocol["seed"]) for each in settings)
    remarks = [f"The orderings of the seeds {seeds} are pooled.", *(line for each in settings for line in each.remarks)]
    return replace(
        first,
        protocol={**_without_seed(first.protocol), "seed": seeds},
        curves=curves,
        runs=[run for each in settings for run in each.runs],
        remarks=[*dict.fromkeys(remarks)],
        warnings=[*dict.fromkeys(line for each in settings for line in each.warnings)],
    )


def _join_classes(all_curves: Sequence[Curves]) -> dict[int, Floats]:
    """Return the accuracies of classes of all orderings, one seed after the other."""
    sizes = [len(each.orderings) for each in all_curves]
    columns = np.split(np.arange(sum(sizes)), np.cumsum(sizes)[:-1])
    rows = range(len(all_curves[0].methods))
    parts = [(each.class_accuracies, rows, own.tolist()) for each, own in zip(all_curves, columns, strict=True)]
    return join_class_accuracies(parts, len(rows), sum(sizes))


def _as_long(curves: Curves, evaluations: int) -> np.ndarray[Any, np.dtype[np.signedinteger[Any]]]:
    """Return counts of so many evaluations, with none after the end of these traces."""
    missing = evaluations - len(curves.samples_seen)
    return np.pad(curves.correct, ((0, 0), (0, 0), (0, missing)), constant_values=NOT_EVALUATED)

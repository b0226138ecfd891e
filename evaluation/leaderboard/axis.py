"""An option that settings vary, as an axis: scores of all methods by its values."""

from collections.abc import Mapping, Sequence
from typing import Any

from headstart.contract.tables.grouping import grouped
from headstart.evaluation.leaderboard.settings import STREAM, Setting, name_settings
from headstart.output.errors import UserError
from headstart.store.json_digest import digest_of

NETWORK_KEYS = ("backbone", "weights", "weights_sha256", "random_weights", "start", "preprocessing", "network")
PHOTO_KEYS = ("validation_size", "validation_photos_sha256", "largest_class", "all_correct")
# Keys of the protocol that follow from an axis; nested ones begin with them.
FOLLOWING = {"backbone": NETWORK_KEYS, "weights": NETWORK_KEYS, "validation_size": PHOTO_KEYS}


def describe_axis(
    settings: Sequence[Setting], described: Sequence[Mapping[str, Any]], option: str | None
) -> dict[str, Any] | None:
    """Return `axis` as it stands in `leaderboard.json`; None without an option.

    Args:
        settings: The settings whose runs were not cut off, or all of them on request.
        described: The same as they stand in `leaderboard.json`.
        option: The option, such as `data.batch_size`.

    Raises:
        UserError: No protocol has such a value, or no two settings differ in it alone.
    """
    if option is None:
        return None
    key = option.removeprefix("data.").removeprefix("criterion.").removeprefix("trainer.")
    if not settings:
        raise UserError("axis: all runs were cut off; --incomplete includes them")
    known = sorted({each for setting in settings for each in setting.protocol if "sha256" not in each})
    if key not in known:
        raise UserError(f"axis: {option!r} is none of {', '.join(known)}")

    panels = grouped((digest_of(_others(setting.protocol, key)), index) for index, setting in enumerate(settings))
    if max(map(len, panels.values())) < 2:
        raise UserError(
            f"axis: no two settings differ in {key} alone; --where chooses among settings, --incomplete includes runs "
            "that were cut off"
        )

    names = name_settings([_without(settings[indices[0]].protocol, key) for indices in panels.values()])
    return {
        "key": key,
        "panels": [
            _describe_panel(name, key, [(settings[index], described[index]) for index in indices])
            for name, indices in zip(names, panels.values(), strict=True)
        ],
    }


def _others(protocol: Mapping[str, Any], key: str) -> dict[str, Any]:
    """Return the values of a protocol that do not follow from an axis."""
    following = (key, STREAM, *FOLLOWING.get(key, ()))
    return {each: value for each, value in protocol.items() if each.partition(".")[0] not in following}


def _without(protocol: Mapping[str, Any], key: str) -> dict[str, Any]:
    """Return a protocol without an axis, for the names of panels, which have those of a data set and a network."""
    names = {"dataset": protocol["dataset"], "backbone": "all backbones", "weights": "all weights"}
    return {**names, **_others(protocol, key)}


def _describe_panel(name: str, key: str, settings: Sequence[tuple[Setting, Mapping[str, Any]]]) -> dict[str, Any]:
    """Describe the settings that differ in the axis alone."""
    ordered = sorted(settings, key=lambda pair: _sorting(pair[0].protocol[key]))
    values, described = [setting.protocol[key] for setting, _ in ordered], [each for _, each in ordered]

    # Of each method, in the order of the values.
    scores = grouped(
        (
            method["name"],
            {
                "value": value,
                "restricted_mean": method["restricted_mean"],
                "ci95": method["restricted_mean_interval"],
                "group": method["group"],
                "label_budgets": each["label_budgets"].get(method["name"], []),
            },
        )
        for value, each in zip(values, described, strict=True)
        for method in each["methods"]
    )

    limits = sorted({each["restricted_at"] for each in described})
    remark = f"Restricted means are cut at other samples for other values ({', '.join(map(str, limits))})."
    return {
        "name": name,
        "values": values,
        "settings": [each["name"] for each in described],
        "warnings": [f"{each['name']}: {line}" for _, each in settings for line in each["warnings"]],
        "remarks": [remark] * (len(limits) > 1),
        "methods": [{"name": method, "scores": each} for method, each in scores.items()],
    }


def _sorting(value: Any) -> tuple[bool, Any]:  # noqa: ANN401 - JSON
    """Return a sorting key: numbers by size, before texts."""
    is_number = isinstance(value, int | float)
    return not is_number, value if is_number else str(value)

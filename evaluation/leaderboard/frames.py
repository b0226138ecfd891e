"""Results of a leaderboard as long frames, from which its tables and its CSV file are made."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from headstart.output.tables import Cells

# The content of `leaderboard.json`, or a part of it.
Document = Mapping[str, Any]
SETTING = (
    *("dataset", "backbone", "weights", "batch_size", "classes", "validation_size", "chance", "majority"),
    *("measure", "threshold", "consecutive", "restricted_at"),
)


def score_frame(document: Document) -> pd.DataFrame:
    """Return a line for each method of each setting, best first, with a column for each number.

    Args:
        document: The content of `leaderboard.json`.
    """
    requested = [(kind, number) for kind in ("per_class", "at") for number in document["asked"].get(kind, ())]
    lines = []
    for setting in document["settings"]:
        shared = {"setting": setting["name"], "warnings": " ".join(setting["warnings"])}
        shared |= {key: setting[key] for key in SETTING}
        # An option that settings vary, for plots by its values.
        varied = [key for key in document["differences"] if key not in SETTING and "sha256" not in key]
        shared |= {key: setting["protocol"].get(key) for key in varied}
        for method in setting["methods"]:
            (_, name), *values = method.items()
            lines.append({**shared, "method": name, **_flat(values), **_budgets(setting, name, requested)})
    return pd.DataFrame(lines, dtype=object)


def _flat(values: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Return values with a key for each end of an interval, and for each accuracy."""
    flat: dict[str, Any] = {}
    for key, value in values:
        if key.endswith("_interval"):
            flat |= dict(zip((f"{key}_low", f"{key}_high"), value or (None, None), strict=True))
        elif key == "accuracy_at":
            flat |= {f"{key}_{samples}": accuracy for samples, accuracy in value.items()}
        else:
            flat[key] = value
    return flat


def _budgets(setting: Document, name: str, requested: Sequence[tuple[str, int]]) -> dict[str, Any]:
    """Return the accuracies of a method at the requested budgets, and the area under its learning curve."""
    entries, area = setting["label_budgets"].get(name, ()), setting["learning_curve_area"].get(name, {})
    flat: dict[str, Any] = {}
    for kind, number in requested:
        key = "labels" if kind == "at" else kind
        entry: Document = next((each for each in entries if each[key] == number), {})
        flat |= _estimate(f"{kind}_{number}", entry, "accuracy") | {f"{kind}_{number}_group": entry.get("group")}
    if requested:
        flat |= _estimate("learning_curve_area", area, "area") | {"learning_curve_area_group": area.get("group")}
    return flat


def _estimate(title: str, entry: Document, key: str) -> dict[str, Any]:
    """Return an estimate and the ends of its interval; None where there is no such entry."""
    low, high = entry.get("ci95", (None, None))
    return {title: entry.get(key), f"{title}_low": low, f"{title}_high": high}


def pivot(name: str, lines: Iterable[tuple[str, str, str]]) -> Cells:
    """Return a table with names down and values across; a dash where there is no text.

    Args:
        name: Header of the names.
        lines: Name, value and text.
    """
    texts: dict[str, dict[str, str]] = {}
    for row, column, text in lines:
        texts.setdefault(row, {})[column] = text
    columns = [*dict.fromkeys(column for row in texts.values() for column in row)]
    return [[name, *columns], *([row, *(cells.get(column, "–") for column in columns)] for row, cells in texts.items())]

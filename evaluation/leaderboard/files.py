"""Files of a leaderboard, and its tables in the terminal."""

from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd

from headstart.evaluation.leaderboard.tables import Document, tables_of, warnings_of
from headstart.output.markup import escape_cell, escape_markdown
from headstart.output.printable import print_lines, printable
from headstart.output.results_folder import ResultsFolder
from headstart.output.tables import latex_tables, markdown_tables, print_tables

NAME = "leaderboard"
FILES = [f"{NAME}.{kind}" for kind in ("json", "csv", "md", "tex")]
SETTING = (
    *("dataset", "backbone", "weights", "batch_size", "classes", "validation_size", "chance", "majority"),
    *("measure", "threshold", "consecutive", "restricted_at"),
)


def write_leaderboard(results: ResultsFolder, document: dict[str, Any], texts: Mapping[str, str] | None = None) -> None:
    """Write the files of a leaderboard.

    Args:
        results: Their folder.
        document: The content of `leaderboard.json`.
        texts: Contents of further files, by their names.
    """
    tables, warnings, left_out = [*tables_of(document)], warnings_of(document), _left_out(document)
    listed = "\n".join(f"- {escape_markdown(each)}" for each in [*warnings, *left_out, *document["remarks"]])
    comments = "".join(f"% {printable(each)}\n" for each in warnings)
    files = {
        f"{NAME}.md": "\n\n".join(filter(None, ("# Leaderboard", listed, markdown_tables(tables)))),
        f"{NAME}.tex": comments + latex_tables(tables),
        **(texts or {}),
    }
    results.write(document, {NAME: leaderboard_table(document)}, files)


def print_leaderboard(document: dict[str, Any]) -> None:
    """Print the tables; those of settings only if they are few."""
    print_lines(warnings_of(document))
    print_tables([*tables_of(document, in_terminal=True)])
    print_lines([*_left_out(document), *document["remarks"]])


def leaderboard_table(document: Mapping[str, Any]) -> tuple[list[str], list[list[Any]]]:
    """Return the columns of the CSV file, and its rows: one for every method of every setting.

    Args:
        document: The content of `leaderboard.json`.
    """
    frame = _score_frame(document)
    rows = [[escape_cell(cell) for cell in line] for line in frame.itertuples(index=False, name=None)]
    return [*frame.columns], rows


def _score_frame(document: Document) -> pd.DataFrame:
    """Return a line for each method of each setting, best first, with a column for each number."""
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
            lines.append({**shared, "method": name, **_flat(values), **_flat(_budgets(setting, name, requested))})
    return pd.DataFrame(lines, dtype=object)


def _flat(values: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Return values with a key for each end of an interval, and for each accuracy."""
    flat: dict[str, Any] = {}
    for key, value in values:
        if key.endswith("_interval") or isinstance(value, list):
            flat |= dict(zip((f"{key}_low", f"{key}_high"), value or (None, None), strict=True))
        elif key == "accuracy_at":
            flat |= {f"{key}_{samples}": accuracy for samples, accuracy in value.items()}
        else:
            flat[key] = value
    return flat


def _budgets(setting: Document, name: str, requested: Iterable[tuple[str, int]]) -> Iterable[tuple[str, Any]]:
    """Yield the accuracies of a method at the requested budgets, and the area under its learning curve."""
    entries = setting["label_budgets"].get(name, ())
    scores: list[tuple[str, Document, str]] = []
    for kind, number in requested:
        matching = (each for each in entries if each["labels" if kind == "at" else kind] == number)
        scores.append((f"{kind}_{number}", next(matching, {}), "accuracy"))
    if scores:
        scores.append(("learning_curve_area", setting["learning_curve_area"].get(name, {}), "area"))

    for title, entry, key in scores:
        yield from (
            (title, entry.get(key)),
            (title, entry.get("ci95", [None, None])),
            (f"{title}_group", entry.get("group")),
        )


def _left_out(document: Mapping[str, Any]) -> list[str]:
    return [f"left out: {each['setting']} ({each['reason']})" for each in document["left_out"]]

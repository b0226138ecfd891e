"""Tables of a leaderboard in the terminal and in its files: of settings, over them, at label budgets, of criteria."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from headstart.output.markup import escape_cell, escape_markdown
from headstart.output.printable import print_lines, printable
from headstart.output.results_folder import ResultsFolder
from headstart.output.tables import (
    Cells,
    Table,
    format_estimate,
    format_number,
    latex_tables,
    markdown_tables,
    print_tables,
    table_rows,
)

# The content of `leaderboard.json`, or a part of it.
Document = Mapping[str, Any]
AREA = "area under the curve"
Columns = dict[str, Callable[[Document], str]]
# Columns that stay in narrow terminals.
ESSENTIAL = ("method", "group", "reached", "median", "improvement")
# The tables of more settings are only written into files.
MOST_PRINTED = 4
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
    comments = "".join(f"% {printable(warning)}\n" for warning in warnings)
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
        matching = (entry for entry in entries if entry["labels" if kind == "at" else kind] == number)
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


def tables_of(document: Document, in_terminal: bool = False) -> Iterator[Table]:
    """Yield the tables of a leaderboard.

    Args:
        document: The content of `leaderboard.json`.
        in_terminal: Whether to leave out what a terminal has no room for: neighbours, other criteria, and all tables of
            single settings if there are many.
    """
    settings, over, budgets = document["settings"], document["over_settings"], document["label_budgets"]
    for setting in settings if not in_terminal or len(settings) <= MOST_PRINTED else ():
        yield from setting_tables(setting, in_terminal)

    if over is not None:
        yield Table(f"Over {over['of']}", over_settings_rows(document), notes=over["remarks"])
    if budgets is not None:
        notes = budgets["remarks"] if over is None else []
        yield Table(budgets_title(budgets), budgets_over_settings_rows(budgets), notes=notes)

    for each in document["sensitivity"]["settings"] if not in_terminal else ():
        yield sensitivity_table(each)


def setting_tables(setting: Document, in_terminal: bool = False) -> Iterator[Table]:
    """Yield the tables of a setting: its methods, neighbours among them, and accuracies at label budgets.

    Args:
        setting: The setting as it stands in `leaderboard.json`.
        in_terminal: As for `tables_of`.
    """
    notes = [*warnings_of(setting), *setting["remarks"]]
    yield Table(setting["name"], _setting_rows(setting), ESSENTIAL, _criterion(setting), notes)
    if setting["pairs"] and not in_terminal:
        yield Table(f"Neighbours: {setting['name']}", _pair_rows(setting))
    if setting["label_budgets"]:
        yield Table(f"Accuracy at label budgets, %: {setting['name']}", _budget_rows(setting))


def sensitivity_table(setting: Document) -> Table:
    """Return the best method of a setting under each criterion, with the agreement of its ranking.

    Args:
        setting: A part of `sensitivity` as it stands in `leaderboard.json`.
    """
    lines = []
    for each in setting["grid"]:
        cut = f", cut at {each['restricted_at']}" if each["undecided"] else ""
        best = f"{each['order'][0]} ({format_number(each['tau'], '.2f')}{cut})" if each["order"] else "–"
        lines.append((f"{100 * each['threshold']:g}%", f"{each['consecutive']} in a row", best))
    return Table(f"Sensitivity: {setting['name']}", _pivot("threshold", lines))


def warnings_of(document: Document) -> list[str]:
    """Return the warnings of a leaderboard, or of a part of it, as its tables show them."""
    return [f"WARNING: {warning}" for warning in document["warnings"]]


def _criterion(setting: Document) -> str:
    """Return the criterion of a setting, the accuracy by chance, the number of orderings and the limit."""
    measure = setting["measure"].replace("_", " ")
    shares = (("chance", setting["chance"]), ("largest class", setting["majority"]))
    by_chance = [f"{title} {share:.0%}" for title, share in shares if share is not None]
    threshold = f"{setting['threshold']:.0%} {measure}" + (f" ({', '.join(by_chance)})" if by_chance else "")
    return (
        f"{threshold} at {setting['consecutive']} evaluations in a row; {len(setting['orderings'])} orderings; "
        f"restricted at {setting['restricted_at']} samples"
    )


def _estimate(key: str, form: str) -> Callable[[Document], str]:
    """Return what shows a number of an entry with its interval."""
    return lambda entry: format_estimate(entry[key], entry[f"{key}_interval"], form)


def _accuracy(at: str) -> Callable[[Document], str]:
    """Return what shows the accuracy of an entry at a number of samples."""
    return lambda entry: format(entry["accuracy_at"][at], ".1%")


def _setting_rows(setting: Document) -> Cells:
    methods = setting["methods"]
    common = [at for at in methods[0]["accuracy_at"] if all(each["accuracy_at"][at] is not None for each in methods)]
    accuracies = {f"accuracy at {at}": _accuracy(at) for at in common}
    columns: Columns = {
        "method": lambda each: each["name"] + (f" (tuned: {each['tuned']})" if each["tuned"] else ""),
        "group": lambda each: each["group"],
        "rank": lambda each: " to ".join(map(str, dict.fromkeys(each["rank_interval"]))),
        "reached": lambda each: f"{each['reached']}/{each['orderings']}",
        "median": _estimate("median", "g"),
        "restricted mean": _estimate("restricted_mean", ".1f"),
        "improvement": lambda each: _improvement(each["relative_improvement"], each["relative_improvement_interval"]),
        "p": lambda each: "" if each["p_value_holm"] is None else format(each["p_value_holm"], ".2g"),
        "onset": lambda each: format_number(each["onset"], "g"),
    }
    return table_rows(methods, columns | accuracies)


def _improvement(value: float | None, ends: Sequence[float | None] | None) -> str:
    if value is None:
        return ""
    between = "" if ends is None else f" [{', '.join(format_number(end, '.0f') for end in ends)}]"
    return f"{round(value)} %{between}"


def _pair_rows(setting: Document) -> Cells:
    columns: Columns = {
        "better": lambda pair: pair["better"],
        "worse": lambda pair: pair["worse"],
        "fewer samples": lambda pair: format_estimate(pair["difference"], pair["interval"], ".1f"),
        "p": lambda pair: format(pair["p_value"], ".2g"),
        "significant": lambda pair: "yes" if pair["told_apart"] else "no",
        "orderings needed": lambda pair: format_number(pair["orderings_needed"], "g"),
    }
    return table_rows(setting["pairs"], columns)


def over_settings_rows(document: Document) -> Cells:
    """Return the table over all settings.

    Args:
        document: The content of `leaderboard.json`, with `over_settings`.
    """
    columns: Columns = {
        "method": lambda each: each["name"] + " (tuned)" * each["tuned"],
        "interquartile mean": _estimate("interquartile_mean", ".2f"),
        "mean rank": _estimate("mean_rank", ".1f"),
    }
    return table_rows(document["over_settings"]["methods"], columns)


def _budget_rows(setting: Document) -> Cells:
    """Return accuracies at label budgets, and the areas if there are any, by the accuracy at the largest budget."""
    budgets, areas = setting["label_budgets"], setting["learning_curve_area"]
    order = sorted(budgets, key=lambda name: -budgets[name][-1]["accuracy"] if budgets[name] else 0)
    entries = sorted(((name, each) for name in order for each in budgets[name]), key=lambda line: line[1]["labels"])
    lines = [(name, _budget(each), _score(each)) for name, each in entries]
    lines += [(name, AREA, _score(areas[name], "area")) for name in order if name in areas]
    header, *rows = _pivot("method", lines)
    return [header, *sorted(rows, key=lambda row: order.index(row[0]))]


def budgets_over_settings_rows(over: Document) -> Cells:
    """Return the table of means over settings.

    Args:
        over: `label_budgets` as it stands in `leaderboard.json`.
    """
    lines = []
    for method in over["methods"]:
        area = method["learning_curve_area"]
        scores: list[tuple[str, Any, str]] = [(_budget(each), each, "accuracy") for each in method["budgets"]]
        scores += [(AREA, area, "area")] * (area is not None)
        lines += [(method["name"], title, _score(score, key)) for title, score, key in scores]
    return _pivot("method", lines)


def budgets_title(over: Document) -> str:
    """Return the title of the table of means over settings."""
    return f"Accuracy at label budgets, %, mean over {over['of']}"


def _budget(budget: Document) -> str:
    labels, per_class = budget["labels"], budget["per_class"]
    if labels is None:
        return f"{per_class} per class"
    return f"{labels} labels" + (f" ({per_class} per class)" if per_class else "")


def _score(scores: Document, key: str = "accuracy") -> str:
    ends = [None if end is None else 100 * end for end in scores["ci95"]]
    return f"{format_estimate(100 * scores[key], ends, '.1f')} {scores.get('group', '')}".rstrip()


def _pivot(name: str, lines: Iterable[tuple[str, str, str]]) -> Cells:
    """Return a table of texts by name and value, names down under a header; a dash where there is no text."""
    texts: dict[str, dict[str, str]] = {}
    for row, column, text in lines:
        texts.setdefault(row, {})[column] = text
    columns = [*dict.fromkeys(column for row in texts.values() for column in row)]
    return [[name, *columns], *([row, *(cells.get(column, "–") for column in columns)] for row, cells in texts.items())]

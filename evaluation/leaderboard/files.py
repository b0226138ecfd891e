"""The files of a leaderboard: JSON, CSV, Markdown and LaTeX, with every text in them escaped."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

from evaluation.tables import csv_text
from output.tables import format_number, markdown_table, print_lines, print_table

JSON, CSV, MARKDOWN, TEX = (f"leaderboard.{kind}" for kind in ("json", "csv", "md", "tex"))
SETTING = ("dataset", "backbone", "weights", "batch_size", "threshold", "consecutive", "restricted_at")
NUMBERS = ("orderings", "reached", "median", "restricted_mean", "relative_improvement", "p_value", "p_value_holm")
INTERVALS = ("median_interval", "restricted_mean_interval", "relative_improvement_interval", "rank_interval")
NOT_APART = "Not told apart"
# More tables than these are left to the files.
MOST_PRINTED = 4
LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "–": "--",
    **{mark: f"\\{mark}" for mark in "{}$&#_%"},
}
Escape = Callable[[str], str]


def texts(document: dict[str, Any]) -> dict[str, str]:
    """Give the content of the files, by their names.

    Args:
        document: The content of `leaderboard.json`.
    """
    return {
        CSV: _csv(document),
        MARKDOWN: _markdown(document),
        TEX: _latex(document),
        JSON: json.dumps(document, indent=1, allow_nan=False) + "\n",
    }


def print_leaderboard(document: dict[str, Any]) -> None:
    """Print the tables, of settings only where they are few."""
    settings = document["settings"]
    for setting in settings if len(settings) <= MOST_PRINTED else []:
        print_table(f"{setting['name']}\n{_criterion(setting)}", setting_rows(setting, accuracies=1))
        print_lines(setting["remarks"])
    if document["over_settings"] is not None:
        print_table(f"Over {len(document['over_settings']['settings'])} settings", over_settings_rows(document))
        print_lines(document["over_settings"]["remarks"])
    if document["setup_stability"] is not None:
        print_table("Setup stability: agreement of the rankings where one part varies", stability_rows(document))
    print_lines([f"left out: {each['setting']} ({each['reason']})" for each in document["left_out"]])
    print_lines(document["remarks"])


def escape_markdown(text: str) -> str:
    """Let Markdown show a text as it is, but for `|`, which `markdown_table` escapes, and line breaks."""
    return re.sub(r"([\\`*_{}\[\]<>#&$~!])", r"\\\1", " ".join(text.split()))


def escape_latex(text: str) -> str:
    """Let LaTeX show a text as it is, but for line breaks; a bracket in front is no option of the line above."""
    escaped = "".join(LATEX.get(mark, mark) for mark in " ".join(text.split()))
    return f"{{{escaped}}}" if escaped.startswith(("[", "*")) else escaped


def escape_cell(value: Any) -> Any:  # noqa: ANN401 - of a table
    """Keep a spreadsheet from taking a text for a formula."""
    return f"'{value}" if isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r")) else value


def _csv(document: dict[str, Any]) -> str:
    """Give one row for every method of every setting."""
    accuracies = document["settings"][0]["methods"][0]["accuracy_at"]
    columns = ["setting", *SETTING, "method", "class", "tuned", *NUMBERS]
    columns += [f"{name}_{end}" for name in INTERVALS for end in ("low", "high")]
    columns += ["onset", "group", *(f"accuracy_at_{at}" for at in accuracies)]
    rows = []
    for setting in document["settings"]:
        for each in setting["methods"]:
            row = [setting["name"], *(setting[key] for key in SETTING), each["name"], each["class"], each["tuned"]]
            row += [each[key] for key in NUMBERS]
            row += [end for key in INTERVALS for end in each[key] or (None, None)]
            row += [each["onset"], each["group"], *(each["accuracy_at"][at] for at in accuracies)]
            rows.append([escape_cell(value) for value in row])
    return csv_text(columns, rows)


def setting_rows(setting: dict[str, Any], escape: Escape = str, accuracies: int | None = None) -> list[list[str]]:
    """Give the table of a setting as it is shown: the header, and a row for each method.

    Args:
        setting: The setting.
        escape: What lets texts be shown as they are.
        accuracies: How many accuracies are shown, the last ones; all by default.
    """
    known = [at for at in setting["methods"][0]["accuracy_at"] if _known(setting, at)]
    known = known if accuracies is None else known[-accuracies:]
    header = ["method", "group", "rank", "reached", "median", "restricted mean", "improvement", "p", "onset"]
    rows = [[escape(each) for each in [*header, *(f"accuracy at {at}" for at in known)]]]
    for each in setting["methods"]:
        cells = [
            each["name"] + (f" (tuned: {each['tuned']})" if each["tuned"] else ""),
            str(each["group"] + 1),
            _range(each["rank_interval"], "g"),
            f"{each['reached']}/{each['orderings']}",
            _with_interval(each["median"], each["median_interval"], "g"),
            _with_interval(each["restricted_mean"], each["restricted_mean_interval"], ".1f"),
            _improvement(each),
            "" if each["p_value_holm"] is None else format(each["p_value_holm"], ".2g"),
            format_number(each["onset"], "g"),
            *(format(each["accuracy_at"][at], ".1%") for at in known),
        ]
        rows.append([escape(cell) for cell in cells])
    return rows


def pair_rows(setting: dict[str, Any], escape: Escape = str) -> list[list[str]]:
    """Give the table of neighbouring pairs as it is shown."""
    header = ["better", "worse", "fewer samples", "p", "told apart", "orderings needed"]
    rows = [[escape(each) for each in header]]
    for pair in setting["pairs"]:
        cells = [
            pair["better"],
            pair["worse"],
            _with_interval(pair["difference"], pair["interval"], ".1f"),
            format(pair["p_value"], ".2g"),
            "yes" if pair["told_apart"] else "no",
            format_number(pair["orderings_needed"], "g"),
        ]
        rows.append([escape(cell) for cell in cells])
    return rows


def over_settings_rows(document: dict[str, Any], escape: Escape = str) -> list[list[str]]:
    """Give the table over all settings as it is shown."""
    rows = [[escape(each) for each in ("method", "interquartile mean", "mean rank")]]
    for each in document["over_settings"]["methods"]:
        cells = [
            each["name"],
            _with_interval(each["interquartile_mean"], each["interquartile_mean_interval"], ".2f"),
            _with_interval(each["mean_rank"], each["mean_rank_interval"], ".1f"),
        ]
        rows.append([escape(cell) for cell in cells])
    return rows


def sensitivity_rows(document: dict[str, Any], setting: dict[str, Any], escape: Escape = str) -> list[list[str]]:
    """Give the best method under each criterion and the agreement of the ranking with that of the leaderboard."""
    sensitivity = document["sensitivity"]
    cells = {(cell["threshold"], cell["consecutive"]): cell for cell in setting["grid"]}
    rows = [["threshold", *(f"{consecutive} in a row" for consecutive in sensitivity["consecutive"])]]
    for threshold in sensitivity["thresholds"]:
        row = [cells[threshold, consecutive] for consecutive in sensitivity["consecutive"]]
        shown = [_criterion_cell(cell) for cell in row]
        rows.append([f"{threshold:.0%}", *map(escape, shown)])
    return rows


def _criterion_cell(cell: dict[str, Any]) -> str:
    if not cell["order"]:
        return "–"
    cut = f", cut at {cell['restricted_at']}" if cell["undecided"] else ""
    return f"{cell['order'][0]} ({format_number(cell['tau'], '.2f')}{cut})"


def stability_rows(document: dict[str, Any], escape: Escape = str) -> list[list[str]]:
    """Give the table of setup stability as it is shown."""
    rows = [[escape(each) for each in ("part that varies", "setup stability", "pairs compared")]]
    for part in document["setup_stability"]["parts"]:
        cells = [part["part"], _with_interval(part["stability"], part["interval"], ".2f"), f"{part['compared']:,}"]
        rows.append([escape(cell) for cell in cells])
    return rows


def _known(setting: dict[str, Any], at: str) -> bool:
    return all(each["accuracy_at"][at] is not None for each in setting["methods"])


def _range(ends: Sequence[float | None] | None, form: str) -> str:
    if ends is None or ends == [None, None]:
        return ""
    low, high = (format_number(end, form) for end in ends)
    return low if low == high else f"{low} to {high}"


def _with_interval(value: float | None, ends: Sequence[float | None] | None, form: str) -> str:
    between = "" if ends is None or ends[0] is None else f" [{', '.join(format_number(end, form) for end in ends)}]"
    return f"{format_number(value, form)}{between}"


def _improvement(each: dict[str, Any]) -> str:
    if each["relative_improvement"] is None:
        return ""
    ends = each["relative_improvement_interval"]
    between = "" if ends is None else f" [{', '.join(str(round(end)) for end in ends)}]"
    return f"{round(each['relative_improvement'])} %{between}"


def _markdown(document: dict[str, Any]) -> str:
    lines = ["# Leaderboard", ""]
    for setting in document["settings"]:
        lines += [f"## {escape_markdown(setting['name'])}", "", escape_markdown(_criterion(setting)), ""]
        lines += [*markdown_table(setting_rows(setting, escape_markdown)), ""]
        if setting["pairs"]:
            lines += [*markdown_table(pair_rows(setting, escape_markdown)), ""]
        remarks = [f"{NOT_APART}: {', '.join(names)}." for names in setting["not_told_apart"] if len(names) > 1]
        lines += _list([*remarks, *setting["remarks"]])
    if document["over_settings"] is not None:
        lines += ["## Over settings", "", *markdown_table(over_settings_rows(document, escape_markdown)), ""]
        lines += _list(document["over_settings"]["remarks"])
    lines += ["## Sensitivity", ""]
    for setting in document["sensitivity"]["settings"]:
        lines += [f"### {escape_markdown(setting['name'])}", ""]
        lines += [*markdown_table(sensitivity_rows(document, setting, escape_markdown)), ""]
    if document["setup_stability"] is not None:
        lines += ["## Setup stability", "", *markdown_table(stability_rows(document, escape_markdown)), ""]
    if document["left_out"]:
        lines += ["## Left out", ""]
        lines += [
            f"- {escape_markdown(each['setting'])}: {escape_markdown(each['reason'])}" for each in document["left_out"]
        ]
        lines += [""]
    return "\n".join(lines)


def _list(remarks: Sequence[str]) -> list[str]:
    return [f"- {escape_markdown(remark)}" for remark in remarks] + [""] * bool(remarks)


def _criterion(setting: dict[str, Any]) -> str:
    return (
        f"{setting['threshold']:.0%} {setting['measure'].replace('_', ' ')} at {setting['consecutive']} evaluations in "
        f"a row; {len(setting['orderings'])} orderings; restricted at {setting['restricted_at']} samples"
    )


def _latex(document: dict[str, Any]) -> str:
    tables = [(setting["name"], setting_rows(setting, escape_latex)) for setting in document["settings"]]
    if document["over_settings"] is not None:
        tables.append(("Over settings", over_settings_rows(document, escape_latex)))
    lines = ["% \\usepackage{booktabs}"]
    for title, rows in tables:
        lines += [
            "\\begin{table}",
            f"\\caption{{{escape_latex(title)}}}",
            f"\\begin{{tabular}}{{l{'r' * (len(rows[0]) - 1)}}}",
        ]
        lines += ["\\toprule", f"{' & '.join(rows[0])} \\\\", "\\midrule"]
        lines += [f"{' & '.join(row)} \\\\" for row in rows[1:]]
        lines += ["\\bottomrule", "\\end{tabular}", "\\end{table}", ""]
    return "\n".join(lines)

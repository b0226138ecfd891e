"""Files of a leaderboard: JSON, CSV, Markdown and LaTeX, with every text in them escaped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from headstart.evaluation.leaderboard.tables import (
    TableRows,
    describe_criterion,
    over_settings_rows,
    pair_rows,
    sensitivity_rows,
    setting_rows,
    stability_rows,
)
from headstart.output.markup import escape_cell, escape_latex, escape_markdown, latex_tables
from headstart.output.printable import print_lines
from headstart.output.results_folder import ResultsFolder
from headstart.output.tables import markdown_table, print_table

NAME = "leaderboard"
FILES = [f"{NAME}.{kind}" for kind in ("json", "csv", "md", "tex")]
SETTING = (
    *("dataset", "backbone", "weights", "batch_size", "classes", "validation_size", "chance", "majority"),
    *("measure", "threshold", "consecutive", "restricted_at"),
)
NUMBERS = ("orderings", "reached", "median", "restricted_mean", "relative_improvement", "p_value", "p_value_holm")
INTERVALS = ("median_interval", "restricted_mean_interval", "relative_improvement_interval", "rank_interval")
# The tables of more settings are only written into files.
MOST_PRINTED = 4


def write_leaderboard(results: ResultsFolder, document: dict[str, Any], texts: Mapping[str, str] | None = None) -> None:
    """Write the files of a leaderboard.

    Args:
        results: Their folder.
        document: The content of `leaderboard.json`.
        texts: Contents of further files, by their names.
    """
    texts = {f"{NAME}.md": _markdown(document), f"{NAME}.tex": _latex(document), **(texts or {})}
    results.write(document, {NAME: _table(document)}, texts)


def print_leaderboard(document: dict[str, Any]) -> None:
    """Print the tables; those of settings only if they are few."""
    settings, over_settings = document["settings"], document["over_settings"]
    for setting in settings if len(settings) <= MOST_PRINTED else []:
        print_table(f"{setting['name']}\n{describe_criterion(setting)}", setting_rows(setting, accuracies=1))
        print_lines(setting["remarks"])
    if over_settings is not None:
        print_table(f"Over {len(over_settings['settings'])} settings", over_settings_rows(document))
        print_lines(over_settings["remarks"])
    if document["setup_stability"] is not None:
        print_table("Setup stability: agreement of the rankings where one part varies", stability_rows(document))
    print_lines([f"left out: {each['setting']} ({each['reason']})" for each in document["left_out"]])
    print_lines(document["remarks"])


def _table(document: dict[str, Any]) -> tuple[list[str], list[list[Any]]]:
    """Return the columns of the CSV file, and its rows: one for every method of every setting."""
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
    return columns, rows


def _markdown(document: dict[str, Any]) -> str:
    lines = ["# Leaderboard", ""]
    for setting in document["settings"]:
        lines += [f"## {escape_markdown(setting['name'])}", "", escape_markdown(describe_criterion(setting)), ""]
        lines += _markdown_table(setting_rows(setting))
        if setting["pairs"]:
            lines += _markdown_table(pair_rows(setting))
        remarks = [f"Not told apart: {', '.join(names)}." for names in setting["not_told_apart"] if len(names) > 1]
        lines += _list([*remarks, *setting["remarks"]])

    if document["over_settings"] is not None:
        lines += ["## Over settings", "", *_markdown_table(over_settings_rows(document))]
        lines += _list(document["over_settings"]["remarks"])
    lines += ["## Sensitivity", ""]
    for setting in document["sensitivity"]["settings"]:
        rows = sensitivity_rows(setting, document["sensitivity"]["consecutive"])
        lines += [f"### {escape_markdown(setting['name'])}", "", *_markdown_table(rows)]
    if document["setup_stability"] is not None:
        lines += ["## Setup stability", "", *_markdown_table(stability_rows(document))]
    if document["left_out"]:
        lines += ["## Left out", "", *_list([f"{each['setting']}: {each['reason']}" for each in document["left_out"]])]
    return "\n".join(lines)


def _markdown_table(rows: TableRows) -> list[str]:
    return [*markdown_table([[escape_markdown(cell) for cell in row] for row in rows]), ""]


def _list(remarks: Sequence[str]) -> list[str]:
    return [f"- {escape_markdown(remark)}" for remark in remarks] + [""] * bool(remarks)


def _latex(document: dict[str, Any]) -> str:
    tables = [(setting["name"], setting_rows(setting)) for setting in document["settings"]]
    if document["over_settings"] is not None:
        tables.append(("Over settings", over_settings_rows(document)))
    return latex_tables([(title, [[escape_latex(cell) for cell in row] for row in rows]) for title, rows in tables])

"""The files of a leaderboard: JSON, CSV, Markdown and LaTeX, with every text in them escaped."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from headstart.evaluation.leaderboard.tables import (
    describe_criterion,
    over_settings_rows,
    pair_rows,
    sensitivity_rows,
    setting_rows,
    stability_rows,
)
from headstart.output.markup import csv_text, escape_cell, escape_latex, escape_markdown, latex_tables
from headstart.output.printable import print_lines
from headstart.output.tables import markdown_table, print_table

JSON, CSV, MARKDOWN, TEX = (f"leaderboard.{kind}" for kind in ("json", "csv", "md", "tex"))
SETTING = (
    *("dataset", "backbone", "weights", "batch_size", "classes", "validation_size", "chance", "majority"),
    *("measure", "threshold", "consecutive", "restricted_at"),
)
NUMBERS = ("orderings", "reached", "median", "restricted_mean", "relative_improvement", "p_value", "p_value_holm")
INTERVALS = ("median_interval", "restricted_mean_interval", "relative_improvement_interval", "rank_interval")
NOT_APART = "Not told apart"
# More tables than these are left to the files.
MOST_PRINTED = 4


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
        print_table(f"{setting['name']}\n{describe_criterion(setting)}", setting_rows(setting, accuracies=1))
        print_lines(setting["remarks"])
    if document["over_settings"] is not None:
        print_table(f"Over {len(document['over_settings']['settings'])} settings", over_settings_rows(document))
        print_lines(document["over_settings"]["remarks"])
    if document["setup_stability"] is not None:
        print_table("Setup stability: agreement of the rankings where one part varies", stability_rows(document))
    print_lines([f"left out: {each['setting']} ({each['reason']})" for each in document["left_out"]])
    print_lines(document["remarks"])


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


def _markdown(document: dict[str, Any]) -> str:
    lines = ["# Leaderboard", ""]
    for setting in document["settings"]:
        lines += [f"## {escape_markdown(setting['name'])}", "", escape_markdown(describe_criterion(setting)), ""]
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


def _latex(document: dict[str, Any]) -> str:
    tables = [(setting["name"], setting_rows(setting, escape_latex)) for setting in document["settings"]]
    if document["over_settings"] is not None:
        tables.append(("Over settings", over_settings_rows(document, escape_latex)))
    return latex_tables(tables)

"""Tables of a leaderboard, printed and written as JSON, CSV, Markdown and LaTeX, with every text in them escaped."""

from collections.abc import Mapping, Sequence
from typing import Any

from headstart.evaluation.estimates import format_estimate
from headstart.evaluation.leaderboard.axis_tables import axis_rows, kinds, plot_axis
from headstart.evaluation.leaderboard.budget_tables import (
    TableRows,
    budget_tables,
    budgets_latex,
    budgets_over_settings_rows,
    budgets_title,
    counts_classes,
    csv_cells,
    csv_header,
)
from headstart.output.markup import escape_cell, escape_latex, escape_markdown, latex_tables
from headstart.output.printable import print_lines, printable
from headstart.output.results_folder import FIGURE_FORMATS, FigureFormat, ResultsFolder
from headstart.output.tables import format_number, markdown_table, print_table

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


def write_leaderboard(
    results: ResultsFolder,
    document: dict[str, Any],
    texts: Mapping[str, str] | None = None,
    figure_formats: Sequence[FigureFormat] = FIGURE_FORMATS,
) -> None:
    """Write the files of a leaderboard.

    Args:
        results: Their folder.
        document: The content of `leaderboard.json`.
        texts: Contents of further files, by their names.
        figure_formats: File formats of the figures of an axis.
    """
    texts = {f"{NAME}.md": _markdown(document), f"{NAME}.tex": _latex(document), **(texts or {})}
    axis = document["axis"]
    titles = kinds(axis) if axis is not None else []
    names = ("axis", "axis_accuracy")
    figures = {name: plot_axis(axis, *kind) for name, kind in zip(names, titles, strict=False)}
    results.write(document, {NAME: leaderboard_table(document)}, texts, figures, figure_formats)


def print_leaderboard(document: dict[str, Any]) -> None:
    """Print the tables; those of settings only if they are few."""
    settings = document["settings"]
    print_lines(_warnings(document))
    for setting in settings if len(settings) <= MOST_PRINTED else []:
        rows = _setting_rows(setting, accuracies=1)
        title = f"{setting['name']}\n{_describe_criterion(setting)}"
        print_table(title, rows, optional=[rows[0][-1], "onset", "p", "reached", "median", "improvement"])
        for title, rows in budget_tables(setting):
            print_table(title, rows)
        print_lines([*_warnings(setting), *setting["remarks"]])
    for number, (title, rows, remarks) in enumerate(_tables_over_settings(document)):
        print_table(title, rows)
        # Those of the second table stand above.
        print_lines(remarks if number == 0 else [])
    for title, rows in _axis_tables(document):
        print_table(title, rows)
    if document["setup_stability"] is not None:
        print_table("Setup stability: agreement of the rankings where one part varies", stability_rows(document))
    print_lines([f"left out: {each['setting']} ({each['reason']})" for each in document["left_out"]])
    print_lines(document["remarks"])


def leaderboard_table(document: Mapping[str, Any]) -> tuple[list[str], list[list[Any]]]:
    """Return the columns of the CSV file, and its rows: one for every method of every setting.

    Args:
        document: The content of `leaderboard.json`.
    """
    accuracies = document["settings"][0]["methods"][0]["accuracy_at"]
    columns = ["setting", "warnings", *SETTING, "method", "class", "tuned", *NUMBERS]
    columns += [f"{name}_{end}" for name in INTERVALS for end in ("low", "high")]
    asked, has_balanced = document["asked"], counts_classes(document["settings"])
    columns += ["onset", "group", *(f"accuracy_at_{at}" for at in accuracies), *csv_header(asked, has_balanced)]

    rows = []
    for setting in document["settings"]:
        for each in setting["methods"]:
            row = [setting["name"], " ".join(setting["warnings"]), *(setting[key] for key in SETTING)]
            row += [each[key] for key in ("name", "class", "tuned")]
            row += [each[key] for key in NUMBERS]
            row += [end for key in INTERVALS for end in each[key] or (None, None)]
            row += [each["onset"], each["group"], *(each["accuracy_at"][at] for at in accuracies)]
            row += csv_cells(setting, each["name"], asked, has_balanced)
            rows.append([escape_cell(value) for value in row])
    return columns, rows


def _markdown(document: dict[str, Any]) -> str:
    lines = ["# Leaderboard", "", *_list(_warnings(document))]
    for setting in document["settings"]:
        lines += [f"## {escape_markdown(setting['name'])}", "", escape_markdown(_describe_criterion(setting)), ""]
        lines += _markdown_table(_setting_rows(setting))
        if setting["pairs"]:
            lines += _markdown_table(_pair_rows(setting))
        for title, rows in budget_tables(setting):
            lines += [f"{title}:", "", *_markdown_table(rows)]
        groups = [names for names in setting["not_told_apart"] if len(names) > 1]
        remarks = [f"No significant difference: {', '.join(names)}." for names in groups]
        lines += _list([*_warnings(setting), *remarks, *setting["remarks"]])

    for title, rows, notes in _tables_over_settings(document):
        lines += [f"## {title}", "", *_markdown_table(rows), *_list(notes)]
    for title, rows in _axis_tables(document):
        lines += [f"## {escape_markdown(title)}", "", *_markdown_table(rows)]
    for panel in (document["axis"] or {"panels": []})["panels"]:
        lines += _list([*_warnings(panel), *panel["remarks"]])

    lines += ["## Sensitivity", ""]
    for setting in document["sensitivity"]["settings"]:
        rows = _sensitivity_rows(setting, document["sensitivity"]["consecutive"])
        lines += [f"### {escape_markdown(setting['name'])}", "", *_markdown_table(rows)]
    if document["setup_stability"] is not None:
        lines += ["## Setup stability", "", *_markdown_table(stability_rows(document))]
    if document["left_out"]:
        lines += ["## Left out", "", *_list([f"{each['setting']}: {each['reason']}" for each in document["left_out"]])]
    return "\n".join(lines)


def _tables_over_settings(document: Mapping[str, Any]) -> list[tuple[str, TableRows, Sequence[str]]]:
    """Return titles, rows and remarks of the tables over settings: of samples to criterion, and of label budgets."""
    over, budgets, tables = document["over_settings"], document["label_budgets"], []
    if over is not None:
        tables.append((f"Over {over['of']}", over_settings_rows(document), over["remarks"]))
    if budgets is not None:
        tables.append((budgets_title(budgets), budgets_over_settings_rows(budgets), budgets["remarks"]))
    return tables


def _axis_tables(document: Mapping[str, Any]) -> list[tuple[str, TableRows]]:
    """Return titles and rows of the tables of an axis; none without one."""
    axis = document["axis"]
    if axis is None:
        return []
    return [
        (f"{panel['name']}: {title}", axis_rows(axis, panel, labels))
        for title, labels in kinds(axis)
        for panel in axis["panels"]
    ]


def _markdown_table(rows: TableRows) -> list[str]:
    return [*markdown_table([[escape_markdown(cell) for cell in row] for row in rows]), ""]


def _list(remarks: Sequence[str]) -> list[str]:
    return [f"- {escape_markdown(remark)}" for remark in remarks] + [""] * bool(remarks)


def _warnings(document: Mapping[str, Any]) -> list[str]:
    """Return the warnings of a leaderboard, or of one of its settings."""
    return [f"WARNING: {warning}" for warning in document["warnings"]]


def _latex(document: dict[str, Any]) -> str:
    tables = [(setting["name"], _setting_rows(setting)) for setting in document["settings"]]
    if document["over_settings"] is not None:
        tables.append((f"Over {document['over_settings']['of']}", over_settings_rows(document)))
    # Those of a setting have its intervals, too.
    listed = [f"{setting['name']}: {line}" for setting in document["settings"] for line in _warnings(setting)]
    warnings = [f"% {printable(each)}\n" for each in listed]
    tables += _axis_tables(document)
    escaped = [(title, [[escape_latex(cell) for cell in row] for row in rows]) for title, rows in tables]
    budgets = document["label_budgets"]
    return "".join(warnings) + latex_tables(escaped) + ("" if budgets is None else budgets_latex(budgets))


def _describe_criterion(setting: dict[str, Any]) -> str:
    """Return the criterion of a setting, the accuracy by chance, the number of orderings and the limit."""
    measure = setting["measure"].replace("_", " ")
    shares = (("chance", setting["chance"]), ("largest class", setting["majority"]))
    known = [f"{title} {share:.0%}" for title, share in shares if share is not None]
    threshold = f"{setting['threshold']:.0%} {measure}" + (f" ({', '.join(known)})" if known else "")
    return (
        f"{threshold} at {setting['consecutive']} evaluations in a row; {len(setting['orderings'])} orderings; "
        f"restricted at {setting['restricted_at']} samples"
    )


def _setting_rows(setting: dict[str, Any], accuracies: int | None = None) -> TableRows:
    """Return the table of a setting, with a row for each method.

    Args:
        setting: The setting.
        accuracies: Number of accuracies, the last ones; all by default.
    """
    methods = setting["methods"]
    known = [at for at in methods[0]["accuracy_at"] if all(each["accuracy_at"][at] is not None for each in methods)]
    known = known if accuracies is None else known[-accuracies:]

    header = ["method", "group", "rank", "reached", "median", "restricted mean", "improvement", "p", "onset"]
    rows = [[*header, *(f"accuracy at {at}" for at in known)]]
    for each in methods:
        rows.append(
            [
                each["name"] + (f" (tuned: {each['tuned']})" if each["tuned"] else ""),
                each["group"],
                _range(each["rank_interval"]),
                f"{each['reached']}/{each['orderings']}",
                # Samples to criterion, and their comparison with the baseline.
                format_estimate(each["median"], each["median_interval"], "g"),
                format_estimate(each["restricted_mean"], each["restricted_mean_interval"], ".1f"),
                _improvement(each["relative_improvement"], each["relative_improvement_interval"]),
                "" if each["p_value_holm"] is None else format(each["p_value_holm"], ".2g"),
                format_number(each["onset"], "g"),
                *(format(each["accuracy_at"][at], ".1%") for at in known),
            ]
        )
    return rows


def _pair_rows(setting: dict[str, Any]) -> TableRows:
    """Return the table of neighbouring pairs."""
    rows = [["better", "worse", "fewer samples", "p", "significant", "orderings needed"]]
    for pair in setting["pairs"]:
        rows.append(
            [
                pair["better"],
                pair["worse"],
                format_estimate(pair["difference"], pair["interval"], ".1f"),
                format(pair["p_value"], ".2g"),
                "yes" if pair["told_apart"] else "no",
                format_number(pair["orderings_needed"], "g"),
            ]
        )
    return rows


def over_settings_rows(document: Mapping[str, Any]) -> TableRows:
    """Return the table over all settings.

    Args:
        document: The content of `leaderboard.json`, with `over_settings`.
    """
    rows = [["method", "interquartile mean", "mean rank"]]
    for each in document["over_settings"]["methods"]:
        mean = format_estimate(each["interquartile_mean"], each["interquartile_mean_interval"], ".2f")
        rank = format_estimate(each["mean_rank"], each["mean_rank_interval"], ".1f")
        rows.append([each["name"] + " (tuned)" * each["tuned"], mean, rank])
    return rows


def _sensitivity_rows(setting: dict[str, Any], consecutive: Sequence[int]) -> TableRows:
    """Return the best method under each criterion, with the agreement of its ranking with that of the leaderboard."""
    cells: dict[float, list[str]] = {}
    for each in setting["grid"]:
        cut = f", cut at {each['restricted_at']}" if each["undecided"] else ""
        best = f"{each['order'][0]} ({format_number(each['tau'], '.2f')}{cut})" if each["order"] else "–"
        cells.setdefault(each["threshold"], []).append(best)
    header = ["threshold", *(f"{length} in a row" for length in consecutive)]
    return [header, *([f"{100 * threshold:g}%", *row] for threshold, row in cells.items())]


def stability_rows(document: Mapping[str, Any]) -> TableRows:
    """Return the table of setup stability.

    Args:
        document: The content of `leaderboard.json`, with `setup_stability`.
    """
    rows = [["part that varies", "setup stability", "pairs compared"]]
    for part in document["setup_stability"]["parts"]:
        stability = format_estimate(part["stability"], part["interval"], ".2f")
        rows.append([part["part"], stability, f"{part['compared']:,}"])
    return rows


def _range(ends: Sequence[int]) -> str:
    low, high = ends
    return f"{low}" if low == high else f"{low} to {high}"


def _improvement(value: float | None, ends: Sequence[float] | None) -> str:
    if value is None:
        return ""
    between = "" if ends is None else f" [{', '.join(str(round(end)) for end in ends)}]"
    return f"{round(value)} %{between}"

"""`headstart published`: published tables, read, checked against what is known of them, and audited."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from headstart.evaluation.audit.audit import audit
from headstart.evaluation.published.register import TABLES, PublishedTable, find_files, readable_table, version_warning
from headstart.evaluation.published.static_order import write_static_order
from headstart.output.errors import UserError
from headstart.output.files import output_folder
from headstart.output.printable import print_lines
from headstart.output.results_folder import FIGURE_FORMATS, FigureFormat

ALL = "all"
# The figures of the register are given to three digits.
SAME = 5e-4 + 1e-9


def published(
    name: str | None = None,
    list: bool = False,  # noqa: A002 - the name of the option
    file: str | None = None,
    output: str = "runs/published",
    figure_formats: list[FigureFormat] = FIGURE_FORMATS,
    logger: bool = True,
    overwrite: bool = False,
) -> dict[str, Any]:
    """Download published tables of accuracies, check them against the figures that are known, and audit them.

    Writes the results of headstart audit into a folder of each table. For `all` also static_order.json,
    static_order.md, static_order.csv and a figure: how much of each table is one fixed order of the models.

    Args:
        name: The table, or `all`.
        list: Whether to list the tables, with their citations and addresses.
        file: Local copy in place of a download: the table's file, or a folder in which the listed files lie.
        output: Folder for the results; each table has one of its own in it.
        figure_formats: File formats of the figures, such as '[png, pdf, svg]'.
        logger: Whether to mirror the results in Weights & Biases.
        overwrite: Replace results of another configuration that lie in the folder.

    Returns:
        The content of audit.json, and the `warnings` about its figures, by the names of the tables.
    """
    if list or name is None:
        print_lines(line for key, table in TABLES.items() for line in _describe(key, table))
        return {}
    if name not in (*TABLES, ALL):
        raise UserError(f"name: {name!r} is no published table; there are {', '.join(TABLES)}, and {ALL}")
    local = Path(file).expanduser() if file else None
    if name == ALL and local and not local.is_dir():
        raise UserError(f"file: {file} given; for {ALL} tables give a folder with the files of all")

    documents = {}
    for key in TABLES if name == ALL else [name]:
        folder = output_folder("output", str(Path(output) / key))
        options = {"figure_formats": figure_formats, "logger": logger, "overwrite": overwrite}
        documents[key] = _audit(TABLES[key], local, folder, **options)
    if name == ALL:
        write_static_order(documents, Path(output), figure_formats, overwrite)
    return documents


def _describe(name: str, table: PublishedTable) -> list[str]:
    files = [f"    {file.name}: {file.url}" for file in table.files]
    return [f"{name}: {table.title}", f"    {table.citation}", *files]


def _audit(table: PublishedTable, local: Path | None, folder: Path, **options: Any) -> dict[str, Any]:
    """Audit a table, and say how its figures differ from those of the register."""
    paths = find_files(table, local)
    readable, note = readable_table(table, paths, folder)
    checked = {**paths, table.file.name: readable} if table.file.variable else paths
    warnings = [warning for file in table.files if (warning := version_warning(file, checked[file.name]))]
    document = audit(str(readable), output=str(folder), **table.options, **options)

    warnings += _differences(table, document)
    notes = [note] * bool(note)
    print_lines(warnings or [f"As expected: all {len(table.expected)} figures are those of the register."])
    print_lines([*notes, f"Cite: {table.citation}"])
    return {**document, "notes": [*notes, *document["notes"]], "warnings": warnings}


def _differences(table: PublishedTable, document: Mapping[str, Any]) -> "list[str]":
    """Return a warning for each figure of an audit that is not that of the register."""
    ranked = document["ranks"]["sources"].values()
    figures = {
        **{kind: len(document[kind]) for kind in ("sources", "targets")},
        "cells": sum(rank is not None for source in ranked for rank in source["per_target"].values()),
        **{ranker: its["weighted_kendall"]["mean"] for ranker, its in document["rankers"].items()},
    }
    return [
        f"WARNING: {figure} is {figures.get(figure)} here and {value} in the register."
        for figure, value in table.expected.items()
        if figures.get(figure) is None or abs(figures[figure] - value) > SAME
    ]

"""`headstart sources-report`: how well every metric foretells the performances of sources on every target."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from headstart.evaluation.sources_report.document import csv_tables, describe
from headstart.evaluation.sources_report.files import latex_report, markdown_report, print_report
from headstart.evaluation.stability.table import read_table
from headstart.evaluation.tables import csv_text
from headstart.output.dashboard import Dashboard, Result, check_dashboard, publish
from headstart.output.errors import require_different
from headstart.output.files import output_folder, refuse_other_results, write_texts
from headstart.output.printable import print_written

JSON, MARKDOWN, TEX = (f"sources_report.{kind}" for kind in ("json", "md", "tex"))
CSV_FILES = {"over_targets": "over_targets.csv", "by_target": "by_target.csv"}


def sources_report(
    table: str,
    metrics: list[str] | None = None,
    columns: dict[str, str] | None = None,
    performances: str | None = None,
    exclude_target: bool = True,
    trainable: bool = True,
    output: str = "runs/sources_report",
    overwrite: bool = False,
    logger: bool = True,
    dashboard: Dashboard = Dashboard(),  # noqa: B008 - frozen
) -> dict[str, Any]:
    """Tabulate how well every metric foretells the performances of all sources, by four measures on every target.

    Writes sources_report.json, sources_report.md, sources_report.tex, over_targets.csv and by_target.csv, and prints
    the table. What the numbers mean stands in docs/sources_report.md.

    Args:
        table: CSV file as `stability` takes it.
        metrics: Metrics to report, by their names in the table; by default all. Those that give all sources of every
            target the same score are left out, with a line that says so.
        columns: Names of columns in the file where they are others: '{source: Model, target: Dataset}'.
        performances: CSV file with the columns source, target and performance, such as `headstart performances`
            writes, in place of the table's own, which then needs no such column.
        exclude_target: Whether the cell of a target with the source of the same name is left out.
        trainable: Which rows count in a table with the column `Trainable Backbone`: those of fine-tuning the whole
            network, or with false those of training the head alone.
        output: Folder for the results.
        overwrite: Replace results of another configuration that lie in the folder.
        logger: Whether to mirror the result in Weights & Biases.
        dashboard: Where it is mirrored.

    Returns:
        What sources_report.json holds.
    """
    if metrics is not None:
        require_different("metrics", metrics)
    folder = output_folder("output", output)
    if logger:
        check_dashboard(dashboard)
    cells = read_table(Path(table), trainable, exclude_target, metrics, columns, least=1, performances=performances)
    settings = {"columns": columns, "exclude_target": exclude_target, "trainable": trainable}
    made_from = {**settings, "metrics": cells.metrics, "table/sha256": cells.sha256}
    refuse_other_results([folder / name for name in (JSON, MARKDOWN, TEX, *CSV_FILES.values())], made_from, overwrite)
    document = {
        **settings,
        **describe(cells),
        "remarks": cells.remarks(),
        "table": {"path": table, "sha256": cells.sha256},
        "performances": performances,
    }
    tables = csv_tables(document)
    texts = {MARKDOWN: markdown_report(document), TEX: latex_report(document)}
    texts |= {CSV_FILES[name]: csv_text(*rows) for name, rows in tables.items()}
    texts[JSON] = json.dumps(document, indent=1, allow_nan=False) + "\n"
    files = write_texts(folder, texts)
    print_report(document)
    print_written(files)
    if logger:
        sizes = f"{len(cells.metrics)} metrics, {len(cells.sources)} sources, {len(cells.targets)} targets"
        result = Result(
            "sources-report", f"sources report, {sizes}", {"table": table, **settings}, document, tables, files
        )
        publish(dashboard, result, folder)
    return document

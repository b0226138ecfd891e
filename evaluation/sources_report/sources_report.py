"""`headstart sources-report`: how well every metric predicts the performances of sources on every target."""

from __future__ import annotations

from typing import Any

from headstart.evaluation.sources_report.document import csv_tables, describe
from headstart.evaluation.sources_report.tables import latex_text, markdown_text, print_report
from headstart.evaluation.table_results import TableResults

JSON, MARKDOWN, TEX, *_ = FILES = (
    *(f"sources_report.{kind}" for kind in ("json", "md", "tex")),
    "over_targets.csv",
    "by_target.csv",
)


def sources_report(table: str, **options: Any) -> dict[str, Any]:
    """Tabulate how well every metric predicts the performances of all sources, by four measures on every target.

    Writes sources_report.json, sources_report.md, sources_report.tex, over_targets.csv and by_target.csv, and prints
    the table. What the numbers mean stands in docs/sources_report.md.

    Args:
        table: CSV file as `stability` takes it.
        **options: Options of `TableResults`.

    Returns:
        What sources_report.json holds.
    """
    results = TableResults("runs/sources_report", FILES, table, least=1, **options)
    settings = {
        "columns": results.columns,
        "exclude_target": results.exclude_target,
        "trainable": results.trainable,
    }
    results.check_settings(settings)

    document = {**settings, **describe(results.table), "remarks": results.table.remarks(), **results.origin}
    tables = csv_tables(document)
    texts = {MARKDOWN: markdown_text(document), TEX: latex_text(document)}
    results.write(document, tables, texts)

    print_report(document)
    results.print_written()
    results.publish_table("sources-report", settings, document, tables)
    return document

"""`headstart audit`: whether scores predict performances better than a fixed order of the models."""

import time
from typing import Any

from headstart.evaluation.audit.figures import plot_audit
from headstart.evaluation.audit.findings import audit_table, csv_tables, effects_of_holes
from headstart.evaluation.audit.rankers import MEAN_RANK
from headstart.evaluation.audit.tables import markdown_text, print_audit
from headstart.evaluation.table_results import TableResults
from headstart.output.errors import UserError
from headstart.output.printable import say
from headstart.output.results_folder import FIGURE_FORMATS, FigureFormat

JSON, REPORT, *_ = FILES = ("audit.json", "report.md", "rankers.csv", "left_out.csv", "ranks.csv")


def audit(
    table: str | dict[str, str],
    figure_formats: list[FigureFormat] = FIGURE_FORMATS,
    **options: Any,
) -> dict[str, Any]:
    """Evaluate how well one fixed ranking of the models predicts a table of performances, and what metrics add to it.

    Ranks the sources of each target by their mean rank on the other targets, and by every metric. Writes
    audit.json, report.md, three CSV tables and the figures, and prints the report.

    Args:
        table: CSV or Parquet file as for `stability`, or '{birds: birds.csv, cars: cars.csv}'. The columns source,
            target and performance suffice.
        figure_formats: File formats of the figures, such as '[png, pdf, svg]'.
        **options: Options of `TableResults`.

    Returns:
        The content of audit.json.
    """
    start = time.perf_counter()
    results = TableResults("runs/audit", FILES, table, minimum=0, **options)
    cells = results.table
    if len(cells.targets) < 2:
        raise UserError(f"table: {cells.targets[0]!r} is the only target; two or more are compared")
    if MEAN_RANK in cells.metrics:
        raise UserError(f"table: the audit has a ranker {MEAN_RANK} of its own; rename that metric, or leave it out")
    results.check_settings(results.reading)

    document = {
        **results.reading,
        **audit_table(cells),
        "holes": effects_of_holes(results.whole),
        "left_out": cells.left_out,
        "notes": cells.notes,
        "ignored_columns": cells.ignored_columns,
        **results.origin,
        "seconds": time.perf_counter() - start,
    }
    tables = csv_tables(document)
    results.write(document, tables, {REPORT: markdown_text(document)}, plot_audit(document), figure_formats)

    print_audit(document)
    if cells.ignored_columns:
        say(f"columns of the table that were not needed: {', '.join(cells.ignored_columns)}")
    results.print_written()
    results.publish_table("audit", results.reading, document, tables)
    return document

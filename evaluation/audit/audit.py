"""`headstart audit`: whether scores predict performances better than a fixed order of the models."""

import time
from pathlib import Path
from typing import Any

from jsonargparse.typing import PositiveInt

from headstart.evaluation.audit.figures import plot_audit
from headstart.evaluation.audit.findings import audit_table, csv_tables
from headstart.evaluation.audit.hole_effects import effects_of_holes
from headstart.evaluation.audit.rankers import read_facts, require_distinct, varying_facts
from headstart.evaluation.audit.tables import markdown_text, print_audit
from headstart.evaluation.stability.study import choose_pool_size
from headstart.evaluation.table_results import TableResults
from headstart.metrics.ranking.pools import choose_pools
from headstart.output.errors import UserError
from headstart.output.files import digest_file
from headstart.output.printable import say
from headstart.output.results_folder import FIGURE_FORMATS, FigureFormat
from headstart.output.seeds import Seed

JSON, REPORT, *_ = FILES = (
    *("audit.json", "report.md", "rankers.csv", "left_out.csv", "ranks.csv", "fidelity.csv", "helpful_pools.csv"),
)


def audit(
    table: str | dict[str, str],
    facts: str | None = None,
    pool_size: PositiveInt | None = None,
    pools: PositiveInt | None = None,
    seed: Seed = 0,
    figure_formats: list[FigureFormat] = FIGURE_FORMATS,
    **options: Any,
) -> dict[str, Any]:
    """Evaluate how well one fixed ranking of the models predicts a table of performances, and what metrics add to it.

    Ranks the sources of each target by their mean rank on the other targets, by `facts`, and by every metric. Writes
    audit.json, report.md, five CSV tables and the figures, and prints the report.

    Args:
        table: CSV or Parquet file as for `stability`, or '{birds: birds.csv, cars: cars.csv}'. The columns source,
            target and performance suffice.
        facts: CSV file of facts about the sources. It has the column source, and any of parameters, accuracy (on the
            training task of the source) and family.
        pool_size: Sources in a pool, for setup stability and win rates. Every subset of this size is a pool. By default
            70 % of the sources that a target has, rounded.
        pools: Pools to draw if there are more. Estimates then have a standard error. By default up to a million pools
            are all studied. From more, 10,000 are drawn, or 1,000 for a large table.
        seed: Seed of the pools that are drawn.
        figure_formats: File formats of the figures, such as '[png, pdf, svg]'.
        **options: Options of `TableResults`.

    Returns:
        The content of audit.json.
    """
    start = time.perf_counter()
    results = TableResults("runs/audit", FILES, table, least=0, **options)
    cells = results.table
    if len(cells.targets) < 2:
        raise UserError(f"table: {cells.targets[0]!r} is the only target; two or more are compared")
    known, constant = varying_facts(read_facts(Path(facts) if facts else None, cells.sources))
    require_distinct(cells, known)
    size = choose_pool_size(cells, int(pool_size) if pool_size else None)
    studied = choose_pools(cells.scores, size, int(pools) if pools else None, int(seed))

    settings = {
        **results.reading,
        "pool_size": size,
        **studied.settings,
    }
    facts_digest = digest_file(Path(facts)) if facts else None
    results.check_settings(settings, {"facts/sha256": facts_digest})

    findings, not_computed = audit_table(cells, known, studied)
    document = {
        **settings,
        **findings,
        "whole": {"sources": len(results.whole.sources), "targets": len(results.whole.targets)},
        "holes": effects_of_holes(results.whole),
        "left_out": cells.left_out | constant,
        "notes": cells.notes,
        "ignored_columns": cells.ignored_columns,
        "not_computed": not_computed,
        **results.origin,
        "facts": {"path": facts, "sha256": facts_digest},
        "seconds": time.perf_counter() - start,
    }
    tables = csv_tables(document)
    results.write(document, tables, {REPORT: markdown_text(document)}, plot_audit(document), figure_formats)

    print_audit(document)
    if cells.ignored_columns:
        say(f"columns of the table that were not needed: {', '.join(cells.ignored_columns)}")
    results.print_written()
    results.publish_table("audit", settings, document, tables)
    return document

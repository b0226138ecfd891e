"""`headstart audit`: whether a table of scores and performances tells more than a fixed order of the models."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
from jsonargparse.typing import NonNegativeFloat, PositiveInt

from headstart.evaluation.audit.document import csv_tables, describe
from headstart.evaluation.audit.facts import read_facts
from headstart.evaluation.audit.figures import draw_figures
from headstart.evaluation.audit.findings import MOST_LEFT_OUT, MOST_OUTCOMES, Findings, audit_table
from headstart.evaluation.audit.rankers import require_distinct, telling
from headstart.evaluation.audit.report import audit_report, print_audit
from headstart.evaluation.stability.study import choose_pool_size
from headstart.evaluation.stability.table import read_table
from headstart.output.dashboard import Dashboard, Result, check_dashboard, publish
from headstart.output.errors import UserError, reason_of, require_different
from headstart.output.files import digest_file, output_folder, refuse_other_results, write_texts
from headstart.output.markup import csv_text
from headstart.output.printable import print_written, say

JSON, REPORT = "audit.json", "report.md"


def audit(
    table: str,
    facts: str | None = None,
    metrics: list[str] | None = None,
    columns: dict[str, str] | None = None,
    performances: str | None = None,
    pool_size: PositiveInt | None = None,
    exclude_target: bool = True,
    trainable: bool = True,
    tie_tolerance: NonNegativeFloat = 1e-12,
    output: str = "runs/audit",
    overwrite: bool = False,
    logger: bool = True,
    dashboard: Dashboard = Dashboard(),  # noqa: B008 - frozen
) -> dict[str, Any]:
    """Say how far a table of performances is foretold by a fixed order of the models, and what metrics add to it.

    Ranks the sources of each target by their mean rank on the other targets, by the facts that are given, and by every
    metric of the table. Writes audit.json, report.md, three CSV tables and the figures, and prints the report.

    Args:
        table: CSV file as `stability` takes it; source, target and performance are enough.
        facts: CSV file of facts about the sources: source, and any of parameters, accuracy (on what they were trained
            on) and family.
        metrics: Metrics to audit, by their names in the table; by default all. Those that give all sources of every
            target the same score are left out, with a line that says so.
        columns: Names of columns in the file where they are others: '{source: Model, target: Dataset}'.
        performances: CSV file with the columns source, target and performance, such as `headstart performances`
            writes, in place of the table's own, which then needs no such column.
        pool_size: Sources in a pool, for setup stability and win rates, over every subset of this size. By default 70 %
            of the sources that a target has, rounded.
        exclude_target: Whether the cell of a target with the source of the same name is left out.
        trainable: Which rows count in a table with the column `Trainable Backbone`: those of fine-tuning the whole
            network, or with false those of training the head alone.
        tie_tolerance: Rankers whose measures differ by no more are tied in the study of pools.
        output: Folder for the results.
        overwrite: Replace results of another configuration that lie in the folder.
        logger: Whether to mirror the result in Weights & Biases.
        dashboard: Where it is mirrored.

    Returns:
        What audit.json holds.
    """
    start = time.perf_counter()
    if metrics is not None:
        require_different("metrics", metrics)
    folder = output_folder("output", output)
    if logger:
        check_dashboard(dashboard)
    cells = read_table(Path(table), trainable, exclude_target, metrics, columns, least=0, performances=performances)
    if len(cells.targets) < 2:
        raise UserError(f"table: {cells.targets[0]!r} is the only target; two or more are compared")
    known, same = telling(read_facts(Path(facts) if facts else None, cells.sources))
    require_distinct(cells, known)
    size = choose_pool_size(cells, int(pool_size) if pool_size else None)
    settings = {
        "columns": columns,
        "pool_size": size,
        "exclude_target": exclude_target,
        "trainable": trainable,
        "tie_tolerance": float(tie_tolerance),
    }
    digests = {"table/sha256": cells.sha256, "facts/sha256": digest_file(Path(facts)) if facts else None}
    made_from = {**settings, "metrics": cells.metrics, **digests}
    names = [JSON, REPORT, *(f"{name}.csv" for name in ("rankers", "left_out", "ranks"))]
    refuse_other_results([folder / name for name in names], made_from, overwrite)
    found = audit_table(cells, known, size, float(tie_tolerance))
    document = {
        **settings,
        **describe(found),
        "left_out": cells.left_out | same,
        "ignored_columns": cells.ignored_columns,
        "not_computed": _not_computed(found),
        "table": {"path": table, "sha256": cells.sha256},
        "performances": performances,
        "facts": {"path": facts, "sha256": digests["facts/sha256"]},
        "seconds": time.perf_counter() - start,
    }
    tables = csv_tables(document)
    texts = {f"{name}.csv": csv_text(*table) for name, table in tables.items()} | {REPORT: audit_report(document)}
    texts[JSON] = json.dumps(document, indent=1, allow_nan=False) + "\n"
    try:
        drawn = draw_figures(document, folder)
    except OSError as error:
        raise UserError(f"output: {output!r} cannot be written ({reason_of(error)}); choose another folder") from error
    files = [*drawn, *write_texts(folder, texts)]
    print_audit(document)
    if cells.ignored_columns:
        say(f"columns of the table that were not needed: {', '.join(cells.ignored_columns)}")
    print_written(files)
    if logger:
        title = f"audit, {len(cells.metrics)} metrics, {len(cells.sources)} sources, {len(cells.targets)} targets"
        publish(dashboard, Result("audit", title, {"table": table, **settings}, document, tables, files), folder)
    return document


def _not_computed(found: Findings) -> list[str]:
    """Say why there is no setup stability, or no win rates."""
    metrics, rankers = found.table.metrics, found.rankers.names
    sources, outcomes = len(found.table.sources), found.pools * len(found.table.targets) * len(rankers)
    many = f"the pools of {found.pool_size} of {sources} sources are too many for an audit"
    missing = {
        f"leave one model out: {sources} sources are too many for an audit of {len(found.table.targets)} targets and "
        f"{len(rankers)} rankers": found.rankers.scores.size > MOST_LEFT_OUT,
        "setup stability: it compares two metrics or more": found.stability is None and len(metrics) < 2,
        "win rates: they compare two rankers or more": found.wins is None and len(rankers) < 2,
        "win rates: a source has no mean rank, for want of other targets": not np.isfinite(found.elsewhere).all(),
        f"setup stability or win rates: {many}; choose another pool_size, or run stability, which does them all": (
            outcomes > MOST_OUTCOMES
        ),
    }
    return [f"No {what}." for what, here in missing.items() if here]

"""`headstart audit`: whether scores predict performances better than a fixed order of the models."""

import time
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from headstart.contract.tables.holes import largest_complete, usable
from headstart.contract.tables.table import TransferTable
from headstart.evaluation.audit.figures import plot_audit
from headstart.evaluation.audit.rankers import MEAN_RANK, rank_sources, summarize
from headstart.evaluation.audit.tables import markdown_text, print_audit
from headstart.evaluation.estimates import few_targets
from headstart.evaluation.table_results import TableResults
from headstart.metrics.ranking.static_orders import mean_spearman, performance_ranks
from headstart.metrics.sample_efficiency.scores import finite
from headstart.output.errors import UserError
from headstart.output.markup import escape_cell
from headstart.output.printable import say
from headstart.output.results_folder import FIGURE_FORMATS, FigureFormat

JSON, REPORT, *_ = FILES = ("audit.json", "report.md", "rankers.csv", "ranks.csv")


def audit(
    table: str | dict[str, str],
    figure_formats: list[FigureFormat] = FIGURE_FORMATS,
    **options: Any,
) -> dict[str, Any]:
    """Evaluate how well one fixed ranking of the models predicts a table of performances, and what metrics add to it.

    Ranks the sources of each target by their mean rank on the other targets, and by every metric. Writes
    audit.json, report.md, two CSV tables and the figures, and prints the report.

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
    selected = results.table
    if len(selected.targets) < 2:
        raise UserError(f"table: {selected.targets[0]!r} is the only target; two or more are compared")
    if MEAN_RANK in selected.metrics:
        raise UserError(f"table: the audit has a ranker {MEAN_RANK} of its own; rename that metric, or leave it out")
    results.check_settings(results.reading)

    document = {
        **results.reading,
        **audit_table(selected),
        "holes": effects_of_holes(results.whole),
        "left_out": selected.left_out,
        "notes": selected.notes,
        "ignored_columns": selected.ignored_columns,
        **results.origin,
        "seconds": time.perf_counter() - start,
    }
    tables = csv_tables(document)
    results.write(document, tables, {REPORT: markdown_text(document)}, plot_audit(document), figure_formats)

    print_audit(document)
    if selected.ignored_columns:
        say(f"columns of the table that were not needed: {', '.join(selected.ignored_columns)}")
    results.print_written()
    results.publish_table("audit", results.reading, document, tables)
    return document


def audit_table(table: TransferTable) -> dict[str, Any]:
    """Return the part of `audit.json` that depends on the table alone, with None for undefined values."""
    return {
        "metrics": table.metrics,
        "sources": table.sources,
        "targets": table.targets,
        **summarize(table, rank_sources(table)),
        "ranks": _dispersion(table),
        "not_computed": few_targets(len(table.targets)),
    }


def _dispersion(table: TransferTable) -> dict[str, Any]:
    """Describe how the ranks of the sources spread over the targets."""
    rho, targets = mean_spearman(table.performances, table.known), table.targets
    ranks_of = zip(table.sources, performance_ranks(table.performances, table.known), strict=True)
    return {
        "mean_spearman": finite(rho),
        "kendalls_w": finite((1 + (len(targets) - 1) * rho) / len(targets)),
        "sources": {
            name: {
                "mean": finite(np.nanmean(ranks)),
                "standard_deviation": finite(np.nanstd(ranks, ddof=1)) if np.isfinite(ranks).sum() > 1 else None,
                "best": finite(np.nanmin(ranks)),
                "worst": finite(np.nanmax(ranks)),
                "per_target": {target: finite(rank) for target, rank in zip(targets, ranks, strict=True)},
            }
            for name, ranks in ranks_of
        },
    }


def csv_tables(document: Mapping[str, Any]) -> dict[str, tuple[list[str], list[list[Any]]]]:
    """Return the columns and rows of each CSV table by name."""
    rankers = {
        name: {measure: summary["per_target"] for measure, summary in measures.items()}
        for name, measures in document["rankers"].items()
    }
    partial_kendall = {
        name: {"kendall_given_mean_rank": summary["per_target"]}
        for name, summary in document["kendall_given_mean_rank"].items()
    }
    ranks = {name: source["per_target"] for name, source in document["ranks"]["sources"].items()}

    tables = {
        "rankers": (["ranker", "measure", "target", "value"], [*_leaves(rankers), *_leaves(partial_kendall)]),
        "ranks": (["source", "target", "rank"], list(_leaves(ranks))),
    }
    return {name: (columns, [list(map(escape_cell, row)) for row in rows]) for name, (columns, rows) in tables.items()}


def _leaves(nested: Mapping[str, Any]) -> Iterator[list[Any]]:
    """Yield a row for each value of nested mappings: the keys that lead to it, and the value."""
    for key, value in nested.items():
        yield from ([key, *row] for row in _leaves(value)) if isinstance(value, Mapping) else [[key, value]]


def effects_of_holes(table: TransferTable) -> dict[str, Any]:
    """Describe how well every ranker does on parts of a table with holes, by weighted Kendall.

    Parts with fewer than two sources or targets are left out. So are repetitions of earlier parts.

    Args:
        table: The table with its holes.

    Returns:
        By part: the numbers of `sources` and `targets`, and under `rankers` the mean over targets of every ranker, with
        its interval. Empty for a table without holes.
    """
    holes = table.holes
    if not holes.any():
        return {}
    parts = {
        "each target's own sources": usable(table),
        "part without holes": largest_complete(holes, table.known),
        "sources that all targets have": (np.asarray(~holes.any(axis=1)), np.ones(len(table.targets), dtype=np.bool_)),
    }

    described: dict[str, Any] = {}
    seen = list[tuple[list[str], list[str]]]()
    for name, selection in parts.items():
        part = table.part(*selection) if selection else None
        if part is None or min(len(part.sources), len(part.targets)) < 2 or (part.sources, part.targets) in seen:
            continue
        seen.append((part.sources, part.targets))
        summaries = summarize(part, rank_sources(part))["rankers"]
        described[name] = {
            "sources": len(part.sources),
            "targets": len(part.targets),
            "rankers": {ranker: measures["weighted_kendall"] for ranker, measures in summaries.items()},
        }
    return described

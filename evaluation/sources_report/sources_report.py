"""`headstart sources-report`: how well every metric predicts the performances of sources on every target."""

from collections.abc import Mapping, Sequence
from math import comb
from typing import Any

import numpy as np

from headstart.contract.tables.table import TransferTable
from headstart.evaluation.estimates import by_measure, few_targets
from headstart.evaluation.sources_report.tables import latex_text, markdown_text, print_report
from headstart.evaluation.table_results import TableResults
from headstart.metrics.arrays import Flags, Floats
from headstart.metrics.ranking.best_metrics import find_best
from headstart.metrics.ranking.ranking_measures import MEASURES
from headstart.metrics.ranking.static_orders import measure_targets
from headstart.output.markup import escape_cell

JSON, MARKDOWN, TEX, *_ = FILES = (
    *(f"sources_report.{kind}" for kind in ("json", "md", "tex")),
    "over_targets.csv",
    "by_target.csv",
)


def sources_report(table: str, **options: Any) -> dict[str, Any]:
    """Tabulate how well every metric predicts the performances of all sources, by four measures on every target.

    Writes sources_report.json, sources_report.md, sources_report.tex, over_targets.csv and by_target.csv, and prints
    the table. docs/sources_report.md explains the numbers.

    Args:
        table: CSV file as `stability` takes it.
        **options: Options of `TableResults`.

    Returns:
        The content of sources_report.json.
    """
    results = TableResults("runs/sources_report", FILES, table, least=1, **options)
    settings = dict(results.reading)
    results.check_settings(settings)

    cells = results.table
    described = describe(cells)
    compared = len(described["metrics"]) - max(len(best["not_compared"]) for best in described["best"].values())
    remarks = [*few_targets(len(described["targets"]), comb(compared, 2)), *cells.remarks()]
    document = {**settings, **described, "notes": cells.notes, "remarks": remarks, **results.origin}
    tables = csv_tables(document)
    texts = {MARKDOWN: markdown_text(document), TEX: latex_text(document)}
    results.write(document, tables, texts)

    print_report(document)
    results.print_written()
    results.publish_table("sources-report", settings, document, tables)
    return document


TableRows = list[list[Any]]


def describe(table: TransferTable) -> dict[str, Any]:
    """Return the part of `sources_report.json` that the table decides, with None for undefined values."""
    measured = measure_targets(table.scores, table.performances, table.known)
    return {
        "metrics": table.metrics,
        "left_out": table.left_out,
        "sources": table.sources,
        "targets": table.targets,
        "measured": {
            metric: by_measure(values, table.targets) for metric, values in zip(table.metrics, measured, strict=True)
        },
        "best": {name: _describe_best(table, measured[:, :, i]) for i, name in enumerate(MEASURES)},
    }


def _describe_best(table: TransferTable, values: Floats) -> dict[str, Any]:
    """Describe which metrics are the best by values `[m, t]`, and which have too few values to be compared."""
    result = find_best(values)
    known = np.isfinite(values)
    missing = zip(table.metrics, known.any(axis=0) & ~known, strict=True)
    on_target = zip(table.targets, result.on_target.T, strict=True)
    return {
        "metrics": _names(table.metrics, result.best),
        "tied": _names(table.metrics, result.tied),
        "not_compared": {metric: _names(table.targets, targets) for metric, targets in missing if targets.any()},
        "on_target": {target: _names(table.metrics, best) for target, best in on_target},
    }


def _names(names: Sequence[str], chosen: Flags) -> list[str]:
    return [name for name, is_chosen in zip(names, chosen, strict=True) if is_chosen]


def csv_tables(document: Mapping[str, Any]) -> dict[str, tuple[list[str], TableRows]]:
    """Return the columns and rows of each CSV table by name: means over targets, and values on every target."""
    on_targets, over_targets = TableRows(), TableRows()
    for metric, measures in document["measured"].items():
        for measure, summary in measures.items():
            best = document["best"][measure]
            mark = "best" if metric in best["metrics"] else "tied" if metric in best["tied"] else ""
            defined = sum(value is not None for value in summary["per_target"].values())
            over_targets.append([escape_cell(metric), measure, summary["mean"], *summary["ci95"], defined, mark])
            for target, value in summary["per_target"].items():
                mark = "best" if metric in best["on_target"][target] else ""
                on_targets.append([escape_cell(metric), measure, escape_cell(target), value, mark])
    return {
        "over_targets": (["metric", "measure", "mean", "ci95_low", "ci95_high", "targets", "place"], over_targets),
        "by_target": (["metric", "measure", "target", "value", "place"], on_targets),
    }

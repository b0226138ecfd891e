"""The content of `sources_report.json` and of the CSV tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headstart.evaluation.over_targets import Values, by_measure
from headstart.evaluation.stability.table import TransferTable
from headstart.metrics.ranking.best_metrics import find_best
from headstart.metrics.ranking.ranking_measures import MEASURES
from headstart.metrics.ranking.static_orders import measure_targets
from headstart.output.markup import escape_cell

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


def _describe_best(table: TransferTable, values: Values) -> dict[str, Any]:
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


def _names(names: Sequence[str], chosen: NDArray[np.bool_]) -> list[str]:
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

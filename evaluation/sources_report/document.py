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
    """Give the content of `sources_report.json` but for what only the command knows, with None for what is undefined.

    Args:
        table: Scores and performances.
    """
    measured = measure_targets(table.scores, table.performances, table.known)
    named = zip(table.metrics, measured, strict=True)
    return {
        "metrics": table.metrics,
        "left_out": table.left_out,
        "sources": table.sources,
        "targets": table.targets,
        "measured": {metric: by_measure(values, table.targets) for metric, values in named},
        "best": {name: _describe_best(table, measured[:, :, place]) for place, name in enumerate(MEASURES)},
    }


def _describe_best(table: TransferTable, values: Values) -> dict[str, Any]:
    """Describe which metrics are the best by values `[m, t]`, and which are not compared for want of some of them."""
    found = find_best(values)
    known = np.isfinite(values)
    missing = known.any(axis=0) & ~known
    without = zip(table.metrics, missing, strict=True)
    return {
        "metrics": _names(table.metrics, found.best),
        "tied": _names(table.metrics, found.tied),
        "not_compared": {metric: _names(table.targets, targets) for metric, targets in without if targets.any()},
        "on_target": {
            target: _names(table.metrics, best) for target, best in zip(table.targets, found.on_target.T, strict=True)
        },
    }


def _names(names: Sequence[str], chosen: NDArray[np.bool_]) -> list[str]:
    return [name for name, here in zip(names, chosen, strict=True) if here]


def csv_tables(document: Mapping[str, Any]) -> dict[str, tuple[list[str], TableRows]]:
    """Give the tables, columns and rows, by name: values on every target, and means over targets."""
    on_targets, over_targets = TableRows(), TableRows()
    for metric, measures in document["measured"].items():
        for measure, found in measures.items():
            best = document["best"][measure]
            place = "best" if metric in best["metrics"] else "tied" if metric in best["tied"] else ""
            defined = sum(value is not None for value in found["per_target"].values())
            over_targets.append([escape_cell(metric), measure, found["mean"], *found["ci95"], defined, place])
            for target, value in found["per_target"].items():
                place = "best" if metric in best["on_target"][target] else ""
                on_targets.append([escape_cell(metric), measure, escape_cell(target), value, place])
    return {
        "over_targets": (["metric", "measure", "mean", "ci95_low", "ci95_high", "targets", "place"], over_targets),
        "by_target": (["metric", "measure", "target", "value", "place"], on_targets),
    }

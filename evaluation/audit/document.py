"""The content of `audit.json` and of the CSV tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headstart.evaluation.audit.findings import Findings
from headstart.evaluation.over_targets import by_measure, number, over_targets
from headstart.evaluation.stability.report import RATED
from headstart.metrics.ranking.ranking_measures import MEASURES
from headstart.output.markup import escape_cell

Values = NDArray[np.float64]
TableRows = list[list[Any]]
UNDEFINED = dict.fromkeys(("target", "measure", "pool"))


def describe(found: Findings) -> dict[str, Any]:
    """Give the content of `audit.json` but for what only the command knows, with None for what is undefined."""
    names, targets, measured = found.rankers.names, found.table.targets, found.rankers.measured
    others = names[1:]
    return {
        "metrics": found.table.metrics,
        "sources": found.table.sources,
        "targets": targets,
        "rankers": {name: by_measure(values, targets) for name, values in zip(names, measured, strict=True)},
        "minus_mean_rank": {
            name: by_measure(values - measured[0], targets) for name, values in zip(others, measured[1:], strict=True)
        },
        "kendall_given_mean_rank": {
            name: over_targets(values, targets) for name, values in zip(others, found.beyond, strict=True)
        },
        "leave_one_model_out": _left_out(names, found.without_models),
        "leave_one_family_out": _left_out(names, found.without_families),
        "ranks": _dispersion(found),
        "pools": found.pools if found.wins or found.stability else None,
        "setup_stability": (
            {name: agreement.mean for name, agreement in found.stability.setup_stability.items()}
            if found.stability
            else UNDEFINED
        ),
        "win_rate_percent": _win_rates(found),
    }


def _left_out(names: Sequence[str], without: Mapping[str, Values]) -> dict[str, Any]:
    """Describe the means over targets with each of some models or families left out, `[r, e]` each."""
    return {
        name: {
            measure: {left_out: number(values[ranker, place]) for left_out, values in without.items()}
            for place, measure in enumerate(MEASURES)
        }
        for ranker, name in enumerate(names if without else [])
    }


def _dispersion(found: Findings) -> dict[str, Any]:
    """Describe how the ranks of the sources spread over the targets."""
    rho, count = found.mean_spearman, len(found.table.targets)
    return {
        "mean_spearman": number(rho),
        "kendalls_w": number((1 + (count - 1) * rho) / count),
        "sources": {
            name: {
                "mean": number(float(np.nanmean(ranks))),
                "standard_deviation": number(float(np.nanstd(ranks, ddof=1))) if np.isfinite(ranks).sum() > 1 else None,
                "best": number(float(np.nanmin(ranks))),
                "worst": number(float(np.nanmax(ranks))),
                "per_target": {each: number(rank) for each, rank in zip(found.table.targets, ranks, strict=True)},
            }
            for name, ranks in zip(found.table.sources, found.ranks, strict=True)
        },
    }


def _win_rates(found: Findings) -> dict[str, Any]:
    """Give the share of the experiments over all pools in which each ranker is the best, ties in equal shares."""
    if found.wins is None:
        return {}
    rates = found.wins.wins.percent("split")
    return {
        name: dict(zip(RATED, map(number, row), strict=True))
        for name, row in zip(found.rankers.names, rates, strict=True)
    }


def csv_tables(document: Mapping[str, Any]) -> dict[str, tuple[list[str], TableRows]]:
    """Give the tables of an audit, columns and rows, by name: of rankers, of what is left out, and of ranks."""
    rankers = [
        [name, measure, target, value]
        for name, measures in document["rankers"].items()
        for measure, found in measures.items()
        for target, value in found["per_target"].items()
    ]
    rankers += [
        [name, "kendall_given_mean_rank", target, value]
        for name, found in document["kendall_given_mean_rank"].items()
        for target, value in found["per_target"].items()
    ]
    left_out = [
        [kind, name, measure, each, value]
        for kind in ("model", "family")
        for name, measures in document[f"leave_one_{kind}_out"].items()
        for measure, found in measures.items()
        for each, value in found.items()
    ]
    ranks = [
        [name, target, rank]
        for name, found in document["ranks"]["sources"].items()
        for target, rank in found["per_target"].items()
    ]
    tables = {
        "rankers": (["ranker", "measure", "target", "value"], rankers),
        "left_out": (["left_out", "ranker", "measure", "which", "mean"], left_out),
        "ranks": (["source", "target", "rank"], ranks),
    }
    return {name: (columns, [list(map(escape_cell, row)) for row in rows]) for name, (columns, rows) in tables.items()}

"""The content of `audit.json` and of the CSV tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headstart.evaluation.audit.findings import Findings
from headstart.evaluation.over_targets import by_measure, number, over_targets
from headstart.evaluation.stability.study_tables import RATED
from headstart.metrics.ranking.ranking_measures import MEASURES
from headstart.output.markup import escape_cell

Values = NDArray[np.float64]
UNDEFINED: dict[str, float | None] = dict.fromkeys(("target", "measure", "pool"))


def describe(findings: Findings) -> dict[str, Any]:
    """Return the part of `audit.json` that the findings decide, with None for undefined values."""
    names, targets, measured = findings.rankers.names, findings.table.targets, findings.rankers.measured
    rankers = {name: by_measure(values, targets) for name, values in zip(names, measured, strict=True)}
    others = {
        name: by_measure(values - measured[0], targets) for name, values in zip(names[1:], measured[1:], strict=True)
    }
    beyond = {name: over_targets(values, targets) for name, values in zip(names[1:], findings.beyond, strict=True)}

    # Both studies are left out if there are too many pools, or too few metrics or rankers.
    stability, wins, win_rates = UNDEFINED, findings.wins, {}
    if findings.stability:
        stability = {name: agreement.mean for name, agreement in findings.stability.setup_stability.items()}
    if wins:
        rates = zip(names, wins.wins.percent("split"), strict=True)
        win_rates = {name: dict(zip(RATED, map(number, values), strict=True)) for name, values in rates}

    return {
        "metrics": findings.table.metrics,
        "sources": findings.table.sources,
        "targets": targets,
        "rankers": rankers,
        "minus_mean_rank": others,
        "kendall_given_mean_rank": beyond,
        "leave_one_model_out": _left_out(names, findings.without_models),
        "leave_one_family_out": _left_out(names, findings.without_families),
        "ranks": _dispersion(findings),
        "pools": findings.pools if wins or findings.stability else None,
        "setup_stability": stability,
        "win_rate_percent": win_rates,
    }


def _left_out(names: Sequence[str], without: Mapping[str, Values]) -> dict[str, Any]:
    """Describe the means over targets with each of some models or families left out, `[r, e]` each."""
    if not without:
        return {}
    return {
        name: {
            measure: {left_out: number(values[r, e]) for left_out, values in without.items()}
            for e, measure in enumerate(MEASURES)
        }
        for r, name in enumerate(names)
    }


def _dispersion(findings: Findings) -> dict[str, Any]:
    """Describe how the ranks of the sources spread over the targets."""
    rho, targets = findings.mean_spearman, findings.table.targets
    return {
        "mean_spearman": number(rho),
        "kendalls_w": number((1 + (len(targets) - 1) * rho) / len(targets)),
        "sources": {
            name: {
                "mean": number(float(np.nanmean(ranks))),
                "standard_deviation": number(float(np.nanstd(ranks, ddof=1))) if np.isfinite(ranks).sum() > 1 else None,
                "best": number(float(np.nanmin(ranks))),
                "worst": number(float(np.nanmax(ranks))),
                "per_target": {target: number(rank) for target, rank in zip(targets, ranks, strict=True)},
            }
            for name, ranks in zip(findings.table.sources, findings.ranks, strict=True)
        },
    }


def csv_tables(document: Mapping[str, Any]) -> dict[str, tuple[list[str], list[list[Any]]]]:
    """Return the columns and rows of each CSV table by name: of rankers, of what is left out, and of ranks."""
    summaries = [
        (name, measure, summary)
        for name, measures in document["rankers"].items()
        for measure, summary in measures.items()
    ]
    beyond = document["kendall_given_mean_rank"]
    summaries += [(name, "kendall_given_mean_rank", summary) for name, summary in beyond.items()]
    rankers = [
        [name, measure, target, value]
        for name, measure, summary in summaries
        for target, value in summary["per_target"].items()
    ]

    left_out = [
        [kind, name, measure, each, value]
        for kind in ("model", "family")
        for name, measures in document[f"leave_one_{kind}_out"].items()
        for measure, values in measures.items()
        for each, value in values.items()
    ]
    ranks = [
        [name, target, rank]
        for name, source in document["ranks"]["sources"].items()
        for target, rank in source["per_target"].items()
    ]

    tables = {
        "rankers": (["ranker", "measure", "target", "value"], rankers),
        "left_out": (["left_out", "ranker", "measure", "which", "mean"], left_out),
        "ranks": (["source", "target", "rank"], ranks),
    }
    return {name: (columns, [list(map(escape_cell, row)) for row in rows]) for name, (columns, rows) in tables.items()}

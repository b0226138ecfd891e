"""The findings of an audit about a table, as arrays, as the content of `audit.json`, and as CSV tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headstart.evaluation.audit.rankers import Facts, Rankers, given_mean_rank, rank_sources, without
from headstart.evaluation.over_targets import by_measure, mean_over_targets, number, over_targets
from headstart.evaluation.stability.study import Study, run_study
from headstart.evaluation.stability.study_tables import RATED
from headstart.evaluation.stability.table import TransferTable
from headstart.metrics.ranking.ranking_measures import MEASURES
from headstart.metrics.ranking.static_orders import mean_spearman, performance_ranks
from headstart.output.markup import escape_cell
from headstart.output.progress import track

# Outcomes of all pools, targets and rankers up to which they are computed: some minutes on one core.
MOST_OUTCOMES = 100_000_000
# Sources left out, targets and rankers up to which each source is left out once: some minutes, too.
MOST_LEFT_OUT = 200_000

Values = NDArray[np.float64]


@dataclass(frozen=True)
class Findings:
    """Findings of an audit; n sources, t targets, r rankers, e measures.

    Attributes:
        table: Scores and performances.
        facts: Facts about the sources.
        rankers: Rankers of the sources, and how well they do.
        beyond: Correlation of all rankers but the first with the performances, given the mean rank, `[r - 1, t]`.
        without_models: Mean over targets of how well every ranker does with one source left out, by its name, `[r, e]`
            each; none where there are too many.
        without_families: The same with one family left out, by its name, `[r, e]` each.
        pool_size: Sources in a pool.
        stability: Study of the metrics of the table over all pools; None where there are fewer than two, or too many
            pools.
        wins: Study of all rankers; None for the same reasons.
    """

    table: TransferTable
    facts: Facts
    rankers: Rankers
    beyond: Values
    without_models: Mapping[str, Values]
    without_families: Mapping[str, Values]
    pool_size: int
    stability: Study | None
    wins: Study | None

    @cached_property
    def ranks(self) -> Values:
        """Rank of each source by its performance on each target, `[n, t]`, NaN where it is the target itself."""
        return performance_ranks(self.table.performances, self.table.known)

    @cached_property
    def mean_spearman(self) -> float:
        """Mean of Spearman's correlation between the rankings on two targets."""
        return mean_spearman(self.table.performances, self.table.known)

    @property
    def pools(self) -> int:
        """Number of pools."""
        return comb(len(self.table.sources), self.pool_size)


def audit_table(table: TransferTable, facts: Facts, pool_size: int, tie_tolerance: float) -> Findings:
    """Audit a table.

    Args:
        table: Scores and performances.
        facts: Facts about its sources.
        pool_size: Sources in a pool.
        tie_tolerance: Differences of outcomes up to this are ties.
    """
    rankers = rank_sources(table, facts)
    all_rankers = replace(table, metrics=rankers.names, scores=np.where(table.known, rankers.scores, 0.0))
    families = sorted(set(facts.families)) if len(set(facts.families)) > 1 else []
    one_by_one = table.sources if rankers.scores.size <= MOST_LEFT_OUT else []
    models = track(one_by_one, "leave one model out", "models")
    return Findings(
        table,
        facts,
        rankers,
        given_mean_rank(table, rankers),
        {model: _means_without(table, facts, np.array(table.sources) == model) for model in models},
        {family: _means_without(table, facts, np.array(facts.families) == family) for family in families},
        pool_size,
        _study(table, pool_size, tie_tolerance),
        _study(all_rankers, pool_size, tie_tolerance),
    )


def _means_without(table: TransferTable, facts: Facts, left_out: NDArray[np.bool_]) -> Values:
    """Compute the mean over targets of how well every ranker does without some sources, `[r, e]`."""
    measured = rank_sources(*without(table, facts, left_out)).measured
    return mean_over_targets(measured.swapaxes(1, 2))


def _study(table: TransferTable, pool_size: int, tie_tolerance: float) -> Study | None:
    """Study all pools; None if there are fewer than two metrics, a missing score, or too many outcomes."""
    outcomes = comb(len(table.sources), pool_size) * len(table.targets) * len(table.metrics)
    if len(table.metrics) < 2 or outcomes > MOST_OUTCOMES or not np.isfinite(table.scores).all():
        return None
    return run_study(table, pool_size, tie_tolerance)


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

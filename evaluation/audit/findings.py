"""The findings of an audit about a table, as arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from math import comb

import numpy as np
from numpy.typing import NDArray

from headstart.evaluation.audit.facts import Facts
from headstart.evaluation.audit.rankers import Rankers, given_mean_rank, rank_sources, without
from headstart.evaluation.over_targets import mean_over_targets
from headstart.evaluation.stability.study import Study, run_study
from headstart.evaluation.stability.table import TransferTable
from headstart.metrics.ranking.static_orders import mean_spearman, performance_ranks
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

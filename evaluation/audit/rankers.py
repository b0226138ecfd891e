"""The rankers of an audit: orders that do not depend on the target, and the metrics of the table."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from headstart.evaluation.audit.facts import Facts
from headstart.evaluation.stability.table import TransferTable
from headstart.metrics.ranking.static_orders import (
    mean_ranks_elsewhere,
    measure_targets,
    partial_kendall,
    performance_ranks,
)
from headstart.output.errors import UserError

MEAN_RANK = "mean_rank"
SAME_FOR_ALL = "the same for all sources"

Values = NDArray[np.float64]


@dataclass(frozen=True)
class Rankers:
    """Rankers of the sources of a table.

    Attributes:
        names: Names of the r rankers: the mean rank, those of the facts, the metrics of the table.
        scores: Scores, higher being better, `[r, n, t]`; NaN for a target's own source where that has no mean rank.
        measured: How well each predicts the performances by every measure, `[r, t, e]`, NaN where undefined.
    """

    names: list[str]
    scores: Values
    measured: Values


def rank_sources(table: TransferTable, facts: Facts) -> Rankers:
    """Rank the sources of each target by the mean rank on other targets, every fact and every metric.

    Args:
        table: Scores and performances.
        facts: Facts about the sources of the table.
    """
    elsewhere = -mean_ranks_elsewhere(performance_ranks(table.performances, table.known))
    shape = len(facts.numbers), *elsewhere.shape
    static = np.broadcast_to(np.array(list(facts.numbers.values())).reshape(*shape[:2], 1), shape)
    scores = np.concatenate([elsewhere[None], static, table.scores])
    measured = measure_targets(scores, table.performances, table.known)
    return Rankers([MEAN_RANK, *facts.numbers, *table.metrics], scores, measured)


def given_mean_rank(table: TransferTable, rankers: Rankers) -> Values:
    """Compute `partial_kendall` of every other ranker with the performances, given the mean rank, `[r - 1, t]`."""
    correlations = np.full((len(rankers.names) - 1, len(table.targets)), np.nan)
    for target, known in enumerate(table.known.T):
        elsewhere, *others = rankers.scores[:, known, target]
        if np.isfinite(elsewhere).all() and known.sum() > 1:
            performances = table.performances[known, target]
            correlations[:, target] = [partial_kendall(scores, performances, elsewhere) for scores in others]
    return correlations


def require_distinct(table: TransferTable, facts: Facts) -> None:
    """Raise a UserError if a metric has the name of one of the audit's own rankers."""
    taken = [name for name in (MEAN_RANK, *facts.numbers) if name in table.metrics]
    if taken:
        raise UserError(
            f"table: {', '.join(taken)} is a metric of the table, and also the name of one of the audit's own rankers; "
            "rename it, or leave it out by metrics"
        )


def varying_facts(facts: Facts) -> tuple[Facts, dict[str, str]]:
    """Leave out numbers that are the same for all sources; return the others, and the reasons by name."""
    left_out = {name: SAME_FOR_ALL for name, values in facts.numbers.items() if len(set(values)) < 2}
    numbers = {name: values for name, values in facts.numbers.items() if name not in left_out}
    return replace(facts, numbers=numbers), left_out


def without(table: TransferTable, facts: Facts, left_out: NDArray[np.bool_]) -> tuple[TransferTable, Facts]:
    """Return a table and its facts without some of the sources `[n]`."""
    others = np.flatnonzero(~left_out)
    new_index = np.full(len(left_out) + 1, -1)
    new_index[others] = np.arange(len(others))
    rest = replace(
        table,
        sources=[table.sources[i] for i in others],
        # The last entry is that of -1, no source.
        own=new_index[table.own],
        scores=table.scores[:, others],
        performances=table.performances[others],
    )
    numbers = {name: [values[i] for i in others] for name, values in facts.numbers.items()}
    return rest, Facts(numbers, [facts.families[i] for i in others] if facts.families else [])

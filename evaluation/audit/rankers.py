"""The rankers of an audit: orders that know nothing of the target, and the metrics of the table beside them."""

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
    """What ranks the sources of a table.

    Attributes:
        names: Names of the r rankers: the mean rank, those of the facts, the metrics of the table.
        scores: Scores, higher being better, `[r, n, t]`; NaN for a target's own source where that has no mean rank.
        measured: How well each foretells the performances by every measure, `[r, t, e]`, NaN where undefined.
    """

    names: list[str]
    scores: Values
    measured: Values


def rank_sources(table: TransferTable, facts: Facts) -> Rankers:
    """Let the mean rank on other targets, every fact and every metric rank the sources of each target.

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
    """Correlate every other ranker with the performances, given the mean rank, `[r - 1, t]`: `partial_kendall`."""
    found = np.full((len(rankers.names) - 1, len(table.targets)), np.nan)
    for target, here in enumerate(table.known.T):
        elsewhere, *others = rankers.scores[:, here, target]
        if np.isfinite(elsewhere).all() and here.sum() > 1:
            reached = table.performances[here, target]
            found[:, target] = [partial_kendall(scores, reached, elsewhere) for scores in others]
    return found


def require_distinct(table: TransferTable, facts: Facts) -> None:
    """Check that no metric is called like one of the audit's own rankers; a UserError if it is."""
    taken = [name for name in (MEAN_RANK, *facts.numbers) if name in table.metrics]
    if taken:
        raise UserError(
            f"table: {', '.join(taken)} is a metric of the table, and what the audit calls a ranker of its own; rename "
            "it, or leave it out by metrics"
        )


def telling(facts: Facts) -> tuple[Facts, dict[str, str]]:
    """Leave out numbers that are the same for all sources; give what is left, and why the others are not."""
    left_out = {name: SAME_FOR_ALL for name, values in facts.numbers.items() if len(set(values)) < 2}
    kept = {name: values for name, values in facts.numbers.items() if name not in left_out}
    return replace(facts, numbers=kept), left_out


def without(table: TransferTable, facts: Facts, left_out: NDArray[np.bool_]) -> tuple[TransferTable, Facts]:
    """Leave out sources of a table `[n]`, and what is known of them."""
    kept = np.flatnonzero(~left_out)
    places = np.full(len(left_out) + 1, -1)
    places[kept] = np.arange(len(kept))
    rest = replace(
        table,
        sources=[table.sources[place] for place in kept],
        # The last place is that of -1, no source.
        own=places[table.own],
        scores=table.scores[:, kept],
        performances=table.performances[kept],
    )
    numbers = {name: [values[place] for place in kept] for name, values in facts.numbers.items()}
    return rest, Facts(numbers, [facts.families[place] for place in kept] if facts.families else [])

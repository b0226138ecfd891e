"""The experiments of a stability study, in blocks of source pools so that memory does not grow with their number."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import combinations, islice
from math import comb

import numpy as np

from headstart.evaluation.stability.table import TransferTable
from headstart.metrics.arrays import Flags, Floats, Indices
from headstart.metrics.ranking.outcomes import (
    AgreementsByTarget,
    MeanAgreement,
    Wins,
    agreement_vectors,
    group_agreements,
)
from headstart.metrics.ranking.ranking_measures import MEASURES, measure_pools
from headstart.output.errors import UserError
from headstart.output.progress import track

# Share of the sources that a target has; the paper's pools hold 11 of 16 and 14 of 19.
POOL_SHARE = 0.7
# Results for this many pools of one target fit into the processor's cache.
BLOCK = 2048
# Pools that the figures show; more points would only overlap.
SHOWN = 1000

# The components of an experiment.
COMPONENTS = ("target", "measure", "pool")


@dataclass
class Study:
    """Summary of the outcomes of all experiments; t targets, e measures, m metrics.

    Attributes:
        table: Scores and performances.
        pool_size: Sources in a pool.
        tie_tolerance: Differences of outcomes up to this are ties.
        wins: Experiments that each metric wins.
        shown_pools: A random sample of the pools, for figures, `[shown, k]`.
        shown: Their outcomes `[shown, t, e, m]`, NaN where a target is in the pool.
        experiments: Pools, targets and measures that go together.
        undefined: Experiments without an outcome: all metrics are tied, or the measure is undefined for one of them.
        setup_stability: Agreement of experiments that differ in one of `COMPONENTS` alone.
        by_target: The share of each target in it where the measure or the pool varies; where the target varies, the
            agreement without each.
    """

    table: TransferTable
    pool_size: int
    tie_tolerance: float
    wins: Wins
    shown_pools: Indices
    shown: Floats
    by_target: dict[str, AgreementsByTarget]
    experiments: int = 0
    undefined: int = 0
    setup_stability: dict[str, MeanAgreement] = field(
        default_factory=lambda: {name: MeanAgreement() for name in COMPONENTS}
    )

    def setup_stability_without(self) -> dict[str, Floats]:
        """Return the setup stability with the experiments of each target left out, `[t]`, NaN where it is undefined."""
        return {
            name: agreements.means() if name == "target" else agreements.means_without()
            for name, agreements in self.by_target.items()
        }


def run_study(
    table: TransferTable,
    pool_size: int,
    tie_tolerance: float,
    each_block: Callable[[Indices, Floats], object] = lambda pools, outcomes: None,
) -> Study:
    """Compute the outcome of every metric for every pool, target and measure, and summarize them.

    Args:
        table: Scores and performances.
        pool_size: Sources in a pool.
        tie_tolerance: Differences of outcomes up to this are ties.
        each_block: Called with each block of pools `[pools, k]` and their outcomes `[pools, t, e, m]`; pools come in
            the lexicographic order of their sources, NaN stands where a target is in the pool.

    Returns:
        Setup stability, wins and a sample of the outcomes.
    """
    groups = len(table.targets), len(MEASURES)
    pools, metrics = comb(len(table.sources), pool_size), len(table.metrics)
    sample = np.sort(np.random.default_rng(0).choice(pools, min(pools, SHOWN), replace=False))
    study = Study(
        table,
        pool_size,
        tie_tolerance,
        Wins.zeros(*groups, metrics),
        shown_pools=np.empty((len(sample), pool_size), dtype=np.intp),
        shown=np.empty((len(sample), *groups, metrics)),
        by_target={name: AgreementsByTarget.zeros(len(table.targets)) for name in COMPONENTS},
    )

    by_target_and_measure = np.zeros((*groups, metrics * (metrics - 1) // 2))
    defined = np.zeros(groups, dtype=np.int64)
    starts = track(range(0, pools, BLOCK), "study", "blocks of pools")
    for start, block in zip(starts, _blocks(len(table.sources), pool_size), strict=True):
        outcomes, used = pool_outcomes(table, block)
        each_block(block, outcomes)
        vectors, has_outcome = agreement_vectors(outcomes, tie_tolerance)
        study.wins.add(outcomes, tie_tolerance)
        experiments = int(used.sum()) * len(MEASURES)
        study.experiments += experiments
        study.undefined += experiments - int(has_outcome.sum())

        # Experiments that differ in the target alone, with all targets and without each.
        over_targets, count = vectors.sum(axis=1, keepdims=True), has_outcome.sum(axis=1, keepdims=True)
        study.setup_stability["target"].add(over_targets, count)
        without = group_agreements(over_targets - vectors, count - has_outcome)
        study.by_target["target"].add(without.swapaxes(0, 1).reshape(groups[0], -1))

        # Experiments that differ in the measure alone; those that differ in the pool alone come from all blocks.
        means = study.setup_stability["measure"].add(vectors.sum(axis=2), has_outcome.sum(axis=2))
        study.by_target["measure"].add(means.T)
        by_target_and_measure += vectors.sum(axis=0)
        defined += has_outcome.sum(axis=0)

        here = slice(*np.searchsorted(sample, (start, start + len(block))))
        shown = sample[here] - start
        study.shown_pools[here], study.shown[here] = block[shown], outcomes[shown]

    study.by_target["pool"].add(study.setup_stability["pool"].add(by_target_and_measure, defined))
    return study


def choose_pool_size(table: TransferTable, chosen: int | None) -> int:
    """Return the size of a pool, by default 70 % of the sources; a UserError if no target has that many sources."""
    available = int((~table.own).sum(axis=0).max())
    size = max(2, round(POOL_SHARE * available)) if chosen is None else chosen
    if not 2 <= size <= available:
        raise UserError(
            f"pool_size: {size} is given; 2 to {available} is allowed, the number of sources that a target has"
        )
    return size


def _blocks(sources: int, pool_size: int) -> Iterator[Indices]:
    """Yield all pools in blocks, `[pools, k]`."""
    pools = combinations(range(sources), pool_size)
    while len(block := np.array(list(islice(pools, BLOCK)), dtype=np.intp)):
        yield block


def pool_outcomes(table: TransferTable, pools: Indices) -> tuple[Floats, Flags]:
    """Return the outcomes `[pools, t, e, m]` of pools `[pools, k]`, and which targets use them, `[pools, t]`.

    A target uses the pools in which no source is its own. Of these, sources without a cell on it do not count.
    """
    inside = np.zeros((len(pools), len(table.sources)))
    np.put_along_axis(inside, pools, 1.0, axis=1)
    used = inside @ table.own == 0
    outcomes = np.full((*used.shape, len(MEASURES), len(table.metrics)), np.nan)

    for target, known in enumerate(table.known.T):
        here = np.flatnonzero(used[:, target])
        there = known[pools[here]]
        count = there.sum(axis=1)
        # Pools of one size at a time; all have the same unless the table has holes.
        for size in np.unique(count[count > 1]).tolist():
            alike = count == size
            members = pools[here[alike]][there[alike]].reshape(-1, size)
            scores, performances = table.scores[:, :, target], table.performances[:, target]
            outcomes[here[alike], target] = measure_pools(scores, performances, members)
    return outcomes, used

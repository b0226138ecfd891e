"""The experiments of a stability study, in blocks of source pools, and the standard errors of drawing these."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from headstart.contract.tables.table import TransferTable
from headstart.evaluation.estimates import mean_over_targets
from headstart.metrics.arrays import Flags, Floats, Indices
from headstart.metrics.ranking.aggregates import jackknife_error
from headstart.metrics.ranking.outcomes import (
    Agreements,
    Ties,
    Wins,
    agreement_vectors,
    agreements_across,
    group_agreements,
)
from headstart.metrics.ranking.pools import Pools
from headstart.metrics.ranking.ranking_measures import MEASURES, measure_pools
from headstart.output.errors import UserError
from headstart.output.progress import Progress

# Share of the sources that a target has; the paper's pools hold 11 of 16 and 14 of 19.
POOL_SHARE = 0.7
# Pools in a block at most; sources times pools whose results fit into the processor's cache; agreement of pairs of
# metrics times experiments that fit into memory.
BLOCK, IN_CACHE, IN_MEMORY = 2**11, 2**17, 2**22

# Metrics whose outcomes differ by at most this are tied; it covers rounding errors.
TIED = 1e-12
# The components of an experiment.
COMPONENTS = ("target", "measure", "pool")


@dataclass
class Study:
    """Summary of the outcomes of all experiments; b batches, t targets, e measures, m metrics.

    Experiments are added in blocks of pools, so that memory does not grow with their number.

    Attributes:
        table: Scores and performances.
        pools: The pools.
        wins: Experiments that each metric wins.
        vectors: Sums of the agreement vectors of each batch, `[b, t, e, m (m - 1) / 2]`.
        defined: Experiments with an outcome, `[b, t, e]`.
        by_batch: Agreement of experiments with the same pool that differ in the target or the measure alone.
        by_target: The share of each target in the agreement if the measure or the pool varies. The agreement without
            each target if the target varies.
        used: Pools that each target uses, `[t]`.
        experiments: Pools, targets and measures that go together.
        undefined: Experiments without an outcome: all metrics are tied, or the measure is undefined for one of them.
    """

    table: TransferTable
    pools: Pools
    wins: Wins
    vectors: Floats
    defined: NDArray[np.int64]
    by_batch: dict[str, Agreements]
    by_target: dict[str, Agreements]
    used: Indices
    experiments: int = 0
    undefined: int = 0

    @classmethod
    def empty(cls, table: TransferTable, pools: Pools) -> "Study":
        """Return a study to which no experiments have been added.

        Args:
            table: Scores and performances.
            pools: The pools.
        """
        targets, measures, metrics = len(table.targets), len(MEASURES), len(table.metrics)
        groups = pools.batches, targets, measures
        return cls(
            table,
            pools,
            Wins.zeros(*groups, metrics),
            np.zeros((*groups, metrics * (metrics - 1) // 2)),
            np.zeros(groups, dtype=np.int64),
            {name: Agreements.zeros(pools.batches) for name in ("target", "measure")},
            {name: Agreements.zeros(targets) for name in COMPONENTS},
            np.zeros(targets, dtype=np.int64),
        )

    @property
    def setup_stability(self) -> dict[str, Agreements]:
        """Agreement of experiments that differ in one of `COMPONENTS` alone."""
        return {**self.by_batch, "pool": self.by_target["pool"]}

    def setup_stability_without(self) -> dict[str, Floats]:
        """Return the setup stability with the experiments of each target left out, `[t]`, NaN where it is undefined."""
        return {
            name: agreements.means() if name == "target" else agreements.means_without()
            for name, agreements in self.by_target.items()
        }

    def agreement_over_pools(self, left_out: int | None = None) -> tuple[Floats, NDArray[np.int64]]:
        """Estimate the mean agreement of experiments that differ in the pool alone.

        Args:
            left_out: Index of a batch to leave out.

        Returns:
            Means by target and measure, `[t, e]`, NaN where there is no pair, and the number of pairs, `[t, e]`.
        """
        if not self.pools.drawn:
            [vectors], [defined] = self.vectors, self.defined
            return group_agreements(vectors, defined)
        kept = np.arange(self.pools.batches) != left_out
        vectors, defined = self.vectors[kept], self.defined[kept]
        # The same share of all pools has an outcome as of the drawn ones. The correction vanishes long before 10^18.
        studied = self.pools.count * len(defined) / self.pools.batches
        population = min(self.pools.all, 10**18) * (defined.sum(axis=0) / studied)
        return agreements_across(vectors, defined, population)


def run_study(table: TransferTable, pools: Pools) -> Study:
    """Compute the outcome of every metric for every pool, target and measure, and summarize them.

    Args:
        table: Scores and performances.
        pools: The pools.

    Returns:
        Setup stability and wins.
    """
    study = Study.empty(table, pools)
    # Threads do not pay for products of this size.
    with threadpool_limits(1), Progress("study", pools.count, "pools") as progress:
        for block, batch_of in pools.blocks(_block_size(table)):
            outcomes, used = pool_outcomes(table, block)
            _add_block(study, outcomes, used, batch_of)
            progress.advance(len(block))

    study.by_target["pool"].add(*study.agreement_over_pools())
    return study


def _block_size(table: TransferTable) -> int:
    """Return how many pools are measured together."""
    metrics = len(table.metrics)
    agreements = len(table.targets) * len(MEASURES) * metrics * (metrics - 1) // 2
    return max(1, min(BLOCK, IN_CACHE // len(table.sources), IN_MEMORY // max(agreements, 1)))


def _add_block(study: Study, outcomes: Floats, used: Flags, batch_of: Indices) -> None:
    """Add pools: their outcomes `[pools, t, e, m]`, which targets use them `[pools, t]`, and their batches."""
    vectors, defined = agreement_vectors(outcomes, TIED)
    study.used += used.sum(axis=0)
    experiments = int(used.sum()) * len(MEASURES)
    study.experiments += experiments
    study.undefined += experiments - int(defined.sum())

    # Experiments that differ in the target alone, with all targets and without each.
    over_targets, count = vectors.sum(axis=1), defined.sum(axis=1)
    of_targets, target_pairs = group_agreements(over_targets, count)
    left_out, pairs = group_agreements(over_targets[:, None] - vectors, count[:, None] - defined)
    study.by_target["target"].add(left_out.swapaxes(0, 1).reshape(len(study.table.targets), -1), pairs)
    of_measures, measure_pairs = group_agreements(vectors.sum(axis=2), defined.sum(axis=2))
    study.by_target["measure"].add(of_measures.T, measure_pairs)

    for index in np.unique(batch_of):
        rows = slice(*np.searchsorted(batch_of, (index, index + 1)))
        study.wins.add(index, outcomes[rows], TIED)
        study.vectors[index] += vectors[rows].sum(axis=0)
        study.defined[index] += defined[rows].sum(axis=0)
        study.by_batch["target"].add(of_targets[rows].ravel(), target_pairs[rows], index)
        study.by_batch["measure"].add(of_measures[rows].ravel(), measure_pairs[rows], index)


def choose_pool_size(table: TransferTable, chosen: int | None) -> int:
    """Return the size of a pool, by default 70 % of the sources; a UserError if no target has that many sources."""
    available = int((~table.own).sum(axis=0).max())
    size = max(2, round(POOL_SHARE * available)) if chosen is None else chosen
    if not 2 <= size <= available:
        raise UserError(
            f"pool_size: {size} is given; 2 to {available} is allowed, the number of sources that a target has"
        )
    return size


def pool_outcomes(table: TransferTable, pools: Indices) -> tuple[Floats, Flags]:
    """Return the outcomes `[pools, t, e, m]` of pools `[pools, k]`, and which targets use them, `[pools, t]`.

    A target uses the pools in which no source is its own. Of these, sources without a cell on it do not count, and the
    outcome is undefined where they are more than half.
    """
    inside = np.zeros((len(pools), len(table.sources)))
    np.put_along_axis(inside, pools, 1.0, axis=1)
    used = inside @ table.own == 0
    outcomes = np.full((*used.shape, len(MEASURES), len(table.metrics)), np.nan)

    for target, known in enumerate(table.known.T):
        rows = np.flatnonzero(used[:, target])
        has_cell = known[pools[rows]]
        count = has_cell.sum(axis=1)
        # Pools of one size at a time; all have the same unless the table has holes.
        for size in np.unique(count[(count > 1) & (2 * count >= pools.shape[1])]).tolist():
            alike = count == size
            members = pools[rows[alike]][has_cell[alike]].reshape(-1, size)
            scores, performances = table.scores[:, :, target], table.performances[:, target]
            outcomes[rows[alike], target] = measure_pools(scores, performances, members)
    return outcomes, used


def setup_stability_errors(study: Study) -> dict[str, float]:
    """Compute the standard error of drawing pools of the setup stability by component; NaN if all are studied."""
    return {name: float(jackknife_error(without)) for name, without in without_batches(study).items()}


def without_batches(study: Study) -> dict[str, Floats]:
    """Compute the setup stability without each batch by component, `[batches]`; NaN where it is undefined."""
    without = {name: agreements.means_without() for name, agreements in study.by_batch.items()}
    if not study.pools.drawn:
        return {**without, "pool": np.array([np.nan])}
    over_pools = [study.agreement_over_pools(left_out)[0] for left_out in range(study.pools.batches)]
    return {**without, "pool": mean_over_targets(np.reshape(over_pools, (study.pools.batches, -1)))}


def win_rate_errors(study: Study, ties: Ties) -> Floats:
    """Compute the standard errors of the win rates `[m, e + 1]` in percentage points; NaN if all pools are studied."""
    return jackknife_error(np.moveaxis(study.wins.percent_without_each(ties, "batch"), 0, -1))

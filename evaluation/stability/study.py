"""The experiments of a stability study, in blocks of source pools, and the standard errors of drawing these."""

from dataclasses import dataclass, field
from functools import reduce
from operator import add

import numpy as np
from threadpoolctl import threadpool_limits

from headstart.contract.tables.table import TransferTable
from headstart.metrics.arrays import Flags, Floats, Indices
from headstart.metrics.ranking.outcomes import (
    AgreementsByTarget,
    Batch,
    MeanAgreement,
    Ties,
    Wins,
    agreement_vectors,
    group_agreements,
    over_pools,
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
# Pools that the figures show; more points would only overlap.
SHOWN = 1000

# Metrics whose outcomes differ by at most this are tied; it covers rounding errors.
TIED = 1e-12
# The components of an experiment.
COMPONENTS = ("target", "measure", "pool")


@dataclass
class Study:
    """Summary of the outcomes of all experiments; t targets, e measures, m metrics.

    Experiments are added in blocks of pools, so that memory does not grow with their number.

    Attributes:
        table: Scores and performances.
        pools: The pools.
        batches: Sums over the experiments of each batch of pools; one batch if all pools are studied.
        shown: Outcomes of a random sample of the pools, for the figure, `[shown, t, e, m]`; NaN where a target is in
            the pool.
        by_target: The share of each target in it if the measure or the pool varies. The agreement without each target
            if the target varies.
        used: Pools that each target uses, `[t]`.
        experiments: Pools, targets and measures that go together.
        undefined: Experiments without an outcome: all metrics are tied, or the measure is undefined for one of them.
        wins: Experiments that each metric wins.
        setup_stability: Agreement of experiments that differ in one of `COMPONENTS` alone.
    """

    table: TransferTable
    pools: Pools
    batches: list[Batch]
    shown: Floats
    by_target: dict[str, AgreementsByTarget]
    used: Indices
    experiments: int = 0
    undefined: int = 0
    wins: Wins = field(init=False)
    setup_stability: dict[str, MeanAgreement] = field(
        default_factory=lambda: {name: MeanAgreement() for name in COMPONENTS}
    )

    def setup_stability_without(self) -> dict[str, Floats]:
        """Return the setup stability with the experiments of each target left out, `[t]`, NaN where it is undefined."""
        return {
            name: agreements.means() if name == "target" else agreements.means_without()
            for name, agreements in self.by_target.items()
        }


def run_study(table: TransferTable, pools: Pools) -> Study:
    """Compute the outcome of every metric for every pool, target and measure, and summarize them.

    Args:
        table: Scores and performances.
        pools: The pools.

    Returns:
        Setup stability, wins and a sample of the outcomes.
    """
    groups = len(table.targets), len(MEASURES)
    metrics = len(table.metrics)
    sample = np.sort(np.random.default_rng(0).choice(pools.count, min(pools.count, SHOWN), replace=False))
    study = Study(
        table,
        pools,
        [Batch.zeros(*groups, metrics) for _ in range(pools.batches)],
        shown=np.empty((len(sample), *groups, metrics)),
        by_target={name: AgreementsByTarget.zeros(len(table.targets)) for name in COMPONENTS},
        used=np.zeros(len(table.targets), dtype=np.int64),
    )

    start = 0
    # Threads do not pay for products of this size.
    with threadpool_limits(1), Progress("study", pools.count, "pools") as progress:
        for block, batch_of in pools.blocks(_block_size(table)):
            outcomes, used = pool_outcomes(table, block)
            _add_block(study, outcomes, used, batch_of)

            in_block = slice(*np.searchsorted(sample, (start, start + len(block))))
            study.shown[in_block] = outcomes[sample[in_block] - start]
            start += len(block)
            progress.show(start)

    _summarize(study)
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
    over_targets, count = vectors.sum(axis=1, keepdims=True), defined.sum(axis=1, keepdims=True)
    without = group_agreements(over_targets - vectors, count - defined)
    study.by_target["target"].add(without.swapaxes(0, 1).reshape(len(study.table.targets), -1))
    means = group_agreements(vectors.sum(axis=2), defined.sum(axis=2))
    study.by_target["measure"].add(means.T)

    for index in np.unique(batch_of):
        rows = slice(*np.searchsorted(batch_of, (index, index + 1)))
        study.batches[index].add(outcomes[rows], TIED, vectors[rows], defined[rows])


def _summarize(study: Study) -> None:
    """Join the batches; experiments that differ in the pool alone come from all of them."""
    study.wins = reduce(add, (batch.wins for batch in study.batches))
    for name in ("target", "measure"):
        study.setup_stability[name] = reduce(add, (batch.agreements[name] for batch in study.batches))

    if study.pools.drawn:
        means, pairs = over_pools(study.batches, study.pools)
        study.setup_stability["pool"].add_means(means, pairs)
    else:
        [batch] = study.batches
        means = study.setup_stability["pool"].add(batch.vectors, batch.defined)
    study.by_target["pool"].add(means)


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


def standard_error(without: Floats) -> Floats:
    """Compute the standard error `[...]` of estimates from those without each batch of pools, `[batches, ...]`.

    It is that of drawing pools, by the jackknife over the batches. Source: Bradley Efron and Charles Stein, "The
    Jackknife Estimate of Variance", Annals of Statistics, 1981, section 2.
    """
    return np.asarray(np.std(without, axis=0) * (len(without) - 1) ** 0.5)


def setup_stability_errors(study: Study) -> dict[str, float]:
    """Compute the standard error of the setup stability by component; NaN if all pools are studied."""
    without = without_batches(study)
    return {name: float(standard_error(without[name])) for name in COMPONENTS}


def without_batches(study: Study) -> dict[str, Floats]:
    """Compute the setup stability without each batch by component, `[batches]`; NaN where it is undefined."""
    batches = study.batches
    without: dict[str, list[float | None]] = {name: [] for name in COMPONENTS}
    for left_out in range(len(batches)):
        others = batches[:left_out] + batches[left_out + 1 :]
        pooled = MeanAgreement()
        if others:
            pooled.add_means(*over_pools(others, study.pools))
        without["pool"].append(pooled.mean)
        for name in ("target", "measure"):
            without[name].append(reduce(add, (batch.agreements[name] for batch in others), MeanAgreement()).mean)
    return {name: np.array(means, dtype=np.float64) for name, means in without.items()}


def win_rate_errors(study: Study, ties: Ties) -> Floats:
    """Compute the standard errors of the win rates `[m, e + 1]` in percentage points; NaN if all pools are studied."""
    return standard_error(np.stack([(study.wins - batch.wins).percent(ties) for batch in study.batches]))

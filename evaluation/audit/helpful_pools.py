"""Pools in which a ranker helps: how often it beats the mean rank on the other targets, and in which pools."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from headstart.contract.tables.table import TransferTable
from headstart.evaluation.estimates import mean_over_targets, over_targets, with_interval
from headstart.evaluation.stability.study import TIED
from headstart.metrics.arrays import Floats, Indices
from headstart.metrics.ranking.ranking_measures import MEASURES
from headstart.metrics.sample_efficiency.scores import finite
from headstart.output.tables import format_number

THIRDS = 3
# Bins by which pools are counted; a third is made of whole ones.
BINS = 1000
# What distinguishes pools, with how tables call it.
KINDS = {"mean_rank": "weighted Kendall of the mean rank", "spread": "standard deviation of the performances"}
# What a reader of a table must know.
WARNINGS = {"mean_rank": "; any ranker does better where the mean rank does badly by chance", "spread": ""}
MEASURE = MEASURES.index("weighted_kendall")
CAPTION = "share of pools of a target in which a ranker beats the mean rank, by weighted Kendall, a tie half"

Document = Mapping[str, Any]


class HelpfulPools:
    """Counts of pools in which rankers beat the first one, which is the mean rank, by weighted Kendall.

    Pools in which the mean rank has no value do not count; a ranker that has none does not beat it there.
    Pools are counted in narrow bins of what distinguishes them, so that memory does not grow with their number.

    Args:
        table: Performances, and the scores of the r rankers in place of metrics, the mean rank first.

    Attributes:
        pools: Pools `[2, t, bins]` by kind, those of `KINDS`, target and bin.
        better: In how many of them each of the other rankers beats the mean rank, `[2, t, bins, r - 1]`.
        totals: Sum over the pools of a bin of what distinguishes them, `[2, t, bins]`.
    """

    def __init__(self, table: TransferTable) -> None:
        self.table = table
        shape = len(KINDS), len(table.targets), BINS
        self.pools, self.totals = np.zeros(shape), np.zeros(shape)
        self.better = np.zeros((*shape, len(table.metrics) - 1))

    def add(self, pools: Indices, outcomes: Floats) -> None:
        """Count more pools, `[pools, k]`, with their outcomes `[pools, t, e, r]`, NaN where a target is in the pool."""
        for target, its_outcomes in enumerate(outcomes[:, :, MEASURE].swapaxes(0, 1)):
            here = np.isfinite(its_outcomes[:, 0])
            performances = self.table.performances[:, target]
            known = self.table.known[:, target]
            static, its_pools = its_outcomes[here, 0], pools[here]
            spread = performances[its_pools].std(axis=1, where=known[its_pools])
            # A standard deviation is half the range at most.
            widest = np.ptp(performances[known]) / 2
            difference = its_outcomes[here, 1:] - static[:, None]
            better = np.where(np.abs(difference) <= TIED, 0.5, difference > 0)
            for kind, (values, low, high) in enumerate(((static, -1, 1), (spread, 0, widest))):
                bins = np.clip(((values - low) / (high - low) * BINS).astype(np.intp), 0, BINS - 1)
                self.pools[kind, target] += np.bincount(bins, minlength=BINS)
                self.totals[kind, target] += np.bincount(bins, values, BINS)
                for ranker, its in enumerate(better.T):
                    self.better[kind, target, :, ranker] += np.bincount(bins, its, BINS)

    def describe(self) -> dict[str, Any]:
        """Return the part `helpful_pools` of `audit.json`."""
        targets, names = self.table.targets, self.table.metrics[1:]
        third = self._thirds()
        inside = [third == part for part in range(THIRDS)]

        count = [np.where(each, self.pools, 0).sum(axis=2) for each in inside]
        means = [_divide(np.where(each, self.totals, 0).sum(axis=2), n) for each, n in zip(inside, count, strict=True)]
        shares = [
            _divide(np.where(each[..., None], self.better, 0).sum(axis=2), n[..., None])
            for each, n in zip(inside, count, strict=True)
        ]
        overall = _divide(self.better[0].sum(axis=1), self.pools[0].sum(axis=1)[:, None])

        return {
            "thirds": {
                kind: [finite(float(mean_over_targets(mean[index]))) for mean in means]
                for index, kind in enumerate(KINDS)
            },
            "rankers": {
                name: {
                    "all": over_targets(overall[:, ranker], targets, (0.0, 1.0)),
                    **{
                        kind: [over_targets(share[index, :, ranker], targets, (0.0, 1.0)) for share in shares]
                        for index, kind in enumerate(KINDS)
                    },
                }
                for ranker, name in enumerate(names)
            },
        }

    def _thirds(self) -> Indices:
        """Return the third that each bin belongs to, that of the middle one of its pools, `[2, t, bins]`."""
        total = np.maximum(self.pools.sum(axis=2, keepdims=True), 1)
        middle = self.pools.cumsum(axis=2) - self.pools / 2
        return np.asarray(np.minimum(THIRDS * middle // total, THIRDS - 1), dtype=np.intp)


def _divide(numerator: Floats, count: Floats) -> Floats:
    """Divide by counts, NaN where there are none."""
    return np.asarray(np.divide(numerator, count, out=np.full(numerator.shape, np.nan), where=count > 0))


def helpful_csv(helpful: Document) -> tuple[list[str], list[list[Any]]]:
    """Return the columns and rows of `helpful_pools.csv`, from the part `helpful_pools` of the document."""
    rows = []
    for name, shares in helpful.get("rankers", {}).items():
        parts: list[tuple[str, int | None, Document]] = [("all", None, shares["all"])]
        parts += [(kind, third, each) for kind in KINDS for third, each in enumerate(shares[kind], start=1)]
        for kind, third, summary in parts:
            rows += [[name, kind, third, target, share] for target, share in summary["per_target"].items()]
    return ["ranker", "thirds_by", "third", "target", "better_than_mean_rank"], rows


def helpful_tables(helpful: Document, titles: Mapping[str, str], caption: str) -> list[tuple[str, str, list[Any]]]:
    """Return the title, caption and rows of the two tables, from the part `helpful_pools` of the document.

    Args:
        helpful: The part of the document; empty if pools were not studied.
        titles: Titles of the rankers by their names.
        caption: Description of the numbers.
    """
    if not helpful:
        return []
    tables = []
    for kind, what in KINDS.items():
        means = [format_number(mean, ".3g") for mean in helpful["thirds"][kind]]
        names = [f"{name} third, {mean}" for name, mean in zip(("lowest", "middle", "highest"), means, strict=True)]
        rows = [["ranker", "all pools", *names]]
        for name, shares in helpful["rankers"].items():
            rows.append([titles[name], *map(with_interval, [shares["all"], *shares[kind]])])
        title = f"Pools in which rankers beat the mean rank, by the {what} in the pool"
        tables.append(
            (title, f"{CAPTION}; {caption}; thirds of each target's pools, with their mean{WARNINGS[kind]}", rows)
        )
    return tables

"""Fidelity: whether a difference in performance, or in score, means that a ranker orders two sources rightly."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from headstart.contract.tables.table import TransferTable
from headstart.evaluation.estimates import mean_over_targets, over_targets, with_interval
from headstart.metrics.arrays import Floats, Indices
from headstart.metrics.ranking.static_orders import scores_differ
from headstart.metrics.sample_efficiency.scores import finite
from headstart.output.tables import format_number

# Parts of equal size, from the pairs that differ least to those that differ most.
FIFTHS = 5
# Pairs of sources of a target; of more, as many are drawn at random. All pairs of a thousand sources are fewer.
MOST_PAIRS = 500_000
# By what the pairs are sorted, with what the keys of the document begin.
KINDS = {"performance": "by_performance_difference", "score": "by_score_difference"}
CAPTION = (
    "0.5 is chance, and the value of a tie; pairs with equal performances are left out; fifths are those of each target"
)

Document = Mapping[str, Any]


@dataclass(frozen=True)
class Fidelity:
    """Shares of pairs of sources that rankers order rightly, by fifths of the pairs; r rankers, t targets.

    Attributes:
        by_performance: Shares by the difference in performance, `[r, t, 5]`; NaN where no pair is.
        by_score: Shares by the difference in the ranker's score, `[r, t, 5]`.
        largest: The largest difference in performance of each fifth, `[t, 5]`.
        pairs: Pairs of each target.
    """

    by_performance: Floats
    by_score: Floats
    largest: Floats
    pairs: list[int]


def measure_fidelity(table: TransferTable, scores: Floats) -> Fidelity:
    """Compute how many pairs of sources rankers order rightly, the more the pairs differ.

    A tie counts half. Pairs with equal performances have no right order and are left out. A ranker is left out on
    targets on which it scores all sources the same. Memory is that of the pairs of one target.

    Args:
        table: Scores and performances.
        scores: Scores by r rankers, `[r, n, t]`, higher being better.
    """
    targets = len(table.targets)
    by_performance, by_score = np.full((2, len(scores), targets, FIFTHS), np.nan)
    largest, pairs = np.full((targets, FIFTHS), np.nan), [0] * targets

    for target, known in enumerate(table.known.T):
        # The first source of each pair is the better one.
        best_first = np.argsort(-table.performances[known, target], kind="stable")
        ordered = table.performances[known, target][best_first]
        better, worse = _pairs(len(ordered))
        gaps = ordered[better] - ordered[worse]
        better, worse, gaps = better[gaps > 0], worse[gaps > 0], gaps[gaps > 0]
        pairs[target] = len(gaps)
        if not len(gaps):
            continue

        fifth, largest[target] = _fifths(gaps)
        for ranker, on_target in enumerate(scores[:, known, target][:, best_first]):
            if scores_differ(on_target):
                differences = on_target[better] - on_target[worse]
                right = (1 + np.sign(differences)) / 2
                by_performance[ranker, target] = _means(right, fifth)
                by_score[ranker, target] = _means(right, _fifths(np.abs(differences))[0])
    return Fidelity(by_performance, by_score, largest, pairs)


def _pairs(count: int) -> tuple[Indices, Indices]:
    """Return all pairs of so many sources, the lower index first, or `MOST_PAIRS` random ones if there are more."""
    if count * (count - 1) // 2 <= MOST_PAIRS:
        first, second = np.triu_indices(count, 1)
        return first, second
    generator = np.random.default_rng(0)
    one, other = generator.integers(count, size=MOST_PAIRS), generator.integers(count - 1, size=MOST_PAIRS)
    other += other >= one
    return np.minimum(one, other), np.maximum(one, other)


def _fifths(differences: Floats) -> tuple[Indices, Floats]:
    """Return the fifth of each difference, from 0, equal ones in the same; and the upper bounds of all, `[5]`."""
    bounds = np.quantile(differences, np.arange(1, FIFTHS + 1) / FIFTHS)
    # Comparisons take a tenth of the time of a search.
    return np.asarray(sum(differences > bound for bound in bounds[:-1])), bounds


def _means(right: Floats, fifth: Indices) -> Floats:
    """Return the mean of each fifth, `[5]`, NaN of an empty one."""
    count = np.bincount(fifth, minlength=FIFTHS)
    total = np.bincount(fifth, right, FIFTHS)
    return np.asarray(np.divide(total, count, out=np.full(FIFTHS, np.nan), where=count > 0))


def describe_fidelity(fidelity: Fidelity, names: Sequence[str], targets: Sequence[str]) -> dict[str, Any]:
    """Return the part `fidelity` of `audit.json`, with lists of the five fifths."""
    shares = {KINDS["performance"]: fidelity.by_performance, KINDS["score"]: fidelity.by_score}
    return {
        "pairs": dict(zip(targets, fidelity.pairs, strict=True)),
        "largest_performance_difference": [finite(each) for each in mean_over_targets(fidelity.largest.T)],
        **{
            kind: {
                name: [over_targets(fifth, targets, (0.0, 1.0)) for fifth in each.T]
                for name, each in zip(names, values, strict=True)
            }
            for kind, values in shares.items()
        },
    }


def fidelity_csv(fidelity: Document) -> tuple[list[str], list[list[Any]]]:
    """Return the columns and rows of `fidelity.csv`, from the part `fidelity` of the document."""
    rows = [
        [name, difference, fifth, target, share]
        for difference, kind in KINDS.items()
        for name, fifths in fidelity[kind].items()
        for fifth, summary in enumerate(fifths, start=1)
        for target, share in summary["per_target"].items()
    ]
    return ["ranker", "difference_in", "fifth", "target", "ordered_rightly"], rows


def fidelity_tables(fidelity: Document, titles: Mapping[str, str], caption: str) -> list[tuple[str, str, list[Any]]]:
    """Return the title, caption and rows of the two tables, from the part `fidelity` of the document.

    Args:
        fidelity: The part of the document.
        titles: Titles of the rankers by their names.
        caption: Description of the numbers.
    """
    bounds = [format_number(bound, ".3g") for bound in fidelity["largest_performance_difference"]]
    drawn = f"; {MOST_PAIRS:,} random pairs of a target" if max(fidelity["pairs"].values()) >= MOST_PAIRS else ""
    tables = []
    for difference, kind in KINDS.items():
        names = ["closest fifth", "second", "third", "fourth", "farthest"]
        if difference == "performance":
            names = [f"{name}, up to {bound}" for name, bound in zip(names, bounds, strict=True)]
        rows = [["ranker", *names]]
        rows += [[titles[name], *map(with_interval, fifths)] for name, fifths in fidelity[kind].items()]
        title = f"Share of pairs of sources in the right order, by their difference in {difference}"
        tables.append((title, f"{caption}; {CAPTION}{drawn}", rows))
    return tables

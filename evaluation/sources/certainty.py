"""Which sources the photos tell apart: groups by every metric, and what they say of the first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from string import ascii_letters

import numpy as np
from numpy.typing import NDArray

from headstart.evaluation.sources.scores import Score
from headstart.metrics.sample_efficiency.resolution import maximal_groups
from headstart.metrics.transferability.left_out import significant_differences


@dataclass(frozen=True)
class Certainty:
    """What the photos tell of the sources by one metric.

    Attributes:
        sources: The sources, the best by this metric first.
        apart: Which are told apart, `[sources, sources]`.
    """

    sources: Sequence[str]
    apart: NDArray[np.bool_]

    @property
    def groups(self) -> list[list[str]]:
        """The largest sets of sources no two of which are told apart; none where there are too many to name."""
        return [[self.sources[place] for place in group] for group in maximal_groups(self.apart)]

    @property
    def letters(self) -> dict[str, str]:
        """A letter for each set that a source is in, by source; behind z come capitals, then numbers."""
        found = dict.fromkeys(self.sources, "")
        for number, group in enumerate(self.groups):
            for source in group:
                found[source] += ascii_letters[number] if number < len(ascii_letters) else f" {number + 1}"
        return found

    def compare(self, one: str, other: str) -> int:
        """Give 1 where the first is better, -1 where it is worse, and 0 where they are not told apart."""
        first, second = self.sources.index(one), self.sources.index(other)
        return (1 if first < second else -1) if self.apart[first, second] else 0


def find_certainty(scores: Mapping[str, Mapping[str, Score]], metric: str) -> Certainty | None:
    """Tell the sources apart by one metric; None where one of them has no interval, or there is but one.

    Args:
        scores: Scores by source and metric.
        metric: The metric.
    """
    found = {source: each[metric] for source, each in scores.items()}
    known = {source: score.value for source, score in found.items() if score.value is not None and score.left_out}
    if len(known) < max(len(scores), 2):
        return None
    names = sorted(known, key=lambda source: -known[source])
    left_out = np.array([found[name].left_out for name in names])
    return Certainty(names, significant_differences(np.array([known[name] for name in names]), left_out))


def say_answer(
    first: str, others: Sequence[str], certainties: Mapping[str, Certainty], alike: Sequence[str] = ()
) -> list[str]:
    """Say which source is first, and by how many metrics the photos tell it from the others.

    Args:
        first: The source with the best mean rank.
        others: The other sources, best first.
        certainties: By the titles of the metrics that rank.
        alike: Those of the others that have the same mean rank as the first.

    Returns:
        A sentence, and one for every other source; one for all that no metric tells from the first.
    """
    it = first if alike else "it"
    lines, same = [f"First by mean rank: {', '.join([first, *alike])}{', alike' if alike else ''}."], []
    if not certainties:
        return lines
    for other in others:
        found = {title: each.compare(first, other) for title, each in certainties.items()}
        better, worse, equal = ([title for title, sign in found.items() if sign == kind] for kind in (1, -1, 0))
        if len(equal) == len(found):
            same.append(other)
            continue
        but = [
            f"{what} {', '.join(titles)}"
            for what, titles in (("worse under", worse), ("not told apart under", equal))
            if titles
        ]
        ranks = "every metric" if len(better) == len(found) else f"{len(better)} of {len(found)} metrics"
        more = f" ({'; '.join(but)})" if but else ""
        lines.append(f"The photos tell that {it} is better than {other} under {ranks}{more}.")
    if same:
        lines.append(f"No metric can tell {it} from {', '.join(same)} by these photos.")
    return lines

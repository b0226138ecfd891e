"""Significant differences between sources by every metric, and the groups of sources that follow."""

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
    """Significant differences between sources by one metric.

    Attributes:
        sources: The sources, the best by this metric first.
        differ: Which differ significantly, `[sources, sources]`.
    """

    sources: Sequence[str]
    differ: NDArray[np.bool_]

    @property
    def groups(self) -> list[list[str]]:
        """The largest sets of sources without a significant difference; none where there are too many to name."""
        return [[self.sources[index] for index in group] for group in maximal_groups(self.differ)]

    @property
    def letters(self) -> dict[str, str]:
        """A letter for each set that a source is in, by source; after z come capitals, then numbers."""
        letters = dict.fromkeys(self.sources, "")
        for number, group in enumerate(self.groups):
            for source in group:
                letters[source] += ascii_letters[number] if number < len(ascii_letters) else f" {number + 1}"
        return letters

    def compare(self, one: str, other: str) -> int:
        """Return 1 where the first is significantly better, -1 where it is worse, and 0 where they do not differ."""
        first, second = self.sources.index(one), self.sources.index(other)
        return (1 if first < second else -1) if self.differ[first, second] else 0


def find_certainty(scores: Mapping[str, Mapping[str, Score]], metric: str) -> Certainty | None:
    """Test the differences between sources by one metric.

    Args:
        scores: Scores by source and metric.
        metric: The metric.

    Returns:
        None where a source has no interval, or there is one source alone.
    """
    by_source = {source: by_metric[metric] for source, by_metric in scores.items()}
    known = {source: score.value for source, score in by_source.items() if score.value is not None and score.left_out}
    if len(known) < max(len(scores), 2):
        return None
    names = sorted(known, key=lambda source: -known[source])
    left_out = np.array([by_source[name].left_out for name in names])
    return Certainty(names, significant_differences(np.array([known[name] for name in names]), left_out))


def describe_first(
    first: str, others: Sequence[str], certainties: Mapping[str, Certainty], alike: Sequence[str] = ()
) -> list[str]:
    """Return sentences on which source is first, and by how many metrics it is significantly better than the others.

    Args:
        first: The source with the best mean rank.
        others: The other sources, best first.
        certainties: By the titles of the metrics that rank.
        alike: Those of the others that have the same mean rank as the first.

    Returns:
        A sentence, and one for every other source; one for all that do not differ from the first by any metric.
    """
    lines = [f"First by mean rank: {', '.join([first, *alike])}{', alike' if alike else ''}."]
    if not certainties:
        return lines

    subject, same = first if alike else "it", []
    for other in others:
        signs = {title: certainty.compare(first, other) for title, certainty in certainties.items()}
        better, worse, equal = ([title for title, sign in signs.items() if sign == kind] for kind in (1, -1, 0))
        if len(equal) == len(signs):
            same.append(other)
            continue
        but = [f"worse under {', '.join(worse)}"] if worse else []
        but += [f"not told apart under {', '.join(equal)}"] if equal else []
        share = "every metric" if len(better) == len(signs) else f"{len(better)} of {len(signs)} metrics"
        more = f" ({'; '.join(but)})" if but else ""
        lines.append(f"The photos tell that {subject} is better than {other} under {share}{more}.")

    if same:
        lines.append(f"No metric can tell {subject} from {', '.join(same)} by these photos.")
    return lines

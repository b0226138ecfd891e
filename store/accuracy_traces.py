"""Accuracies of fine-tuned sources as the ledger stores them: traces of one evaluation."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from headstart.store.ledger_file import Trace

SEVERAL = -1


class PhotoCounts(NamedTuple):
    """What was counted of a network's predictions for validation photos, and for selection photos.

    Attributes:
        correct: Correct predictions, of as many as `parts_of` says.
        only_class: Index of the class that is predicted for all photos, or for all of their pixels; None where several
            classes are predicted.
        selected: Correct predictions for the selection photos; None where there are none.
    """

    correct: int
    only_class: int | None = None
    selected: int | None = None

    @classmethod
    def of_trace(cls, numbers: NDArray[np.integer[Any]]) -> Self:
        """Return the counts in a trace."""
        correct, only, *more = map(int, numbers)
        return cls(correct, None if only == SEVERAL else only, *more)

    def trace(self) -> Trace:
        """Return the trace that stores the counts."""
        only = SEVERAL if self.only_class is None else self.only_class
        return Trace(np.array([self.correct, only, *([] if self.selected is None else [self.selected])]))


def only_classes(counts: Mapping[int, PhotoCounts], classes: Sequence[str]) -> dict[int, str]:
    """Return the name of the class that is predicted alone, by the orderings in which one is."""
    return {ordering: classes[each.only_class] for ordering, each in counts.items() if each.only_class is not None}


def accuracies_of(
    counts: Mapping[int, PhotoCounts], description: Mapping[str, Any], split: str = "validation"
) -> dict[int, float]:
    """Return the accuracies on a split by ordering, without the orderings in which nothing was counted for it.

    Args:
        counts: Counts by ordering.
        description: Description of the stream, which has the sizes of the splits.
        split: `validation` or `selection`.
    """
    correct = {ordering: each.correct if split == "validation" else each.selected for ordering, each in counts.items()}
    return {
        ordering: number / parts_of(description, split) for ordering, number in correct.items() if number is not None
    }


def parts_of(description: Mapping[str, Any], split: str = "validation") -> int:
    """Return the number of predictions that an accuracy counts: by default one for each photo of the split."""
    return int(description.get("parts", description[f"{split}_size"]))

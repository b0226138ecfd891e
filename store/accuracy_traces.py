"""Accuracies of fine-tuned sources as the ledger stores them: traces of one evaluation."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from headstart.store.ledger_file import Trace

SEVERAL = -1


class Counted(NamedTuple):
    """What was counted of a network's predictions for validation photos.

    Attributes:
        correct: Correct predictions, of as many as `parts_of` says.
        only_class: Index of the class that is predicted for all photos, or for all of their pixels; None where several
            classes are predicted.
    """

    correct: int
    only_class: int | None = None

    @classmethod
    def of_trace(cls, numbers: Iterable[int]) -> Self:
        """Return the counts in a trace; those of earlier versions have the correct predictions alone."""
        correct, *more = map(int, numbers)
        return cls(correct, next((only for only in more if only != SEVERAL), None))

    def trace(self) -> Trace:
        """Return the trace that stores the counts."""
        return Trace(np.array([self.correct, SEVERAL if self.only_class is None else self.only_class]))


def only_classes(counts: Mapping[int, Counted], classes: Sequence[str]) -> dict[int, str]:
    """Return the name of the class that is predicted alone, by the orderings in which one is."""
    return {ordering: classes[each.only_class] for ordering, each in counts.items() if each.only_class is not None}


def parts_of(description: Mapping[str, Any]) -> int:
    """Return the number of predictions that an accuracy counts: by default one for each validation photo."""
    return int(description.get("parts", description["validation_size"]))

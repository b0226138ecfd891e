"""Interfaces of a comparison: its stream, the chooser of its evaluations, and its snapshots."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from headstart.modules.method import MethodStart

# The validation set, again and again: inputs and labels.
Chunks = Iterable[tuple[Tensor, Tensor]]


class Chooser(Protocol):
    """Chooses the evaluations of a comparison that are made, where not all are."""

    @property
    def now(self) -> int | None:
        """Number of the present evaluation; None where it is not part of the protocol."""

    def wanted(self, method: int) -> int | None:
        """Return the number of the next evaluation of a method; None where it has to learn more."""

    def take(self, method: int, evaluation: int, correct: NDArray[np.int64], not_finite: NDArray[np.int64]) -> None:
        """Record the counts of an evaluation of a method, `[orderings]`."""

    def needed(self, method: int) -> list[int]:
        """Return the evaluations up to now that may still be requested of a method, in order."""


class Stream(Protocol):
    """The part of a data module that a comparison uses."""

    batch_size: int
    max_samples: int
    orderings: Sequence[int]

    def start(self) -> MethodStart:
        """Return the start of every method."""

    def held(self) -> Mapping[str, Tensor]:
        """Return the other tensors of the stream and of the evaluation, by their names in messages."""

    def feed(self, numbers: Sequence[int]) -> None:
        """Choose the orderings that are fed."""


@dataclass(frozen=True)
class Snapshot:
    """The state of a comparison after an evaluation.

    Attributes:
        samples_seen: Samples that each ordering has fed so far.
        samples_validated: Validation samples of the evaluation.
        correct: Counts of correct predictions, `[methods, orderings]`, 0 where a method is not fed an ordering.
        not_finite: Predictions whose greatest logit is not finite, `[methods, orderings]`; see `Counted`.
        of_class: Correct predictions of each class, `[classes, methods, orderings]`; empty where they are not counted.
    """

    samples_seen: int
    samples_validated: int
    correct: NDArray[np.int64]
    not_finite: NDArray[np.int64]
    of_class: NDArray[np.int64]

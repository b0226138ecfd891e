"""What feeds a comparison, what chooses its evaluations, and what it gives of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from headstart.modules.method import Start

# The validation set, again and again: inputs and labels.
Chunks = Iterable[tuple[Tensor, Tensor]]


class Chooser(Protocol):
    """What chooses the evaluations that are made of a comparison, where not all are."""

    @property
    def now(self) -> int | None:
        """Number of the evaluation that is being made; None where it is none of the protocol."""

    def wanted(self, method: int) -> int | None:
        """Give the number of the evaluation that is to be made next of a method; None where it has to learn more."""

    def take(self, method: int, evaluation: int, correct: NDArray[np.int64], not_finite: NDArray[np.int64]) -> None:
        """Take the counts of an evaluation of a method, `[orderings]`."""

    def needed(self, method: int) -> list[int]:
        """Give the evaluations up to now that may still be asked for of a method, in order."""


class Stream(Protocol):
    """What a comparison is fed from, as far as it concerns the comparison."""

    batch_size: int
    max_samples: int
    orderings: Sequence[int]

    def start(self) -> Start:
        """Give what every method starts from."""

    def held(self) -> Mapping[str, Tensor]:
        """Give what is fed from or judged by, beside what the start holds."""

    def feed(self, numbers: Sequence[int], samples_seen: int) -> None:
        """Choose the orderings that are fed, and how many samples of each are left out."""


@dataclass(frozen=True)
class Snapshot:
    """A comparison as it stands after an evaluation.

    Attributes:
        samples_seen: Samples that each ordering has fed so far.
        samples_validated: Validation samples of the evaluation.
        correct: Counts of correct predictions, `[methods, orderings]`, 0 where a method is not fed an ordering.
        not_finite: Predictions that are not finite numbers, of which none is correct, `[methods, orderings]`.
    """

    samples_seen: int
    samples_validated: int
    correct: NDArray[np.int64]
    not_finite: NDArray[np.int64]

"""Accuracy traces of a comparison."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from metrics.sample_efficiency.criterion import required_correct, samples_to_criterion


@dataclass(frozen=True)
class Curves:
    """The whole accuracy trace of every method and ordering.

    Attributes:
        methods: Names, the baseline first, `[methods]`.
        orderings: Numbers of the orderings, `[orderings]`.
        samples_seen: Samples that an ordering had fed at each evaluation, `[evaluations]`.
        correct: Correct predictions, `[methods, orderings, evaluations]`.
        validation_size: Number of validation samples.
        limit: Where restricted means are cut: the sample limit, or the samples seen where a run was cut off.
        threshold: Accuracy of the criterion that the run used.
        consecutive: Streak length of the criterion that the run used.
    """

    methods: list[str]
    orderings: NDArray[np.int64]
    samples_seen: NDArray[np.int64]
    correct: NDArray[np.int64]
    validation_size: int
    limit: int
    threshold: float
    consecutive: int

    @property
    def accuracy(self) -> NDArray[np.float64]:
        """Validation accuracy, `[methods, orderings, evaluations]`."""
        return self.correct / self.validation_size

    def save(self, path: Path) -> None:
        """Write the curves as a compressed `.npz` file with an array per attribute."""
        with path.open("wb") as file:
            np.savez_compressed(file, **{**vars(self), "correct": self.correct.astype(np.int32)})

    @classmethod
    def load(cls, path: Path) -> Curves:
        """Read curves that `save` wrote."""
        with np.load(path, allow_pickle=False) as arrays:
            return cls(
                methods=arrays["methods"].tolist(),
                orderings=arrays["orderings"],
                samples_seen=arrays["samples_seen"],
                correct=arrays["correct"].astype(np.int64),
                validation_size=int(arrays["validation_size"]),
                limit=int(arrays["limit"]),
                threshold=float(arrays["threshold"]),
                consecutive=int(arrays["consecutive"]),
            )

    def samples_to_criterion(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Find samples to criterion and onset of every trace, each `[methods, orderings]`, infinite where censored."""
        required = required_correct(self.threshold, self.validation_size)
        return samples_to_criterion(self.correct, self.samples_seen, required, self.consecutive)

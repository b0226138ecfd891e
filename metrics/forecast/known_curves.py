"""Learning curves of many methods on many data sets, from which forecasts are calibrated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headstart.metrics.arrays import Flags, Floats

SHIPPED = Path(__file__).with_name("known_curves.npz")
# Accuracies and samples are stored as whole numbers, -1 where there is none.
UNIT, MISSING = 10_000, -1
# Attributes that all curves have in common.
SHARED = ("labels", "thresholds")


@dataclass(frozen=True)
class KnownCurves:
    """Learning curves that were measured before.

    Attributes:
        data_sets: The data set of each curve, `[curves]`; targets of the same photos have the same.
        targets: Its target, `[curves]`.
        sources: What its backbone was trained on, `[curves]`.
        methods: Its method, `[curves]`.
        classes: Number of classes, `[curves]`.
        labels: Numbers of labels, ascending, `[labels]`.
        accuracies: Accuracy in every ordering, NaN behind its end, `[curves, orderings, labels]`.
        thresholds: Thresholds of criteria, `[thresholds]`.
        samples: Samples to criterion in every ordering, `[curves, orderings, thresholds]`. The criterion is ten
            evaluations in a row, one after each sample. Infinite where it is not met.
    """

    data_sets: NDArray[np.str_]
    targets: NDArray[np.str_]
    sources: NDArray[np.str_]
    methods: NDArray[np.str_]
    classes: NDArray[np.int64]
    labels: NDArray[np.int64]
    accuracies: Floats
    thresholds: Floats
    samples: Floats

    def where(self, chosen: Flags) -> KnownCurves:
        """Return some of the curves, by truth values `[curves]`."""
        return KnownCurves(**{name: value if name in SHARED else value[chosen] for name, value in vars(self).items()})

    @classmethod
    def join(cls, parts: Sequence[KnownCurves]) -> KnownCurves:
        """Return the curves of several parts with the same numbers of labels and thresholds."""
        return cls(
            **{
                name: values if name in SHARED else np.concatenate([getattr(part, name) for part in parts])
                for name, values in vars(parts[0]).items()
            }
        )

    def save(self, path: Path) -> None:
        """Write the curves as a compressed `.npz` file; accuracies are rounded to four digits."""
        accuracies = np.where(np.isnan(self.accuracies), MISSING, np.round(self.accuracies * UNIT))
        samples = np.where(np.isinf(self.samples), MISSING, self.samples)
        numbers = {"accuracies": accuracies.astype(np.int16), "samples": samples.astype(np.int16)}
        with path.open("wb") as file:
            np.savez_compressed(file, **{**vars(self), **numbers})

    @classmethod
    def load(cls, path: Path = SHIPPED) -> KnownCurves:
        """Read curves that `save` wrote; by default those of the suite."""
        with np.load(path, allow_pickle=False) as arrays:
            stored: dict[str, Any] = dict(arrays)
        accuracies, samples = stored["accuracies"], stored["samples"]
        numbers = {
            "accuracies": np.where(accuracies == MISSING, np.nan, accuracies / UNIT),
            "samples": np.where(samples == MISSING, np.inf, samples),
        }
        return cls(**{**stored, **numbers})


@cache
def shipped_curves() -> KnownCurves:
    """Return the curves of the suite."""
    return KnownCurves.load()

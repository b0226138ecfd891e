"""Learning curves of many methods on many data sets, from which forecasts are calibrated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headstart.metrics.arrays import Flags, Floats

SHIPPED = Path(__file__).with_name("known_curves.npz")
# Accuracies are stored as whole numbers of this share, -1 where there is none.
UNIT = 10_000
MISSING = -1
# The attribute that all curves have in common.
SHARED = "labels"


@dataclass(frozen=True)
class KnownCurves:
    """Learning curves that were measured before.

    Attributes:
        data_sets: The data set of each curve, `[curves]`; targets of the same photos have the same.
        sources: What its backbone was trained on, `[curves]`.
        methods: Its method, `[curves]`.
        classes: Number of classes, `[curves]`.
        labels: Numbers of labels, ascending, `[labels]`.
        accuracies: Accuracy in every ordering, NaN behind its end, `[curves, orderings, labels]`.
    """

    data_sets: NDArray[np.str_]
    sources: NDArray[np.str_]
    methods: NDArray[np.str_]
    classes: NDArray[np.int64]
    labels: NDArray[np.int64]
    accuracies: Floats

    def where(self, chosen: Flags) -> KnownCurves:
        """Return some of the curves, by truth values `[curves]`."""
        return KnownCurves(**{name: value if name == SHARED else value[chosen] for name, value in vars(self).items()})

    @classmethod
    def join(cls, parts: Sequence[KnownCurves]) -> KnownCurves:
        """Return the curves of several parts with the same numbers of labels."""
        names = {field.name for field in fields(cls)} - {SHARED}
        joined = {name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
        return cls(labels=parts[0].labels, **joined)

    def save(self, path: Path) -> None:
        """Write the curves as a compressed `.npz` file; accuracies are rounded to four digits."""
        accuracies = np.where(np.isnan(self.accuracies), MISSING, np.round(self.accuracies * UNIT))
        with path.open("wb") as file:
            np.savez_compressed(file, **{**vars(self), "accuracies": accuracies.astype(np.int16)})

    @classmethod
    def load(cls, path: Path = SHIPPED) -> KnownCurves:
        """Read curves that `save` wrote; by default those of the suite."""
        with np.load(path, allow_pickle=False) as arrays:
            stored: dict[str, Any] = {field.name: arrays[field.name] for field in fields(cls)}
        accuracies = stored.pop("accuracies")
        return cls(accuracies=np.where(accuracies == MISSING, np.nan, accuracies / UNIT), **stored)


@cache
def shipped_curves() -> KnownCurves:
    """Return the curves of the suite."""
    return KnownCurves.load()

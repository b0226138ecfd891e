"""Values that the released programs of metrics give, where they lie beside the checkout."""

import json
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from headstart.metrics.transferability.feature_statistics import FeatureStatistics
from headstart.tests.material.root import SHARED

FOLDER = SHARED / "data" / "released_metric_values"
RANDOM = ["rand300x12k3", "rand600x40k7", "rand200x64k4", "rand500x100k10", "rand90x150k4", "rand120x300k6"]
PHOTOS = ["ants-imagenet", "ants-inat_birds", "ants-inat_insects"]
CASES = [*RANDOM, *PHOTOS]

needs_released_values = pytest.mark.skipif(
    not FOLDER.is_dir(), reason="needs the released values of HEADSTART_SHARED, by default ../shared"
)


@dataclass(frozen=True)
class Case:
    """Features, the probabilities of a source head, labels, and the released values by their names."""

    features: NDArray[np.float64]
    probabilities: NDArray[np.float64]
    labels: NDArray[np.int64]
    values: dict[str, Any]

    @cached_property
    def statistics(self) -> FeatureStatistics:
        return FeatureStatistics(self.features, self.labels)


@cache
def load(case: str) -> Case:
    """Read a case by its name."""
    with np.load(FOLDER / "cases.npz") as arrays:
        features, probabilities, labels = (arrays[f"{case}.{name}"] for name in ("features", "probabilities", "labels"))
    values = json.loads((FOLDER / "values.json").read_text())["values"][case]
    return Case(features.astype(np.float64), probabilities.astype(np.float64), labels, values)

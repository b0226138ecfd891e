"""The methods that are tried, how each is fitted, and its predictions of samples that it has not learnt."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from importlib import import_module

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from headstart.metrics.arrays import Floats
from headstart.metrics.few_labels.folds import KEPT
from headstart.modules.arithmetic import common_offset, deterministic, seen_rows
from headstart.modules.method import Method, MethodStart
from headstart.modules.methods.catalogue import METHODS
from headstart.modules.methods.computed_once import ComputedOnce
from headstart.modules.methods.nearest_class_mean import NearestClassMean
from headstart.modules.methods.random_projection import RandomProjection
from headstart.modules.methods.recursive_least_squares import RecursiveLeastSquares
from headstart.modules.methods.semantic_class_mean import SemanticClassMean

# Methods that no other is significantly better than in some setting of the local suite (docs/methods.md), the
# best over all settings first. Ties go to the first. `LearnedSemanticPrior` depends on the order of the samples.
CANDIDATES = (
    "GaussianDiscriminantAnalysis",
    "StreamingLDA",
    "RecursiveLeastSquares",
    "KernelRidge",
    "LogisticRegression",
    "RandomProjection",
    "ShrunkenClassMean",
    "SemanticClassMean",
)
# The most samples of which methods are tried whose cost grows faster than the number of samples.
MOST_SAMPLES = {"LogisticRegression": 1_000, "KernelRidge": 5_000, "RandomProjection": 5_000}
# These begin again with every batch; the others are fed in batches, which bound their memory.
AT_ONCE = ("LogisticRegression", "KernelRidge")
LARGEST_BATCH = 1_000
# Values of the vectors that are gathered at once.
GATHERED = 2**25
# Sets whose predictions are in memory at once where only their accuracy is wanted.
SETS = 8
# Samples that all orderings together learn for one point of a curve, and the fewest orderings of a point.
LEARNT, FEWEST = 4_000, 5


@dataclass(frozen=True)
class Labelled:
    """Labelled samples of one frozen backbone.

    Attributes:
        features: `[samples, features]`.
        labels: Class of each, from 0, `[samples]`.
        classes: Number of classes.
        source_head: Weights of the backbone's own classifier, `[source classes, features]`; None where it has none.
        source_bias: Its bias, `[source classes]`.
        seed: Seed of a method's random numbers.
        offset: What was subtracted from the backbone's features, `[features]`; None if nothing was.
    """

    features: Tensor
    labels: Tensor
    classes: int
    source_head: Tensor | None = None
    source_bias: Tensor | None = None
    seed: int = 0
    offset: Tensor | None = None

    def without_offset(self) -> "Labelled":
        """Return the samples less the common offset of their features, if they have one.

        The source head has the same logits on them.
        """
        offset = common_offset(self.features[seen_rows(len(self.labels))])
        if offset is None:
            return self
        bias = self.source_bias
        if self.source_head is not None and bias is not None:
            bias = (bias + self.source_head.double() @ offset.double()).float()
        return replace(self, features=self.features - offset, source_bias=bias, offset=offset)

    def start(self, vectors: Tensor, sets: int, size: int) -> MethodStart:
        """Return the start of a method.

        Args:
            vectors: Training vectors, `[samples, width]`.
            sets: Number of sets of samples that it learns side by side.
            size: Samples of each set.
        """
        return MethodStart(
            features=vectors.shape[1],
            classes=self.classes,
            ordering_numbers=range(sets),
            max_samples=size,
            seed=self.seed,
            source_head=self.source_head,
            source_bias=self.source_bias,
            samples=vectors,
        )


def find_candidates(samples: Labelled) -> list[str]:
    """Return the classes of the methods that can be tried on samples, the best on other data first."""
    return [
        name
        for name in CANDIDATES
        if len(samples.labels) <= MOST_SAMPLES.get(name, len(samples.labels))
        and (samples.source_head is not None or not METHODS[name].needs_source_head)
    ]


def create(name: str) -> Method:
    """Create a method with its defaults, by the name of its class in `METHODS`."""
    method: Method = getattr(import_module(METHODS[name].module), name)()
    return method


@torch.no_grad()
def fit_sets(name: str, method: Method, samples: Labelled, vectors: Tensor, sets: Tensor) -> None:
    """Fit a method to several sets of samples side by side.

    Args:
        name: Name of its class in `METHODS`.
        method: The method.
        samples: The samples.
        vectors: Training vectors, `[samples, width]`.
        sets: Indices of the samples of each set, `[sets, size]`.
    """
    method.begin(samples.start(vectors, *sets.shape))
    batch = sets.shape[1] if name in AT_ONCE else LARGEST_BATCH
    for part in sets.split(batch, dim=1):
        method.indices = part
        method.adapt(vectors[part], samples.labels[part])


def fit_all(name: str, samples: Labelled) -> Method:
    """Return a method that has learnt all samples, as one ordering.

    Args:
        name: Name of its class in `METHODS`.
        samples: The samples.
    """
    method = create(name)
    fit_sets(name, method, samples, samples.features, torch.arange(len(samples.labels))[None])
    return method


class _MeanOfRepresented(SemanticClassMean):
    """Semantic class mean of samples whose vectors in both spaces, one after the other, are computed already."""

    spaces = 1

    def begin(self, start: MethodStart) -> None:
        """Start without any sample."""
        NearestClassMean.begin(self, start)
        self.represented = ComputedOnce()

    def represent(self, inputs: Tensor) -> Tensor:
        """Return the vectors, which are the inputs."""
        return inputs


@dataclass(frozen=True)
class LeftOut:
    """A method and all samples as it sees them, ready to be fitted to parts of them many times.

    Attributes:
        name: Name of the method's class.
        build: Builds the method.
        vectors: Training vectors, `[samples, width]`.
        samples: The samples.
    """

    name: str
    build: Callable[[], Method]
    vectors: Tensor
    samples: Labelled

    @torch.no_grad()
    def predict(self, learnt: Tensor, others: Tensor) -> Tensor:
        """Predict samples after other samples were learnt.

        Args:
            learnt: Samples that each set learns, `[sets, size]`.
            others: Samples that each set predicts, `[sets, predicted]`.

        Returns:
            Logits, `[sets, predicted, classes]`.
        """
        step = max(1, GATHERED // (learnt.shape[1] * self.vectors.shape[1]))
        parts = []
        with deterministic():
            for some, asked in zip(learnt.split(step), others.split(step), strict=True):
                method = self.build()
                fit_sets(self.name, method, self.samples, self.vectors, some)
                parts.append(method(self.vectors[asked]))
        return torch.cat(parts)

    def predict_folds(self, folds: NDArray[np.int64]) -> Tensor:
        """Predict every sample after the other folds were learnt.

        Args:
            folds: Fold of each sample in each split, -1 for samples that all folds learn, `[splits, samples]`.

        Returns:
            Logits, `[splits, samples, classes]`; NaN for samples that are never left out.
        """
        result = torch.full((*folds.shape, self.samples.classes), torch.nan)
        for splits, learnt, left_out in _sets_of_equal_size(folds, 1):
            result[splits[:, None], left_out] = self.predict(learnt, left_out)
        return result

    def accuracy(self, folds: NDArray[np.int64], left_out: int) -> float:
        """Return the accuracy on folds that are left out, over all runs of so many folds and all splits.

        Args:
            folds: As for `predict_folds`.
            left_out: Number of folds that are left out at once.
        """
        right = list[Tensor]()
        for _, learnt, others in _sets_of_equal_size(folds, left_out):
            for part, rest in zip(learnt.split(SETS), others.split(SETS), strict=True):
                right.append((self.predict(part, rest).argmax(-1) == self.samples.labels[rest]).flatten())
        return float(torch.cat(right).double().mean())


def prepare(name: str, samples: Labelled) -> LeftOut:
    """Compute what a method makes of each sample by itself, once for all fits.

    All methods depend on their vectors through inner products alone. If there are fewer samples than dimensions, they
    are rotated into the space that they span. The predictions stay the same, to rounding, at a fraction of the cost.

    Args:
        name: Name of the method's class.
        samples: The samples.
    """
    method = create(name)
    if isinstance(method, RandomProjection):
        ridge = method.ridge
        method.begin(samples.start(samples.features, 1, 1))
        projected = method.unit_features(samples.features)
        return LeftOut(name, lambda: RecursiveLeastSquares(ridge), rotate(projected), samples)
    if isinstance(method, SemanticClassMean):
        method.begin(samples.start(samples.features, 1, 1))
        halves = method.represent(samples.features).chunk(2, -1)
        return LeftOut(name, _MeanOfRepresented, torch.cat([*map(rotate, halves)], -1), samples)
    return LeftOut(name, lambda: create(name), rotate(samples.features), samples)


def rotate(vectors: Tensor) -> Tensor:
    """Return vectors with the same inner products in as many dimensions as there are vectors, if these are fewer.

    Args:
        vectors: `[samples, width]`.

    Returns:
        `[samples, min(samples, width)]`: of the decomposition X' = QR, the transpose of R.
    """
    if len(vectors) >= vectors.shape[1]:
        return vectors
    triangle: Tensor = torch.linalg.qr(vectors.double().mT, mode="r").R
    return triangle.mT.to(vectors.dtype).contiguous()


def _sets_of_equal_size(folds: NDArray[np.int64], width: int) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Group the runs of some folds, of all splits, that leave out the same number of samples.

    Yields:
        Their splits `[sets]`, the samples that they learn `[sets, size]` and those that they leave out, `[sets, rest]`.
    """
    by_size: dict[int, list[tuple[int, NDArray[np.bool_]]]] = {}
    count = int(folds.max()) + 1
    for split, assigned in enumerate(folds):
        for first in range(count):
            is_left_out = (assigned != KEPT) & ((assigned - first) % count < width)
            by_size.setdefault(int(is_left_out.sum()), []).append((split, is_left_out))
    by_size.pop(0, None)

    for members in by_size.values():
        learnt, left_out = (np.stack([np.flatnonzero(flags == kind) for _, flags in members]) for kind in (False, True))
        yield torch.tensor([split for split, _ in members]), torch.from_numpy(learnt), torch.from_numpy(left_out)


def curve_sizes(samples: int, classes: int) -> list[int]:
    """Return the numbers of samples at which a curve has points: 1, 2, 3, 4, 6, 8, 12, ... samples per class.

    Args:
        samples: Number of samples; the last size is smaller.
        classes: Number of classes.
    """
    steps = sorted({factor * 2**power for power in range(32) for factor in (1, 1.5) if factor * 2**power % 1 == 0})
    return [int(step) * classes for step in steps if step * classes < samples]


def learning_curve(prepared: LeftOut, orders: NDArray[np.int64], sizes: list[int]) -> list[Floats]:
    """Measure the accuracy of a method on the samples that come next, after so many were learnt.

    Source: A. Philip Dawid, "Present Position and Potential Developments: Some Personal Views: Statistical Theory: The
    Prequential Approach", Journal of the Royal Statistical Society A, 1984. Between two sizes, the classifier of the
    first predicts all samples up to the second. Points of many samples take fewer orderings, as each has more
    predictions.

    Args:
        prepared: The method, and the samples.
        orders: Orderings of the samples, `[orderings, samples]`.
        sizes: As `curve_sizes` returns them.

    Returns:
        Accuracies at each size, `[orderings]`, of the first orderings where not all are fed.
    """
    # Nobody can know the only sample of a class before it is learnt.
    labels = prepared.samples.labels
    is_known = torch.bincount(labels)[labels] > 1
    points = []
    for size, end in zip(sizes, [*sizes[1:], orders.shape[1]], strict=True):
        rows = torch.from_numpy(orders[: max(FEWEST, LEARNT // size)])
        learnt, following = rows[:, :size], rows[:, size:end]
        predicted = prepared.predict(learnt, following).argmax(-1)
        right, scored = predicted == labels[following], is_known[following]
        points.append(((right & scored).sum(1).double() / scored.sum(1).clamp(min=1)).numpy())
    return points

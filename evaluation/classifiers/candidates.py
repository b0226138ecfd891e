"""The methods that are tried, and how each is fitted."""

from dataclasses import dataclass, replace
from importlib import import_module

import torch
from torch import Tensor

from headstart.modules.arithmetic import common_offset, seen_rows
from headstart.modules.method import Method, MethodStart
from headstart.modules.methods.catalogue import METHODS

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

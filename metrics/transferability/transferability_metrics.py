"""Transferability metrics as torchmetrics classes, which accumulate batches.

The states are sums in float64, and are added across processes. The memory therefore does not grow with the number of
samples; only LEEP stores its rows. Features whose mean is far larger than their spread lose digits in such sums, which
the functions on whole arrays do not. `set_dtype` does not change the states. A GPU is synchronised once per batch, to
check the batch.
"""

from typing import Any, Self

import numpy as np
import torch
from torch import Tensor
from torchmetrics import Metric
from torchmetrics.utilities import dim_zero_cat

from headstart.metrics.arrays import check_integer, to_host
from headstart.metrics.transferability.feature_statistics import Spectrum, check_labels, decompose, sort_by_class
from headstart.metrics.transferability.gbc import Covariance, Variant, check_options, class_overlaps
from headstart.metrics.transferability.h_score import explained_classes
from headstart.metrics.transferability.leep import leep
from headstart.metrics.transferability.log_me import mean_log_evidence


class _FixedPrecision(Metric):
    """A metric whose states do not change their precision."""

    full_state_update = False

    def set_dtype(self, dst_type: str | torch.dtype) -> Self:
        """Keep the states as they are: sums in less than float64 would lose digits of the score."""
        return self


class ClassSums(_FixedPrecision):
    """Numbers of samples and sums of features of every class, and second moments in the form that a subclass needs.

    The metrics leave out classes without samples.

    Args:
        num_classes: Number of target classes; labels are below it.
        num_features: Number of features.
        **kwargs: As for any metric of torchmetrics.
    """

    squares_by_class = False
    counts: Tensor
    sums: Tensor
    moments: Tensor

    def __init__(self, num_classes: int, num_features: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        check_integer("num_classes", num_classes, 1)
        check_integer("num_features", num_features, 1)
        rows = num_classes if self.squares_by_class else num_features
        shapes = {"counts": (num_classes,), "sums": (num_classes, num_features), "moments": (rows, num_features)}
        for name, shape in shapes.items():
            self.add_state(name, torch.zeros(shape, dtype=torch.float64), dist_reduce_fx="sum")

    def update(self, features: Tensor, labels: Tensor) -> None:
        """Add a batch.

        Args:
            features: `[samples, features]`.
            labels: Integers from 0, `[samples]`.

        Raises:
            ValueError: The shapes do not fit, features are not finite, or labels are not of these classes.
        """
        classes, dimensions = self.sums.shape
        if features.ndim != 2 or features.shape[1] != dimensions:
            raise ValueError(f"features must be [samples, {dimensions}], not {list(features.shape)}")
        codes, rows = check_labels("labels", labels, len(features)).long(), features.detach().double()
        outside, infinite = ((codes < 0) | (codes >= classes)).any(), ~rows.isfinite().all()
        # A GPU is synchronised once, and again only for the message.
        if bool(outside | infinite):
            if not bool(outside):
                raise ValueError("features must be finite")
            values = to_host(labels)
            raise ValueError(f"labels must be from 0 to {classes - 1}, not from {values.min()} to {values.max()}")

        self.counts.index_add_(0, codes, torch.ones_like(rows[:, 0]))
        self.sums.index_add_(0, codes, rows)
        if self.squares_by_class:
            self.moments.index_add_(0, codes, rows**2)
        else:
            self.moments += rows.T @ rows

    @property
    def _present(self) -> Tensor:
        present = self.counts > 0
        if not bool(present.any()):
            raise ValueError("features: none have been added yet")
        return present


class _SquaresByClass(ClassSums):
    squares_by_class = True

    def _means_and_variances(self) -> tuple[Tensor, Tensor]:
        means = self.sums / self.counts[:, None]
        return means, (self.moments / self.counts[:, None] - means**2).clamp(min=0)


class ClassStatistics(_SquaresByClass):
    """Numbers of samples, means and variances of every class; see `ClassSums`."""

    def compute(self) -> dict[str, Tensor]:
        """Compute the statistics of the samples so far.

        Returns:
            `counts` `[classes]`, `means` and `variances` `[classes, features]`, NaN where a class has no samples;
            variances are divided by the number of samples.
        """
        means, variances = self._means_and_variances()
        return {"counts": self.counts, "means": means, "variances": variances}


class GBC(_SquaresByClass):
    """GBC of all features, see `headstart.metrics.transferability.gbc`.

    There is no reduction to principal components. Their axes are known only at the end, so variances along them would
    need the whole covariance of every class, `classes * features^2` numbers. Project the features onto fixed axes
    instead.

    Args:
        num_classes: Number of target classes; labels are below it.
        num_features: Number of features.
        covariance: `spherical` or `diagonal`.
        variant: `textbook` or `released`.
        **kwargs: As for any metric of torchmetrics.
    """

    higher_is_better = True

    def __init__(
        self,
        num_classes: int,
        num_features: int,
        covariance: Covariance = "spherical",
        variant: Variant = "textbook",
        **kwargs: Any,
    ) -> None:
        super().__init__(num_classes, num_features, **kwargs)
        check_options(covariance, variant)
        self.covariance, self.variant = covariance, variant

    def compute(self) -> Tensor:
        """Compute the score of the samples so far."""
        means, variances = (moment[self._present] for moment in self._means_and_variances())
        overlaps: Tensor = class_overlaps(means, variances, self.covariance, self.variant)
        return 0.0 - overlaps.sum()


class _SecondMoments(ClassSums):
    """Class sums, and the Gram matrix of all features."""

    higher_is_better = True

    def _spectrum(self, centred: bool) -> tuple[Spectrum, Tensor]:
        """Return the spectrum, and the counts of the classes that have samples, `[classes, 1]`."""
        present = self._present
        counts, sums, gram = self.counts[present, None], self.sums[present], self.moments
        if centred:
            mean = sums.sum(0) / counts.sum()
            gram = gram - counts.sum() * mean[:, None] * mean
            sums = sums - counts * mean
        rounding = max(float(counts.sum()), len(gram)) * np.finfo(np.float64).eps
        eigenvalues, vectors = decompose(gram, rounding, float(self.moments.diagonal().max()))
        return Spectrum(eigenvalues, vectors, sums @ vectors), counts


class HScore(_SecondMoments):
    """H-score, see `headstart.metrics.transferability.h_score` and `ClassSums`.

    There is no shrinkage: its intensity needs the fourth powers of distances from a mean that is known only at the end.
    """

    def compute(self) -> Tensor:
        """Compute the score of the samples so far."""
        return self.sums.new_tensor(explained_classes(*self._spectrum(centred=True)))


class LogME(_SecondMoments):
    """LogME, see `headstart.metrics.transferability.log_me` and `ClassSums`."""

    def compute(self) -> Tensor:
        """Compute the score of the samples so far."""
        spectrum, counts = self._spectrum(centred=False)
        return self.sums.new_tensor(mean_log_evidence(spectrum, counts, int(counts.sum()), self.sums.shape[1]))


class LEEP(_FixedPrecision):
    """LEEP, see `headstart.metrics.transferability.leep`.

    It stores every row in its own precision. The logarithm is of a mixture whose weights are the probabilities of the
    target classes given a source class. These are known only after the last sample.

    Args:
        **kwargs: As for any metric of torchmetrics.
    """

    higher_is_better = True
    probabilities: list[Tensor]
    labels: list[Tensor]

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.add_state("probabilities", [], dist_reduce_fx="cat")
        self.add_state("labels", [], dist_reduce_fx="cat")

    def update(self, probabilities: Tensor, labels: Tensor) -> None:
        """Add a batch.

        Args:
            probabilities: Of the source classes, `[samples, source classes]`, as many as before.
            labels: Target labels, integers from 0, `[samples]`.

        Raises:
            ValueError: The shapes do not fit, or labels are not integers from 0.
        """
        width = self.probabilities[0].shape[1] if self.probabilities else None
        shape = probabilities.shape
        if len(shape) != 2 or not shape[1] or width not in (None, shape[1]):
            raise ValueError(f"probabilities must be [samples, {width or 'source classes'}], not {list(shape)}")
        if bool((check_labels("labels", labels, len(probabilities)).long() < 0).any()):
            sort_by_class(labels, len(probabilities))  # raises the error
        self.probabilities.append(probabilities.detach())
        self.labels.append(labels)

    def compute(self) -> Tensor:
        """Compute the score of the samples so far."""
        if not len(self.probabilities):
            raise ValueError("probabilities: none have been added yet")
        probabilities = dim_zero_cat(self.probabilities)
        return probabilities.new_tensor(leep(probabilities, dim_zero_cat(self.labels)), dtype=torch.float64)

"""Transferability metrics as torchmetrics classes: they collect batches, and compute the function of all rows.

Rows are stored in their own precision, so memory grows with the number of samples, and processes are joined row by row.
"""

from collections.abc import Callable
from typing import Any, Self

import torch
from torch import Tensor
from torchmetrics import Metric
from torchmetrics.utilities import dim_zero_cat

from headstart.metrics.transferability.feature_statistics import check_labels
from headstart.metrics.transferability.gbc import PRINCIPAL_COMPONENTS, Covariance, check_options, gbc
from headstart.metrics.transferability.gbc import Variant as GBCVariant
from headstart.metrics.transferability.h_score import h_score
from headstart.metrics.transferability.leep import leep
from headstart.metrics.transferability.log_me import log_me
from headstart.metrics.transferability.variants import Variant, check_variant


class _OfRows(Metric):
    """A function of all rows and their labels.

    Attributes:
        rows: Batches of what the function takes first.
        labels: Batches of labels.
    """

    full_state_update = False
    higher_is_better = True
    function: Callable[..., float]
    name = "features"
    rows: list[Tensor]
    labels: list[Tensor]

    def __init__(self, options: dict[str, Any], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.options = options
        self.add_state("rows", [], dist_reduce_fx="cat")
        self.add_state("labels", [], dist_reduce_fx="cat")

    def set_dtype(self, dst_type: str | torch.dtype) -> Self:
        """Keep the batches as they are: labels are integers."""
        return self

    def update(self, rows: Tensor, labels: Tensor) -> None:
        """Add a batch.

        Args:
            rows: Features, or for LEEP probabilities of the source classes, `[samples, columns]`.
            labels: Integers from 0, `[samples]`.

        Raises:
            ValueError: The shapes do not fit, or labels are no integers.
        """
        width = self.rows[0].shape[1] if self.rows else None
        if rows.ndim != 2 or not rows.shape[1] or width not in (None, rows.shape[1]):
            raise ValueError(f"{self.name} must be [samples, {width or 'columns'}], not {list(rows.shape)}")
        check_labels("labels", labels, len(rows))
        self.rows.append(rows.detach())
        self.labels.append(labels)

    def compute(self) -> Tensor:
        """Compute the score of the samples so far; the function's ValueError where there is none."""
        if not len(self.rows):
            raise ValueError(f"{self.name}: none have been added yet")
        score = type(self).function(dim_zero_cat(self.rows), dim_zero_cat(self.labels), **self.options)
        return torch.tensor(score, dtype=torch.float64, device=self.device)


class GBC(_OfRows):
    """GBC, see `headstart.metrics.transferability.gbc`.

    Args:
        covariance: `spherical` or `diagonal`.
        pca: Number of principal components, at most; None keeps the features.
        variant: `textbook` or `released`.
        **kwargs: As for any metric of torchmetrics.
    """

    function = staticmethod(gbc)

    def __init__(
        self,
        covariance: Covariance = "spherical",
        pca: int | None = PRINCIPAL_COMPONENTS,
        variant: GBCVariant = "textbook",
        **kwargs: Any,
    ) -> None:
        check_options(covariance, variant)
        super().__init__({"covariance": covariance, "pca": pca, "variant": variant}, **kwargs)


class HScore(_OfRows):
    """H-score, see `headstart.metrics.transferability.h_score`.

    Args:
        shrinkage: Whether the covariance is shrunk.
        **kwargs: As for any metric of torchmetrics.
    """

    function = staticmethod(h_score)

    def __init__(self, shrinkage: bool = False, **kwargs: Any) -> None:
        super().__init__({"shrinkage": shrinkage}, **kwargs)


class LogME(_OfRows):
    """LogME, see `headstart.metrics.transferability.log_me`.

    Args:
        variant: `published` or `released`.
        **kwargs: As for any metric of torchmetrics.
    """

    function = staticmethod(log_me)

    def __init__(self, variant: Variant = "published", **kwargs: Any) -> None:
        check_variant(variant)
        super().__init__({"variant": variant}, **kwargs)


class LEEP(_OfRows):
    """LEEP, see `headstart.metrics.transferability.leep`; it takes probabilities in place of features.

    Args:
        **kwargs: As for any metric of torchmetrics.
    """

    function = staticmethod(leep)
    name = "probabilities"

    def __init__(self, **kwargs: Any) -> None:
        super().__init__({}, **kwargs)

"""Transferability metrics as torchmetrics classes: they collect batches, and compute the function of all rows.

Rows are stored in their own precision, so memory grows with the number of samples, and processes are joined row by row.
"""

import inspect
from collections.abc import Callable
from typing import Any, Self

import torch
from torch import Tensor
from torchmetrics import Metric
from torchmetrics.utilities import dim_zero_cat

from headstart.metrics.transferability.gbc import gbc
from headstart.metrics.transferability.h_score import h_score
from headstart.metrics.transferability.leep import leep
from headstart.metrics.transferability.log_me import log_me


class _OfRows(Metric):
    """A function of all rows and their labels.

    Args:
        **options: Options of the function, and those of any metric of torchmetrics.

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

    def __init__(self, **options: Any) -> None:
        _, _, *names = inspect.signature(type(self).function).parameters
        self.options = {name: options.pop(name) for name in names if name in options}
        super().__init__(**options)
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
            ValueError: The shapes do not fit.
        """
        width = self.rows[0].shape[1] if self.rows else None
        if rows.ndim != 2 or not rows.shape[1] or width not in (None, rows.shape[1]):
            raise ValueError(f"{self.name} must be [samples, {width or 'columns'}], not {list(rows.shape)}")
        if labels.shape != rows.shape[:1]:
            raise ValueError(f"labels must be [{len(rows)}], one for every sample, not {list(labels.shape)}")
        self.rows.append(rows.detach())
        self.labels.append(labels)

    def compute(self) -> Tensor:
        """Compute the score of the samples so far; the function's ValueError where there is none."""
        if not len(self.rows):
            raise ValueError(f"{self.name}: none have been added yet")
        score = type(self).function(dim_zero_cat(self.rows), dim_zero_cat(self.labels), **self.options)
        return torch.tensor(score, dtype=torch.float64, device=self.device)


class GBC(_OfRows):
    """GBC, see `headstart.metrics.transferability.gbc`."""

    function = staticmethod(gbc)


class HScore(_OfRows):
    """H-score, see `headstart.metrics.transferability.h_score`."""

    function = staticmethod(h_score)


class LogME(_OfRows):
    """LogME, see `headstart.metrics.transferability.log_me`."""

    function = staticmethod(log_me)


class LEEP(_OfRows):
    """LEEP, see `headstart.metrics.transferability.leep`; it takes probabilities in place of features."""

    function = staticmethod(leep)
    name = "probabilities"

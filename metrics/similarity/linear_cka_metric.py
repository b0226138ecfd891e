"""Linear CKA as a torchmetrics class: it collects batches, and computes the function of all rows.

Rows are stored in their own precision, so memory grows with the number of stimuli, and processes are joined row by row.
"""

import math
from typing import Any, Self

import torch
from torch import Tensor
from torchmetrics import Metric
from torchmetrics.utilities import dim_zero_cat

from headstart.metrics.similarity.cka import linear_cka


class LinearCKA(Metric):
    """Linear CKA of two embeddings of the same stimuli, given batch by batch: `metrics.linear_cka` of all rows.

    Called as a function (`forward`), it adds a batch and returns the value of that batch. The value is NaN where CKA
    of the batch alone is undefined: too few rows, all rows equal, or values that are not finite.

    Args:
        debiased: Whether the debiased HSIC is used instead of the biased, which needs at least 4 rows instead of 2.
        kwargs: Options of `torchmetrics.Metric`.

    Attributes:
        x: Batches of rows of the one embedding.
        y: Batches of rows of the other.
    """

    higher_is_better = True
    full_state_update = False
    x: list[Tensor]
    y: list[Tensor]

    def __init__(self, debiased: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.debiased = debiased
        self.add_state("x", [], dist_reduce_fx="cat")
        self.add_state("y", [], dist_reduce_fx="cat")

    def set_dtype(self, dst_type: str | torch.dtype) -> Self:
        """Keep the batches as they are: the function computes in float64."""
        return self

    def update(self, x: Tensor, y: Tensor) -> None:
        """Add a batch.

        Args:
            x: Rows of the one embedding, `[batch, dx]`, real.
            y: Rows of the other for the same stimuli, `[batch, dy]`, real.

        Raises:
            ValueError: One is not 2-D; the numbers of rows differ; or a width differs from that of earlier batches. The
                rows so far stay.
        """
        for name, values, earlier in (("x", x, self.x), ("y", y, self.y)):
            width = earlier[0].shape[1] if earlier else None
            if values.ndim != 2 or width not in (None, values.shape[1]):
                raise ValueError(f"{name}: must be [batch, {width or 'dim'}], not {list(values.shape)}")
        if len(x) != len(y):
            raise ValueError(f"y: {len(y)} rows, but x has {len(x)}; both must be of the same stimuli")
        self.x.append(x.detach())
        self.y.append(y.detach())

    def compute(self) -> Tensor:
        """Compute linear CKA of all rows so far, a float64 scalar.

        Raises:
            ValueError: As `metrics.linear_cka`; or there are no rows.
        """
        if not len(self.x):
            raise ValueError("x: no rows so far; update must come before compute")
        value = linear_cka(dim_zero_cat(self.x), dim_zero_cat(self.y), self.debiased)
        return torch.tensor(value, dtype=torch.float64, device=self.device)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """Add a batch as `update` does, and compute linear CKA of it alone.

        Returns:
            A float64 scalar, NaN where CKA of the batch is undefined; its rows are added all the same.
        """
        # Metrics of a collection may share these lists, to which each of them would add the batch.
        self.x, self.y = [*self.x], [*self.y]
        self.update(x, y)
        try:
            value = linear_cka(x, y, self.debiased)
        except ValueError:
            value = math.nan
        # Loggers read the value of the latest batch here.
        of_batch = torch.tensor(value, dtype=torch.float64, device=self.device)
        self._forward_cache = of_batch  # type: ignore[assignment]
        return of_batch

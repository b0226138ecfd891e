"""Linear CKA as a torchmetrics class, which takes the embeddings in batches and stores only sums of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import reduce
from typing import Any

import torch
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary
from torchmetrics import Metric

from headstart.metrics.similarity.gram_products import GramProducts

# The widths of packed moments; reading them from the vector would wait for a GPU.
_WIDTHS = WeakTensorKeyDictionary()


class LinearCKA(Metric):
    """Linear CKA of two embeddings of the same stimuli, given batch by batch.

    Equals `metrics.linear_cka` on all rows up to rounding in float64, however they are split into batches and
    processes. Rows that differ in their last bit alone raise no error here. Memory is O((dx + dy)^2), whatever the
    number of rows; the widths are those of the first batch.

    Called as a function (`forward`), it takes a batch and returns the value of that batch. The value is NaN where CKA
    of the batch alone is undefined: too few rows, all rows equal, or values that are not finite.

    Args:
        debiased: Whether the debiased HSIC is used instead of the biased, which needs at least 4 rows instead of 2.
        kwargs: Options of `torchmetrics.Metric`.
    """

    is_differentiable = False
    higher_is_better = True
    full_state_update = False
    plot_lower_bound = 0.0
    plot_upper_bound = 1.0

    # Packed moments: torchmetrics gathers only flat lists from processes without a batch.
    moments: list[Tensor]

    def __init__(self, debiased: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.debiased = debiased
        self._in_forward = False
        self.set_dtype(torch.float64)
        self.add_state("moments", default=[], dist_reduce_fx="cat")

    def update(self, x: Tensor, y: Tensor) -> None:
        """Add a batch.

        Args:
            x: Rows of the one embedding, `[batch, dx]`, real.
            y: Rows of the other for the same stimuli, `[batch, dy]`, real.

        Raises:
            ValueError: One is not a tensor, not 2-D or not real; the numbers of rows differ; or a width differs from
                that of earlier batches. The rows so far stay.
        """
        before = self._check_batch(x, y)
        if len(x) == 0:
            return
        rows = torch.cat([x.detach().double(), y.detach().double()], dim=1)
        shift = rows[0] if before is None else before.shift
        batch = _Moments.of(rows, x.shape[1], shift)
        self.moments = [(batch if before is None else before + batch).packed()]

    def compute(self) -> Tensor:
        """Compute linear CKA of all rows so far, a float64 scalar.

        Raises:
            ValueError: As `metrics.linear_cka`: too few rows, values that are not finite, or CKA is undefined.
        """
        moments = self._merged()
        try:
            if moments is None:
                raise ValueError("x: no rows so far; update must come before compute")
            value = float(moments.products().cka(["x", "y"], self.debiased)[0, 1])
        except ValueError:
            # An error within forward would lose the rows of all earlier batches.
            if not self._in_forward:
                raise
            value = math.nan
        return torch.tensor(value, dtype=torch.float64, device=self.device)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """Add a batch as `update` does, and compute linear CKA of it alone.

        Returns:
            A float64 scalar, NaN where CKA of the batch is undefined; its rows are added all the same.
        """
        self._check_batch(x, y)
        self._in_forward = True
        try:
            value: Tensor = super().forward(x, y)
        finally:
            self._in_forward = False
        return value

    def _check_batch(self, x: Tensor, y: Tensor) -> _Moments | None:
        """Raise a ValueError for a batch that does not fit, and return the moments so far."""
        for name, values in (("x", x), ("y", y)):
            if not isinstance(values, Tensor):
                raise ValueError(
                    f"{name}: {type(values).__name__}, but a tensor [batch, dim] is needed; see torch.as_tensor"
                )
            if values.ndim != 2 or values.is_complex():
                raise ValueError(
                    f"{name}: {values.dtype} of shape {list(values.shape)}, but a real matrix [batch, dim] is needed"
                )
        if len(x) != len(y):
            raise ValueError(f"y: {len(y)} rows, but x has {len(x)}; both must be of the same stimuli")
        before = self._merged()
        if len(x) and before is not None and before.widths != (x.shape[1], y.shape[1]):
            raise ValueError(f"x and y: widths {(x.shape[1], y.shape[1])}, but earlier batches had {before.widths}")
        return before

    def _merged(self) -> _Moments | None:
        # Merged over processes, they are one vector instead of a list.
        vectors = [self.moments] if isinstance(self.moments, Tensor) else self.moments
        parts = [moments for packed in vectors for moments in _Moments.unpacked(packed)]
        return reduce(_Moments.__add__, parts) if parts else None

    def _reduce_states(self, incoming_state: dict[str, Any]) -> None:
        # Called by forward and merge_state; otherwise the list would grow with every forward.
        super()._reduce_states(incoming_state)
        merged = self._merged()
        self.moments = [] if merged is None else [merged.packed()]


@dataclass(frozen=True)
class _Moments:
    """Sums over rows `z = [x, y]`, from which the products of the centred Gram matrices follow.

    With `u = x - s`, `v = y - t` for a shift `[s, t]` near the rows, which keeps the sums accurate, every row is
    written as `w = [1, u, v, |u|^2, |v|^2]`. The products depend on `sum w w^T` alone. Because `w` for another shift is
    a linear map of `w` for this one, sums can be merged across shifts, and centred at the mean.

    Attributes:
        shift: `[s, t]`, `[dx + dy]`.
        sums: `sum w w^T`, `[dx + dy + 3, dx + dy + 3]`.
        split: dx.
    """

    shift: Tensor
    sums: Tensor
    split: int

    @classmethod
    def of(cls, rows: Tensor, split: int, shift: Tensor) -> _Moments:
        """Sum rows `[x, y]`, `[rows, dx + dy]`, for a shift near them, `[dx + dy]`; split is dx."""
        near = rows - shift
        squares = [part.square().sum(dim=1, keepdim=True) for part in (near[:, :split], near[:, split:])]
        lifted = torch.cat([torch.ones_like(near[:, :1]), near, *squares], dim=1)
        return cls(shift, lifted.T @ lifted, split)

    @property
    def widths(self) -> tuple[int, int]:
        """The widths dx and dy."""
        return self.split, len(self.shift) - self.split

    def __add__(self, other: _Moments) -> _Moments:
        """Return the moments of the rows of both, for the shift of the first."""
        return _Moments(self.shift, self.sums + other.shifted(self.shift).sums, self.split)

    def shifted(self, shift: Tensor) -> _Moments:
        """Return the moments of the same rows for another shift."""
        if shift is self.shift or not (step := shift - self.shift).any():
            return self
        return _Moments(shift, self._lift(self._lift(self.sums, step).T, step), self.split)

    def _lift(self, sums: Tensor, step: Tensor) -> Tensor:
        """Map the rows of the sums as `u - e` and `|u - e|^2 = |u|^2 - 2 e.u + |e|^2` follow from u."""
        lifted = sums.clone()
        lifted[1:-2] -= torch.outer(step, sums[0])
        for row, part in ((-2, slice(0, self.split)), (-1, slice(self.split, None))):
            lifted[row] += step[part].square().sum() * sums[0] - 2 * step[part] @ sums[1:-2][part]
        return lifted

    def products(self) -> GramProducts:
        """Compute the products of the centred Gram matrices K of x and L of y, by `<K, L> = |sum u v^T|_F^2`."""
        n = float(self.sums[0, 0])
        sums = self.shifted(self.shift + self.sums[0, 1:-2] / n).sums
        parts = slice(1, 1 + self.split), slice(1 + self.split, -2)
        grams = torch.stack([sums[i, j].square().sum() for i in parts for j in parts]).reshape(2, 2)
        return GramProducts(round(n), *(part.cpu().numpy() for part in (grams, sums[-2:, -2:], sums[0, -2:])))

    def packed(self) -> Tensor:
        """Write the moments as a vector in float64 that starts with the widths."""
        # A filled tensor, since a copy from the processor would wait for the GPU.
        widths = [self.shift.new_full((1,), width) for width in self.widths]
        packed = torch.cat([*widths, self.shift, self.sums.flatten()])
        _WIDTHS[packed] = self.widths
        return packed

    @classmethod
    def unpacked(cls, packed: Tensor) -> list[_Moments]:
        """Read any number of packed moments, joined."""
        moments = []
        while len(packed):
            dx, dy = _WIDTHS.get(packed) or map(int, packed[:2].tolist())
            width, side = dx + dy, dx + dy + 3
            shift, sums, packed = packed[2:].split([width, side**2, len(packed) - 2 - width - side**2])
            moments.append(cls(shift, sums.reshape(side, side), dx))
        return moments

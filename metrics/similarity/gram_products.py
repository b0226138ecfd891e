"""The inner products of centred Gram matrices, and the HSIC and CKA that follow from them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from headstart.metrics.arrays import Floats

# A debiased self term below this part of the biased one consists of rounding errors.
DEGENERATE = 1e-10
# Smaller squares are subnormal and lose digits.
SMALLEST = float(np.finfo(np.float64).tiny / np.finfo(np.float64).eps)


@dataclass(frozen=True)
class GramProducts:
    """The inner products of the centred Gram matrices of m embeddings, on which CKA depends.

    Attributes:
        n: Number of rows of the embeddings.
        grams: `<K_i, K_j>_F`, `[m, m]`.
        diagonals: `k_i . k_j` of the diagonals, `[m, m]`.
        traces: `tr K_i`, `[m]`.
    """

    n: int
    grams: Floats
    diagonals: Floats
    traces: Floats

    @classmethod
    def of(cls, grams: Floats, diagonals: Floats) -> GramProducts:
        """Build the products from `<K_i, K_j>_F`, `[m, m]`, and the diagonals of the Gram matrices, `[m, n]`."""
        return cls(diagonals.shape[1], grams, diagonals @ diagonals.T, diagonals.sum(axis=1))

    def hsic(self, debiased: bool) -> Floats:
        """Compute HSIC of every pair, symmetric `[m, m]`, up to a factor that is common to all."""
        if not debiased:
            return self.grams
        n = self.n
        return self.grams - n / (n - 2) * self.diagonals + np.outer(self.traces, self.traces) / ((n - 1) * (n - 2))

    def normed(self, names: Sequence[str], debiased: bool) -> tuple[Floats, Floats]:
        """Compute HSIC of every pair, `[m, m]`, and the root of every self term, `[m]`, the norms in CKA.

        Raises:
            ValueError: Naming the embedding: there are too few rows, values are not finite, or CKA is undefined.
        """
        check_rows(self.n, names[0], debiased)
        with np.errstate(over="ignore", invalid="ignore"):
            hsic = self.hsic(debiased)

        for name, biased, itself in zip(names, self.grams.diagonal(), hsic.diagonal(), strict=True):
            if not math.isfinite(itself):
                msg = f"{name}: contains NaN or infinity, or values whose fourth powers exceed float64"
            elif biased < SMALLEST:
                msg = f"{name}: CKA is undefined where all rows are equal (up to differences of 1e-73)"
            elif itself <= DEGENERATE * biased:
                msg = (
                    f"{name}: debiased CKA is undefined or lost to rounding: the debiased HSIC of the embedding "
                    f"with itself is {itself / biased:.0e} of the biased one, and more than {DEGENERATE} is needed; "
                    "rows are equidistant, or equal but for one that lies far away"
                )
            else:
                continue
            raise ValueError(msg)
        return hsic, np.sqrt(hsic.diagonal())

    def cka(self, names: Sequence[str], debiased: bool) -> Floats:
        """Compute the CKA of every pair.

        Args:
            names: Names of the embeddings in messages, `[m]`.
            debiased: Whether the debiased HSIC is used instead of the biased.

        Returns:
            Symmetric matrix `[m, m]` with ones on its diagonal, at most 1, and at least 0 where biased.

        Raises:
            ValueError: As `normed`.
        """
        return to_cosines(*self.normed(names, debiased), lowest=-math.inf if debiased else 0.0)

    def estimates(self, names: Sequence[str]) -> tuple[Floats, Floats | None]:
        """Compute the CKA of every pair by both estimates.

        Args:
            names: As for `cka`.

        Returns:
            Biased and debiased, `[m, m]` each; None for a debiased one that is undefined for one embedding or more.

        Raises:
            ValueError: As `cka` for the biased estimate.
        """
        biased = self.cka(names, debiased=False)
        try:
            return biased, self.cka(names, debiased=True)
        except ValueError:  # other errors were raised by the biased estimate
            return biased, None


def to_cosines(products: Floats, norms: Floats, lowest: float) -> Floats:
    """Divide inner products `[m, m]` by norms `[m]`; BLAS may round the two halves differently."""
    matrix = ((products + products.T) / 2 / np.outer(norms, norms)).clip(lowest, 1.0)
    np.fill_diagonal(matrix, 1.0)
    return np.asarray(matrix)


def check_rows(n: int, name: str, debiased: bool) -> None:
    """Raise a ValueError for fewer than 2 rows, or than 4 for the debiased HSIC, which divides by n - 3."""
    fewest = 4 if debiased else 2
    if n < fewest:
        raise ValueError(
            f"{name}: {n} rows, but {'debiased CKA' if debiased else 'a similarity'} needs at least {fewest}"
        )

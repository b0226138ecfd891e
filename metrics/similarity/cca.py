"""Canonical correlation analysis (CCA) of embeddings, and its variants that weigh or choose directions.

Let X and Y be column-centred. Their canonical correlations are the singular values of `Q_X^T Q_Y`, where Q are
orthonormal bases of their column spaces (Bjorck and Golub, "Numerical methods for computing angles between linear
subspaces", Mathematics of Computation 1973). The measures average r of them, where r is the lower rank of the two
embeddings:

- mean CCA: the plain mean (Raghu, Gilmer, Yosinski and Sohl-Dickstein, "SVCCA: Singular Vector Canonical Correlation
  Analysis for Deep Learning Dynamics and Interpretability", NeurIPS 2017, section 2);
- SVCCA: the plain mean, of the principal axes that together hold 99 % of each embedding's variance (section 2 there);
- PWCCA: the mean weighted by how much of an embedding the i-th canonical variate h_i accounts for. The weight is `sum_j
  |<h_i, x_j>|` over the columns x_j (Morcos, Raghu and Bengio, "Insights on representational similarity in neural
  networks with canonical correlation", NeurIPS 2018, on projection weighting). The weights by X and by Y differ; the
  mean of both makes it symmetric. The weights depend on the columns, so that rotations change it. Where canonical
  correlations are equal, the definition leaves the variates open. Two embeddings whose ranks add up to n or more always
  have correlations of 1; these raise an error. Other ties are broken as in LAPACK.

n - 1 directions span everything. Any two embeddings of that rank have a correlation of 1, so the measure is undefined
and raises an error. Directions that rounding alone can explain are not counted.
"""

from collections.abc import Iterable, Sequence

import numpy as np

from headstart.metrics.arrays import Floats
from headstart.metrics.similarity.centred_embedding import CentredEmbedding, Embedding, matrix_of_pairs, read_embeddings

VARIANCE = 0.99


def pairwise_cca(embeddings: Iterable[Embedding]) -> tuple[Floats, None]:
    """Compute the mean canonical correlation of every pair of m embeddings.

    Every embedding is decomposed once, and a pair takes the singular values of a matrix of rank x rank numbers. Memory
    besides the embeddings: 8 m n r bytes with r the rank, and about 32 n d for one embedding.

    Args:
        embeddings: Embeddings of the same stimuli in the same order, `[n, d_i]` each. Their rank is at most n - 2,
            which usually needs more stimuli than dimensions.

    Returns:
        Symmetric `[m, m]` from 0 to 1 with ones on the diagonal; None, since there is no debiased estimate.

    Raises:
        ValueError: As `headstart.metrics.similarity.cka.pairwise_cka`; or an embedding, named as `embeddings[3]`, has
            as many directions as the stimuli can have.
    """
    bases = [_basis(x, *x.narrow(), "CCA") for x in read_embeddings(embeddings)]
    return matrix_of_pairs(bases, _mean_correlation), None


def pairwise_svcca(embeddings: Iterable[Embedding], variance: float = VARIANCE) -> tuple[Floats, None]:
    """Compute the SVCCA of every pair of m embeddings.

    Args:
        embeddings: As for `pairwise_cca`, but with at most n - 2 chosen principal axes instead of that rank.
        variance: Share of the variance in the chosen principal axes at least, above 0 and at most 1.

    Returns:
        As for `pairwise_cca`, for the same memory.

    Raises:
        ValueError: As `pairwise_cca`; or the variance is not above 0 and at most 1.
    """
    if not 0 < variance <= 1:
        raise ValueError(f"variance: must be above 0 and at most 1, not {variance}")
    bases = [_basis(x, *x.narrow(), "SVCCA", variance) for x in read_embeddings(embeddings)]
    return matrix_of_pairs(bases, _mean_correlation), None


def pairwise_pwcca(embeddings: Iterable[Embedding]) -> tuple[Floats, None]:
    """Compute the PWCCA of every pair of m embeddings, the mean of both directions.

    A pair takes the singular vectors of a matrix of rank x rank numbers. Memory besides the embeddings: 8 m (n + d) r
    bytes with r the rank, and about 32 n d for one embedding.

    Args:
        embeddings: As for `pairwise_cca`.

    Returns:
        As for `pairwise_cca`.

    Raises:
        ValueError: As `pairwise_cca`; or the ranks of two embeddings add up to n or more.
    """
    decomposed = []
    for x in read_embeddings(embeddings):
        columns, rounding = x.unit_norm()
        basis = _basis(x, columns, rounding, "PWCCA")
        decomposed.append((basis, basis.T @ columns))
    _check_ranks([basis.shape[1] for basis, _ in decomposed], len(decomposed[0][0]))
    return matrix_of_pairs(decomposed, _projection_weighted), None


def _check_ranks(ranks: Sequence[int], n: int) -> None:
    """Raise a ValueError for two embeddings that have directions in common because of their ranks."""
    highest = sorted(range(len(ranks)), key=ranks.__getitem__)[-2:]
    if len(highest) == 2 and sum(ranks[i] for i in highest) > n - 1:
        other, widest = highest
        raise ValueError(
            f"embeddings[{widest}]: PWCCA is undefined with embeddings[{other}], since of {n} stimuli "
            f"{ranks[widest]} and {ranks[other]} directions have some in common whatever they are; give more stimuli"
        )


def _basis(x: CentredEmbedding, columns: Floats, rounding: float, measure: str, variance: float = 1.0) -> Floats:
    """Compute an orthonormal basis of the column space, or of the principal axes with a share of the variance.

    Args:
        x: The embedding, for messages.
        columns: Its columns, centred and perhaps rotated, `[n, c]`.
        rounding: The largest singular value that rounding alone causes.
        measure: The measure, which is undefined where they span everything, for messages.
        variance: Share of the variance in the first axes; with 1 all axes above rounding are used.

    Returns:
        `[n, r]`, r at most n - 2.
    """
    n = len(columns)
    left, strengths, _ = np.linalg.svd(columns, full_matrices=False)
    rank = int((strengths > rounding).sum())
    if variance < 1:
        shares = (strengths**2).cumsum() / (strengths**2).sum()
        rank = min(rank, int(np.searchsorted(shares, variance)) + 1)
    if rank > n - 2:
        raise ValueError(
            f"{x.name}: {measure} is undefined where an embedding has as many directions as its {n} stimuli can have, "
            f"{n - 1}; give more stimuli than dimensions"
        )
    # A copy, so that the other directions do not stay in memory.
    return left[:, :rank].copy()


def _mean_correlation(x: Floats, y: Floats) -> float:
    correlations = np.linalg.svdvals(x.T @ y)
    return float(correlations.sum()) / len(correlations)


def _projection_weighted(x: tuple[Floats, Floats], y: tuple[Floats, Floats]) -> float:
    """Compute PWCCA from an orthonormal basis of the columns, `[n, r]`, and their coordinates in it, `[r, d]`."""
    (x_basis, x_coordinates), (y_basis, y_coordinates) = x, y
    left, correlations, right = np.linalg.svd(x_basis.T @ y_basis, full_matrices=False)
    weights = (abs(left.T @ x_coordinates).sum(1), abs(right @ y_coordinates).sum(1))
    return sum(float(weight @ correlations) / float(weight.sum()) for weight in weights) / 2

"""Linear centred kernel alignment (CKA) of embeddings, in float64, with the biased and the debiased HSIC.

With `K = X X^T` the Gram matrix of column-centred embeddings `X` `[n, d]` and `k` its diagonal,

    CKA(X, Y) = HSIC(K, L) / sqrt(HSIC(K, K) HSIC(L, L))
    biased:     HSIC(K, L) = <K, L>_F
    debiased:   HSIC(K, L) = <K, L>_F - n / (n - 2) k.l + tr K tr L / ((n - 1) (n - 2))

up to factors that cancel. Sources: Kornblith et al., "Similarity of Neural Network Representations Revisited", ICML
2019, equations 3 and 4; Song et al., "Feature Selection via Dependence Maximization", JMLR 2012, equation 5. The latter
is written here for centred Gram matrices; the value is the same, since translations do not change it. Because `|X^T
Y|_F^2 = <K, L>_F`, each product can be computed from n x n matrices (Gram form) or from d x d ones (feature form). The
cheaper form is used.

Biased CKA of unrelated embeddings is far from 0 unless n is much larger than d. It is about 0.96 for Gaussian noise of
n = 64 and d = 2048 and 1280. The debiased value is about 0 there, and may be slightly negative.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from headstart.metrics.arrays import Floats
from headstart.metrics.similarity.centred_embedding import CentredEmbedding, Embedding, read_embeddings
from headstart.metrics.similarity.gram_products import GramProducts

BLOCK_BYTES = 256 * 2**20


def linear_cka(x: Embedding, y: Embedding, debiased: bool = False) -> float:
    """Compute the linear CKA of two embeddings of the same stimuli.

    Values of any real type and precision are converted to float64, and tensors on an accelerator are copied from it.

    Args:
        x: Embedding, `[n, dx]`, n at least 2, or 4 for the debiased form.
        y: Embedding of the same n stimuli in the same order, `[n, dy]`.
        debiased: Whether the debiased HSIC is used instead of the biased.

    Returns:
        Biased: a value in [0, 1]. Debiased: a value up to 1, about 0 and so possibly negative for unrelated embeddings.

    Raises:
        ValueError: An embedding is not 2-D, not real or not finite; the numbers of rows differ or are too small; or CKA
            is undefined. It is undefined where all rows are equal up to rounding, or a debiased self term HSIC(K, K) is
            0 (as with equidistant rows).
    """
    pair = [CentredEmbedding.read(x, "x", debiased), CentredEmbedding.read(y, "y", debiased)]
    pair[1].check_alike(pair[0].n, "x")
    return float(_products(pair).cka(["x", "y"], debiased)[0, 1])


def pairwise_cka(embeddings: Iterable[Embedding], debiased: bool = False) -> Floats:
    """Compute the linear CKA of every pair of m embeddings.

    The Gram matrices of all embeddings are computed once, tile by tile. Where n is much larger than the widths, the
    products of pairs are computed instead, chunk by chunk of rows. Memory besides the embeddings: 256 MiB of tiles or
    up to three times that of chunks, and m n numbers. The widest embedding adds up to 16 n d bytes for two blocks of
    its rows in float64, or 16 d^2 for a product of features.

    Args:
        embeddings: Embeddings of the same stimuli in the same order, `[n, d_i]` each; memory-mapped arrays are read in
            blocks, several times.
        debiased: Whether the debiased HSIC is used instead of the biased.

    Returns:
        Symmetric matrix `[m, m]` with ones on its diagonal; the values are those of `linear_cka`.

    Raises:
        ValueError: As `linear_cka`, naming the embedding as `embeddings[3]`; or if there is none.
    """
    centred, products = read_and_multiply(embeddings, debiased)
    return products.cka([x.name for x in centred], debiased)


def biased_and_debiased_cka(embeddings: Iterable[Embedding]) -> tuple[Floats, Floats | None]:
    """Compute the linear CKA of every pair of m embeddings by both estimates, at the cost of one.

    Args:
        embeddings: As for `pairwise_cka`.

    Returns:
        The results of `pairwise_cka`, biased and debiased. The debiased one is None where it is undefined for any
        embedding: there are fewer than 4 rows, or a self term is 0 or lost to rounding.

    Raises:
        ValueError: As `pairwise_cka` for the biased estimate.
    """
    centred, products = read_and_multiply(embeddings)
    return products.estimates([x.name for x in centred])


def read_and_multiply(
    embeddings: Iterable[Embedding], debiased: bool = False
) -> tuple[list[CentredEmbedding], GramProducts]:
    """Check embeddings, as for `pairwise_cka`, and compute the products of all pairs."""
    centred = read_embeddings(embeddings, debiased)
    return centred, _products(centred)


def mean_pairwise_cka(embeddings: Iterable[Embedding], debiased: bool = False) -> float:
    """Compute the mean of the linear CKA of all pairs of m embeddings, at least 2.

    Args:
        embeddings: As for `pairwise_cka`.
        debiased: Whether the debiased HSIC is used instead of the biased.

    Raises:
        ValueError: As `pairwise_cka`; or if there are fewer than 2.
    """
    matrix = pairwise_cka(embeddings, debiased)
    if len(matrix) < 2:
        raise ValueError("embeddings: 1 given, at least 2 are needed for a mean over pairs")
    return float(matrix[np.triu_indices(len(matrix), 1)].mean())


@np.errstate(over="ignore", invalid="ignore")
def _products(embeddings: list[CentredEmbedding]) -> GramProducts:
    """Compute the products of all pairs by the form with fewer multiplications; `GramProducts` checks for overflow."""
    return _gram_form(embeddings) if gram_form_is_cheaper(embeddings) else _feature_form(embeddings)


def gram_form_is_cheaper(embeddings: Sequence[CentredEmbedding]) -> bool:
    """Return whether products of rows take fewer multiplications than products of the features of all pairs."""
    n, m, width = embeddings[0].n, len(embeddings), sum(x.width for x in embeddings)
    # Halves of symmetric matrices: n^2 (width / 2 + m^2 / 4) against n width^2 / 2.
    return n * (width + m * m / 2) <= width * width


def _gram_form(embeddings: list[CentredEmbedding]) -> GramProducts:
    """Compute the products from Gram matrices, summed over the square tiles of their upper triangles."""
    n, m = embeddings[0].n, len(embeddings)
    products, diagonals = np.zeros((m, m)), np.empty((m, n))
    for rows, columns, tile in gram_tiles(embeddings):
        flat = tile.reshape(m, -1)
        products += (1 if columns == rows else 2) * (flat @ flat.T)
        if columns == rows:
            diagonals[:, rows] = flat[:, :: tile.shape[2] + 1]
    return GramProducts.of(products, diagonals)


def gram_tiles(embeddings: Sequence[CentredEmbedding]) -> Iterator[tuple[slice, slice, Floats]]:
    """Compute the Gram matrices of m centred embeddings with the same n, tile by tile of their upper triangles.

    Yields:
        The rows and the columns of a square tile, which are the same on the diagonal. Then its values in all Gram
        matrices, float64 `[m, rows, columns]`, which the next tile overwrites.
    """
    n, m = embeddings[0].n, len(embeddings)
    tiles = math.ceil(n / max(1, math.isqrt(BLOCK_BYTES // (8 * m))))
    side = math.ceil(n / tiles)
    blocks = [slice(start, min(start + side, n)) for start in range(0, n, side)]
    space = np.empty(m * side * side)
    for i, rows in enumerate(blocks):
        for columns in blocks[i:]:
            shape = m, rows.stop - rows.start, columns.stop - columns.start
            tile = space[: math.prod(shape)].reshape(shape)
            for gram, x in zip(tile, embeddings, strict=True):
                first = x.centred(rows)
                # BLAS computes only half of the product of an array with itself, which is symmetric.
                second = first if rows == columns else x.centred(columns)
                np.matmul(first, second.T, out=gram)
            yield rows, columns, tile


def compute_pairs(
    x: CentredEmbedding, transform: Callable[[Floats, slice, slice], Floats] = lambda tile, rows, columns: tile
) -> Floats:
    """Compute a value for every pair of rows from the Gram matrix, in the same order for all embeddings.

    Args:
        x: The embedding.
        transform: Returns the values for a tile of the Gram matrix, from the tile, its rows and its columns.

    Returns:
        `[n (n - 1) / 2]`.
    """
    pairs, filled = np.empty(x.n * (x.n - 1) // 2), 0
    for rows, columns, tile in gram_tiles([x]):
        values = transform(tile[0], rows, columns)
        part = values[~np.tri(len(values), dtype=bool)] if rows == columns else values.ravel()
        pairs[filled : filled + len(part)] = part
        filled += len(part)
    return pairs


def _feature_form(embeddings: list[CentredEmbedding]) -> GramProducts:
    """Compute the products from the products of features of every pair, summed over chunks of rows."""
    n, m = embeddings[0].n, len(embeddings)
    products, diagonals = np.empty((m, m)), np.empty((m, n))
    for i, x in enumerate(embeddings):
        for j, y in enumerate(embeddings[: i + 1]):
            step = max(1, BLOCK_BYTES // (8 * (x.width + y.width)))
            product: Floats | float = 0.0
            for start in range(0, n, step):
                rows = slice(start, start + step)
                left = x.centred(rows)
                right = left if i == j else y.centred(rows)
                product += left.T @ right
                if i == j:
                    diagonals[i, rows] = (left * left).sum(1)
            flat = np.ravel(product)
            products[i, j] = products[j, i] = float(flat @ flat)
    return GramProducts.of(products, diagonals)

"""The measures of similarity that there are: one line each, from which options, results, reports and tests come."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from metrics.similarity.centred_embedding import Embedding
from metrics.similarity.cka import biased_and_debiased_cka
from metrics.similarity.rbf_cka import pairwise_rbf_cka

Matrix: TypeAlias = NDArray[np.float64]
Invariance = Literal["orthogonal", "isotropic_scaling", "translation", "invertible_linear"]


@dataclass(frozen=True)
class SimilarityMeasure:
    """A measure of how alike two embeddings of the same stimuli are: symmetric, and 1, the highest, where they are one.

    Attributes:
        title: What it is called in reports and pictures.
        pairwise: Gives from embeddings `[n, d_i]` the similarities of all pairs, `[m, m]`, as they are (biased), and
            debiased, or None where a debiased estimate is undefined or there is none; raises a ValueError that names
            an embedding as `embeddings[3]` where a similarity is undefined.
        invariances: The maps of one embedding, in the terms of Klabunde et al., "ReSi: A Comprehensive Benchmark for
            Representational Similarity Measures", ICLR 2025, that leave the similarity as it is; all others change it.
        source: Where it is defined.
    """

    title: str
    pairwise: Callable[[Iterable[Embedding]], tuple[Matrix, Matrix | None]]
    invariances: frozenset[Invariance]
    source: str


EUCLIDEAN: frozenset[Invariance] = frozenset({"orthogonal", "isotropic_scaling", "translation"})

# The contract scores submissions by the first, which is the default everywhere.
DEFAULT_MEASURE = "linear_cka"
SIMILARITY_MEASURES: Mapping[str, SimilarityMeasure] = {
    DEFAULT_MEASURE: SimilarityMeasure(
        "linear CKA", biased_and_debiased_cka, EUCLIDEAN, "Kornblith et al., ICML 2019, equations 3 and 4"
    ),
    "rbf_cka": SimilarityMeasure("RBF CKA", pairwise_rbf_cka, EUCLIDEAN, "Kornblith et al., ICML 2019, section 3"),
}

# The names, as the choices of an option.
if TYPE_CHECKING:
    MeasureName: TypeAlias = str
else:
    MeasureName = Literal[tuple(SIMILARITY_MEASURES)]


def mean_over_pairs(matrix: Matrix) -> float:
    """Average the similarities `[m, m]` of all pairs of different embeddings, of which there are at least 2."""
    return float(matrix[np.triu_indices(len(matrix), 1)].mean())

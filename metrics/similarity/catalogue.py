"""The catalogue of similarity measures, which options, results, reports and tests use."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from headstart.metrics.arrays import Floats
from headstart.metrics.similarity.cca import pairwise_cca, pairwise_pwcca, pairwise_svcca
from headstart.metrics.similarity.centred_embedding import Embedding
from headstart.metrics.similarity.cka import biased_and_debiased_cka
from headstart.metrics.similarity.mutual_knn import NEIGHBOURS, pairwise_mutual_knn
from headstart.metrics.similarity.procrustes import pairwise_procrustes
from headstart.metrics.similarity.rbf_cka import pairwise_rbf_cka
from headstart.metrics.similarity.rsa import pairwise_rsa_pearson, pairwise_rsa_spearman


@dataclass(frozen=True)
class SimilarityMeasure:
    """A symmetric measure of the similarity of two embeddings of the same stimuli; at most 1, and 1 for equal ones.

    Attributes:
        title: Its name in reports and figures.
        pairwise: Returns the biased and the debiased similarities of all pairs of `m` embeddings `[n, d_i]`, each
            `[m, m]`. The debiased ones are None if the measure has none or they are undefined. If a similarity is
            undefined, it raises a ValueError that names an embedding, such as `embeddings[3]`.
        source: Its publication.
        has_debiased: Whether the measure has a debiased estimate; then the usual one is called biased.
    """

    title: str
    pairwise: Callable[[Iterable[Embedding]], tuple[Floats, Floats | None]]
    source: str
    has_debiased: bool = False

    @property
    def biased_title(self) -> str:
        """The title of the biased similarities: it says "biased" if the measure also has a debiased estimate."""
        return f"{self.title} (biased)" if self.has_debiased else self.title


# The contract scores submissions by this measure.
DEFAULT_MEASURE = "linear_cka"
KORNBLITH, RAGHU = "Kornblith et al., ICML 2019", "Raghu et al., NeurIPS 2017, section 2"
KRIEGESKORTE = "Kriegeskorte et al., Frontiers in Systems Neuroscience 2008"
SIMILARITY_MEASURES: Mapping[str, SimilarityMeasure] = {
    DEFAULT_MEASURE: SimilarityMeasure(
        "linear CKA", biased_and_debiased_cka, f"{KORNBLITH}, equations 3 and 4", has_debiased=True
    ),
    "rbf_cka": SimilarityMeasure("RBF CKA", pairwise_rbf_cka, f"{KORNBLITH}, section 3", has_debiased=True),
    "rsa_pearson": SimilarityMeasure("RSA by Pearson", pairwise_rsa_pearson, KRIEGESKORTE),
    "rsa_spearman": SimilarityMeasure("RSA by Spearman", pairwise_rsa_spearman, KRIEGESKORTE),
    "procrustes": SimilarityMeasure("Procrustes similarity", pairwise_procrustes, "Williams et al., NeurIPS 2021"),
    "cca": SimilarityMeasure("mean CCA", pairwise_cca, RAGHU),
    "svcca": SimilarityMeasure("SVCCA", pairwise_svcca, RAGHU),
    "pwcca": SimilarityMeasure("PWCCA", pairwise_pwcca, "Morcos et al., NeurIPS 2018"),
    "mutual_knn": SimilarityMeasure(
        f"mutual {NEIGHBOURS}-nearest neighbours", pairwise_mutual_knn, "Huh et al., ICML 2024"
    ),
}

# The names as a type: jsonargparse reads the choices of an option from a Literal, which mypy cannot read.
if TYPE_CHECKING:
    MeasureName: TypeAlias = str
else:
    MeasureName = Literal[tuple(SIMILARITY_MEASURES)]


def mean_over_pairs(matrix: Floats) -> float:
    """Average the similarities `[m, m]` of at least 2 embeddings over all pairs of different ones."""
    return float(matrix[np.triu_indices(len(matrix), 1)].mean())

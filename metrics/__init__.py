"""Pure functions: the criterion, the curves and their statistics; how alike embeddings are; how rankings agree."""

# Kept free of torch, which the validator and a scoring from cached embeddings never load. The torchmetrics class is
# therefore imported from its own module: `from metrics.linear_cka_metric import LinearCKA`.
from metrics.cka import linear_cka, mean_pairwise_cka, pairwise_cka
from metrics.ranking_measures import MEASURES, kendall, measure_pools, pearson, rel_at_1, weighted_kendall

__all__ = [
    "MEASURES",
    "kendall",
    "linear_cka",
    "mean_pairwise_cka",
    "measure_pools",
    "pairwise_cka",
    "pearson",
    "rel_at_1",
    "weighted_kendall",
]

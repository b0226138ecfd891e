"""Pure functions: the criterion, the curves and their statistics, and how alike embeddings are."""

# Kept free of torch, which the validator and a scoring from cached embeddings never load. The torchmetrics class is
# therefore imported from its own module: `from metrics.linear_cka_metric import LinearCKA`.
from metrics.cka import linear_cka, mean_pairwise_cka, pairwise_cka

__all__ = ["linear_cka", "mean_pairwise_cka", "pairwise_cka"]

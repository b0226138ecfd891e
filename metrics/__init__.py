"""Pure functions: the criterion and its curves, the alignment of embeddings, transferability, and rankings."""

# Kept free of torch, which a scoring from stored embeddings never loads. The torchmetrics classes are therefore
# imported from their own modules, `metrics.similarity.linear_cka_metric` and
# `metrics.transferability.transferability_metrics`.
from metrics.ranking.ranking_measures import MEASURES, kendall, measure_pools, pearson, rel_at_1, weighted_kendall
from metrics.similarity.cka import biased_and_debiased_cka, linear_cka, mean_pairwise_cka, pairwise_cka
from metrics.transferability.feature_statistics import FeatureStatistics
from metrics.transferability.gbc import gbc
from metrics.transferability.h_score import h_score
from metrics.transferability.leep import leep, nce
from metrics.transferability.linear_probe import linear_probe_accuracy
from metrics.transferability.log_me import log_me
from metrics.transferability.n_leep import n_leep
from metrics.transferability.num_classes import num_classes
from metrics.transferability.pixel_sampling import count_pixels, sample_pixels
from metrics.transferability.trans_rate import trans_rate

__all__ = [
    "MEASURES",
    "FeatureStatistics",
    "biased_and_debiased_cka",
    "count_pixels",
    "gbc",
    "h_score",
    "kendall",
    "leep",
    "linear_cka",
    "linear_probe_accuracy",
    "log_me",
    "mean_pairwise_cka",
    "measure_pools",
    "n_leep",
    "nce",
    "num_classes",
    "pairwise_cka",
    "pearson",
    "rel_at_1",
    "sample_pixels",
    "trans_rate",
    "weighted_kendall",
]

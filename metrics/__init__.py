"""Pure functions: the criterion and its curves, the alignment of embeddings, transferability, and rankings.

Exported names are imported when they are first used. The functions take numpy arrays and need no torch. The
torchmetrics classes (`LinearCKA`, `GBC`, `HScore`, `LEEP`, `LogME`) take batches of tensors and need it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headstart.output.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from headstart.metrics.ranking.ranking_measures import MEASURES as MEASURES
    from headstart.metrics.ranking.ranking_measures import kendall as kendall
    from headstart.metrics.ranking.ranking_measures import measure_pools as measure_pools
    from headstart.metrics.ranking.ranking_measures import pearson as pearson
    from headstart.metrics.ranking.ranking_measures import rel_at_1 as rel_at_1
    from headstart.metrics.ranking.ranking_measures import weighted_kendall as weighted_kendall
    from headstart.metrics.similarity.cka import biased_and_debiased_cka as biased_and_debiased_cka
    from headstart.metrics.similarity.cka import linear_cka as linear_cka
    from headstart.metrics.similarity.cka import mean_pairwise_cka as mean_pairwise_cka
    from headstart.metrics.similarity.cka import pairwise_cka as pairwise_cka
    from headstart.metrics.similarity.cka_jackknife import CkaIntervals as CkaIntervals
    from headstart.metrics.similarity.cka_jackknife import cka_intervals as cka_intervals
    from headstart.metrics.similarity.cka_null import CalibratedCka as CalibratedCka
    from headstart.metrics.similarity.cka_null import calibrated_cka as calibrated_cka
    from headstart.metrics.similarity.linear_cka_metric import LinearCKA as LinearCKA
    from headstart.metrics.transferability.baselines import num_classes as num_classes
    from headstart.metrics.transferability.discriminant_metrics import etran as etran
    from headstart.metrics.transferability.discriminant_metrics import etran_terms as etran_terms
    from headstart.metrics.transferability.discriminant_metrics import ncti as ncti
    from headstart.metrics.transferability.discriminant_metrics import ncti_terms as ncti_terms
    from headstart.metrics.transferability.discriminant_metrics import sfda as sfda
    from headstart.metrics.transferability.feature_statistics import FeatureStatistics as FeatureStatistics
    from headstart.metrics.transferability.gbc import gbc as gbc
    from headstart.metrics.transferability.h_score import h_score as h_score
    from headstart.metrics.transferability.knn import knn_accuracy as knn_accuracy
    from headstart.metrics.transferability.leep import leep as leep
    from headstart.metrics.transferability.leep import nce as nce
    from headstart.metrics.transferability.linear_probe import linear_probe_accuracy as linear_probe_accuracy
    from headstart.metrics.transferability.log_me import log_me as log_me
    from headstart.metrics.transferability.n_leep import n_leep as n_leep
    from headstart.metrics.transferability.pactran import pactran as pactran
    from headstart.metrics.transferability.parc import parc as parc
    from headstart.metrics.transferability.pixel_sampling import count_pixels as count_pixels
    from headstart.metrics.transferability.pixel_sampling import sample_pixels as sample_pixels
    from headstart.metrics.transferability.trans_rate import trans_rate as trans_rate
    from headstart.metrics.transferability.transferability_metrics import GBC as GBC
    from headstart.metrics.transferability.transferability_metrics import LEEP as LEEP
    from headstart.metrics.transferability.transferability_metrics import HScore as HScore
    from headstart.metrics.transferability.transferability_metrics import LogME as LogME

EXPORTS, __getattr__ = lazy_exports(__name__)
__all__ = list(EXPORTS)

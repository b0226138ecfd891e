"""Pure functions: the criterion and its curves, the alignment of embeddings, transferability, and rankings."""

# Kept free of torch, which a scoring from stored embeddings never loads. The torchmetrics classes are therefore
# imported from their own modules, `metrics.similarity.linear_cka_metric` and
# `metrics.transferability.transferability_metrics`.
from metrics.ranking.ranking_measures import MEASURES as MEASURES
from metrics.ranking.ranking_measures import kendall as kendall
from metrics.ranking.ranking_measures import measure_pools as measure_pools
from metrics.ranking.ranking_measures import pearson as pearson
from metrics.ranking.ranking_measures import rel_at_1 as rel_at_1
from metrics.ranking.ranking_measures import weighted_kendall as weighted_kendall
from metrics.similarity.cka import biased_and_debiased_cka as biased_and_debiased_cka
from metrics.similarity.cka import linear_cka as linear_cka
from metrics.similarity.cka import mean_pairwise_cka as mean_pairwise_cka
from metrics.similarity.cka import pairwise_cka as pairwise_cka
from metrics.similarity.cka_jackknife import CkaIntervals as CkaIntervals
from metrics.similarity.cka_jackknife import cka_intervals as cka_intervals
from metrics.similarity.cka_null import CalibratedCka as CalibratedCka
from metrics.similarity.cka_null import CkaNull as CkaNull
from metrics.similarity.cka_null import calibrated_cka as calibrated_cka
from metrics.similarity.cka_null import cka_null as cka_null
from metrics.transferability.etran import etran as etran
from metrics.transferability.etran import etran_terms as etran_terms
from metrics.transferability.feature_statistics import FeatureStatistics as FeatureStatistics
from metrics.transferability.gbc import gbc as gbc
from metrics.transferability.h_score import h_score as h_score
from metrics.transferability.knn import knn_accuracy as knn_accuracy
from metrics.transferability.leep import leep as leep
from metrics.transferability.leep import nce as nce
from metrics.transferability.linear_probe import linear_probe_accuracy as linear_probe_accuracy
from metrics.transferability.log_me import log_me as log_me
from metrics.transferability.n_leep import n_leep as n_leep
from metrics.transferability.ncti import ncti as ncti
from metrics.transferability.ncti import ncti_terms as ncti_terms
from metrics.transferability.num_classes import num_classes as num_classes
from metrics.transferability.pactran import pactran as pactran
from metrics.transferability.parc import parc as parc
from metrics.transferability.pixel_sampling import count_pixels as count_pixels
from metrics.transferability.pixel_sampling import sample_pixels as sample_pixels
from metrics.transferability.sfda import sfda as sfda
from metrics.transferability.trans_rate import trans_rate as trans_rate

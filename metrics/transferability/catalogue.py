"""The catalogue of transferability metrics, which whatever computes, ranks, prints or lists metrics reads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headstart.metrics.transferability.etran import etran, etran_terms
from headstart.metrics.transferability.gbc import gbc
from headstart.metrics.transferability.h_score import h_score
from headstart.metrics.transferability.inputs import Inputs, Pool
from headstart.metrics.transferability.joint_scores import (
    coding_rate_of_samples,
    coding_rates_of_classes,
    gbc_of_targets,
    leep_of_targets,
    nce_of_targets,
)
from headstart.metrics.transferability.knn import knn_accuracy
from headstart.metrics.transferability.leep import leep, nce
from headstart.metrics.transferability.linear_probe import linear_probe_accuracy, prepare_linear_probe
from headstart.metrics.transferability.log_me import log_me
from headstart.metrics.transferability.n_leep import n_leep, prepare_n_leep
from headstart.metrics.transferability.ncti import ncti, ncti_terms
from headstart.metrics.transferability.num_classes import num_classes
from headstart.metrics.transferability.pactran import pactran
from headstart.metrics.transferability.parc import parc, prepare_parc
from headstart.metrics.transferability.sfda import sfda
from headstart.metrics.transferability.source_facts import parameter_count, source_accuracy
from headstart.metrics.transferability.trans_rate import trans_rate


@dataclass(frozen=True)
class Pooled:
    """A metric of many targets of one data set, with what is computed for all at once; the score is the sum of both.

    Attributes:
        jointly: Computed for all targets at once, `[targets]`.
        alone: Computed for each target; None where nothing is.
    """

    jointly: Callable[[Pool], NDArray[np.float64]]
    alone: Callable[[Inputs], float] | None = None


@dataclass(frozen=True)
class TransferabilityMetric:
    """A metric as commands know it.

    Attributes:
        title: What reports call it.
        summary: What it is, in some words.
        compute: Gives the score of one source model on one target, with options by name, or the terms that `combine`
            takes; a ValueError says why there is none.
        function: What has the options, as those of its arguments that are no data; None where there are none.
        needs_head: Whether it takes the probabilities of the source head.
        higher_is_better: Whether a higher score says that the source transfers better. It always does, but for a
            baseline, whose sign is reversed where targets are ranked.
        baseline: What it does with the labels of the target alone, or with the source alone, which is the same for all
            sources, or all targets: it ranks none of these and has no part in mean ranks. Empty for a metric that
            depends on both.
        of_source: Whether it knows the source alone, and takes facts of it.
        is_single: Whether targets of one data set share little of its computation, so that a pool takes about as long
            as its targets one by one.
        is_default: Whether it is computed where no metrics are named.
        combine: Gives the scores of the sources of a pool, `[..., sources]`, of the terms of each and of those that
            they are compared on the scale of, `[..., sources, terms]`, by default the same; None where the score of a
            source does not depend on the others.
        pooled: How it is computed on many targets of one data set; None where it is computed on each of them, from
            statistics that follow from those of the data set.
        prepare: What it does once where parts of the samples are left out in turn: gives the score of those that are
            kept, by a mask `[samples]` in the order of the statistics. None where it is computed on each rest, from
            statistics that follow from those of all.
    """

    title: str
    summary: str
    compute: Callable[..., Any]
    function: Callable[..., float] | None = None
    needs_head: bool = False
    higher_is_better: bool = True
    baseline: str = ""
    of_source: bool = False
    is_single: bool = False
    is_default: bool = True
    combine: Callable[..., NDArray[np.float64]] | None = None
    pooled: Pooled | None = None
    prepare: Callable[..., Callable[[NDArray[np.bool_]], float]] | None = None


# By the names that options, tables and documents have for them, in the order of reports.
METRICS: dict[str, TransferabilityMetric] = {
    "gbc": TransferabilityMetric(
        "GBC",
        "overlap of the classes as Gaussians (Bhattacharyya), negative",
        lambda given, **options: gbc(given.statistics, **options),
        gbc,
        pooled=Pooled(gbc_of_targets),
    ),
    "leep": TransferabilityMetric(
        "LEEP",
        "log likelihood of the labels given the source head's predictions",
        lambda given: leep(given.probabilities, given.labels),
        needs_head=True,
        pooled=Pooled(leep_of_targets),
    ),
    "n_leep": TransferabilityMetric(
        "N-LEEP",
        "LEEP with a mixture of Gaussians in place of the source head",
        lambda given, **options: n_leep(given.statistics, seed=given.seed, **options),
        n_leep,
        is_single=True,
        prepare=lambda given, **options: prepare_n_leep(given.statistics, seed=given.seed, **options),
    ),
    "log_me": TransferabilityMetric(
        "LogME", "evidence of a linear model of the labels", lambda given: log_me(given.statistics)
    ),
    "h_score": TransferabilityMetric(
        "H-score",
        "spread between the classes relative to that of the features",
        lambda given: h_score(given.statistics),
    ),
    "h_score_shrunk": TransferabilityMetric(
        "H-score (shrunk)",
        "H-score with the covariance shrunk by Ledoit and Wolf's intensity",
        lambda given: h_score(given.statistics, shrinkage=True),
    ),
    "nce": TransferabilityMetric(
        "NCE",
        "conditional entropy of the labels given the predicted source classes, negative",
        lambda given: nce(given.probabilities.argmax(1), given.labels),
        needs_head=True,
        pooled=Pooled(nce_of_targets),
    ),
    "trans_rate": TransferabilityMetric(
        "TransRate",
        "coding rate of the features less that of the classes",
        lambda given, **options: trans_rate(given.statistics, **options),
        trans_rate,
        pooled=Pooled(lambda pool: -coding_rates_of_classes(pool), coding_rate_of_samples),
    ),
    "knn": TransferabilityMetric(
        "kNN",
        "accuracy of the nearest neighbours by cosine, each sample left out in turn",
        lambda given, **options: knn_accuracy(given.statistics, **options),
        knn_accuracy,
        is_single=True,
    ),
    "parc": TransferabilityMetric(
        "PARC",
        "rank correlation between distances of features and of labels",
        lambda given, **options: parc(given.statistics, seed=given.seed, **options),
        parc,
        is_single=True,
        prepare=lambda given, **options: prepare_parc(given.statistics, seed=given.seed, **options),
    ),
    "sfda": TransferabilityMetric(
        "SFDA",
        "probability of the labels by Fisher discriminants, features made harder to tell",
        lambda given: sfda(given.statistics),
        is_single=True,
    ),
    # Scores by these two change with the pool.
    "etran": TransferabilityMetric(
        "ETran",
        "energy and probability of the labels by discriminants, scaled over the pool",
        lambda given: etran_terms(given.statistics),
        is_single=True,
        is_default=False,
        combine=etran,
    ),
    "ncti": TransferabilityMetric(
        "NCTI",
        "how near the features are to neural collapse, scaled over the pool",
        lambda given: ncti_terms(given.statistics),
        is_single=True,
        is_default=False,
        combine=ncti,
    ),
    "pactran": TransferabilityMetric(
        "PACTran",
        "PAC-Bayesian bound on the error of logistic regression, negative",
        lambda given, **options: pactran(given.statistics, **options),
        pactran,
        is_single=True,
        is_default=False,
    ),
    # The others are to stand in for it.
    "linear_probe": TransferabilityMetric(
        "linear probe",
        "accuracy of logistic regression over five folds, the slow reference",
        lambda given, **options: linear_probe_accuracy(given.statistics, seed=given.seed, **options),
        linear_probe_accuracy,
        is_single=True,
        prepare=lambda given, **options: prepare_linear_probe(given.statistics, seed=given.seed, **options),
        is_default=False,
    ),
    "num_classes": TransferabilityMetric(
        "NumC",
        "number of the target's classes, the baseline for targets",
        lambda given: num_classes(given.labels),
        higher_is_better=False,
        baseline="counts the classes of the target",
        pooled=Pooled(lambda pool: np.array([float(len(chosen)) for chosen in pool.targets])),
    ),
    # These take facts that are not known of every source.
    "source_accuracy": TransferabilityMetric(
        "source accuracy",
        "accuracy of the source on its own task, a baseline for sources",
        lambda given: source_accuracy(given.facts),
        baseline="is the accuracy of the source on its own task",
        of_source=True,
        is_default=False,
    ),
    "parameters": TransferabilityMetric(
        "parameters",
        "number of the source's parameters, a baseline for sources",
        lambda given: parameter_count(given.facts),
        baseline="counts the parameters of the source",
        of_source=True,
        is_default=False,
    ),
}

"""The catalogue of transferability metrics, which whatever computes, ranks, prints or lists metrics reads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from metrics.transferability.gbc import gbc
from metrics.transferability.h_score import h_score
from metrics.transferability.inputs import Inputs, Pool
from metrics.transferability.joint_scores import (
    coding_rate_of_samples,
    coding_rates_of_classes,
    gbc_of_targets,
    leep_of_targets,
    nce_of_targets,
)
from metrics.transferability.leep import leep, nce
from metrics.transferability.linear_probe import linear_probe_accuracy
from metrics.transferability.log_me import log_me
from metrics.transferability.n_leep import n_leep
from metrics.transferability.num_classes import num_classes
from metrics.transferability.trans_rate import trans_rate


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
        compute: Gives the score of one source model on one target; a ValueError says why there is none.
        needs_head: Whether it takes the probabilities of the source head.
        higher_is_better: Whether a higher score says that the source transfers better. It always does, but for a
            baseline, whose sign is reversed where targets are ranked.
        baseline: What it does with the labels of the target alone, which is the same for all sources: it ranks none of
            them and has no part in mean ranks. Empty for a metric that depends on the source.
        fits: Whether it fits a model to each target, of which targets of one data set share nothing.
        is_default: Whether it is computed where no metrics are named.
        pooled: How it is computed on many targets of one data set; None where it is computed on each of them, from
            statistics that follow from those of the data set.
    """

    title: str
    summary: str
    compute: Callable[[Inputs], float]
    needs_head: bool = False
    higher_is_better: bool = True
    baseline: str = ""
    fits: bool = False
    is_default: bool = True
    pooled: Pooled | None = None


# By the names that options, tables and documents have for them, in the order of reports.
METRICS: dict[str, TransferabilityMetric] = {
    "gbc": TransferabilityMetric(
        "GBC",
        "overlap of the classes as Gaussians (Bhattacharyya), negative",
        lambda given: gbc(given.statistics),
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
        lambda given: n_leep(given.statistics, seed=given.seed),
        fits=True,
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
        lambda given: trans_rate(given.statistics),
        pooled=Pooled(lambda pool: -coding_rates_of_classes(pool), coding_rate_of_samples),
    ),
    # The others are to stand in for it, and it takes longer than all of them together.
    "linear_probe": TransferabilityMetric(
        "linear probe",
        "accuracy of logistic regression over five folds, the slow reference",
        lambda given: linear_probe_accuracy(given.statistics, seed=given.seed),
        fits=True,
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
}

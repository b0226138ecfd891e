"""The catalogue of transferability metrics, from which commands compute, rank, print and list them."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

from headstart.metrics.arrays import Flags, Floats
from headstart.metrics.transferability.baselines import num_classes, parameter_count, source_accuracy
from headstart.metrics.transferability.etran import etran, etran_terms
from headstart.metrics.transferability.gbc import gbc
from headstart.metrics.transferability.h_score import h_score
from headstart.metrics.transferability.inputs import Inputs
from headstart.metrics.transferability.knn import knn_accuracy
from headstart.metrics.transferability.leep import leep, nce
from headstart.metrics.transferability.linear_probe import linear_probe_accuracy, prepare_linear_probe
from headstart.metrics.transferability.log_me import log_me
from headstart.metrics.transferability.n_leep import n_leep, prepare_n_leep
from headstart.metrics.transferability.ncti import ncti, ncti_terms
from headstart.metrics.transferability.pactran import pactran
from headstart.metrics.transferability.parc import parc, prepare_parc
from headstart.metrics.transferability.sfda import sfda
from headstart.metrics.transferability.trans_rate import trans_rate

# Arguments of functions that are data; all others are options.
ARGUMENTS = ("features", "labels", "probabilities", "seed")


@dataclass(frozen=True)
class TransferabilityMetric:
    """A metric as commands know it.

    Attributes:
        title: Name of the metric in reports.
        summary: One line on what it measures.
        function: Returns the score of one source model on one target, or the terms that `combine` takes. A metric that
            depends on a random start returns the scores of several starts, `[starts]`; their mean is the score. It
            raises a ValueError with the reason where there is no score.
        data: The attributes of `Inputs` that the function takes first. A metric of `probabilities` needs a source
            head; one of `facts` is the same for all targets.
        options: Options of the function, by name.
        higher_is_better: Whether a higher score means that the source transfers better. This is false for a baseline
            only, whose sign is reversed where targets are ranked.
        baseline: How the metric follows from the labels of the target alone, or from the source alone. It is then the
            same for all sources, or for all targets. It ranks none of them and does not count in mean ranks. Empty for
            a metric that depends on both.
        is_default: Whether the metric is computed where no metrics are named.
        bound: Returns the highest score that features can reach on a target of so many classes. At it, a score says
            neither which source is better nor how uncertain it is. None where there is no such score.
        features_reach_bound: Whether enough features reach the bound, whatever the labels.
        combine: Returns the scores of the sources of a pool, `[..., sources]`. It takes the terms of each, and the
            terms that set the scale, by default the same, `[..., sources, terms]`. None where the score of a source
            does not depend on the others.
        prepare: Computes once, from the statistics of all samples and the seed, everything that is the same while parts
            of the samples are left out in turn. Returns a function. It takes a mask of the remaining samples,
            `[samples]` in the order of the statistics, and returns the result of `function` on them, for the same
            starts. None where the metric is computed on each remainder, from statistics that follow from those of all
            samples.
    """

    title: str
    summary: str
    function: Callable[..., Any]
    data: tuple[str, ...] = ("statistics",)
    options: Mapping[str, Any] = field(default_factory=dict)
    higher_is_better: bool = True
    baseline: str = ""
    is_default: bool = True
    bound: Callable[[int], float] | None = None
    features_reach_bound: bool = False
    combine: Callable[..., Floats] | None = None
    prepare: Callable[..., Callable[[Flags], float | Floats]] | None = None

    @property
    def defaults(self) -> dict[str, Any]:
        """The options that the function has, with their defaults."""
        parameters = inspect.signature(self.function).parameters
        return {name: option.default for name, option in parameters.items() if name not in (*ARGUMENTS, *self.data)}

    def compute(self, inputs: Inputs) -> Any:  # noqa: ANN401 - a score, or terms
        """Compute the score of one source model on one target, or its terms."""
        result = self.evaluate(inputs)
        return float(result.mean()) if isinstance(result, np.ndarray) else result

    def evaluate(self, inputs: Inputs) -> Any:  # noqa: ANN401 - a score, terms, or the scores of several starts
        """Compute the same; for a metric that depends on a random start, the scores of several, `[starts]`."""
        return self.scorer(inputs)(np.ones(len(inputs.labels), dtype=bool), inputs)

    def scorer(self, inputs: Inputs) -> Callable[[Flags, Inputs], Any]:
        """Return a function that evaluates the metric on some of the samples, and prepares on its first call.

        The function takes a mask of these samples in the order of the statistics, `[samples]`, and their inputs.
        """
        prepare = self.prepare
        if prepare is None:
            return lambda _, remaining: self.function(*(getattr(remaining, name) for name in self.data), **self.options)
        prepared = cache(lambda: prepare(inputs.statistics, seed=inputs.seed, **self.options))
        return lambda kept, _: prepared()(kept)


# By the names in options, tables and documents, in the order of reports.
METRICS: dict[str, TransferabilityMetric] = {
    "gbc": TransferabilityMetric(
        "GBC", "overlap of the classes as Gaussians (Bhattacharyya), negative", gbc, bound=lambda classes: 0.0
    ),
    "leep": TransferabilityMetric(
        "LEEP",
        "log likelihood of the labels given the source head's predictions",
        leep,
        data=("probabilities", "labels"),
        bound=lambda classes: 0.0,
    ),
    "n_leep": TransferabilityMetric(
        "N-LEEP",
        "LEEP with a mixture of Gaussians in place of the source head",
        n_leep,
        bound=lambda classes: 0.0,
        prepare=prepare_n_leep,
    ),
    "log_me": TransferabilityMetric("LogME", "evidence of a linear model of the labels", log_me),
    "h_score": TransferabilityMetric(
        "H-score",
        "spread between the classes relative to that of the features",
        lambda statistics: h_score(statistics),
        bound=lambda classes: classes - 1.0,
        features_reach_bound=True,
    ),
    "h_score_shrunk": TransferabilityMetric(
        "H-score (shrunk)",
        "H-score with the covariance shrunk by Ledoit and Wolf's intensity",
        lambda statistics: h_score(statistics, shrinkage=True),
        bound=lambda classes: classes - 1.0,
    ),
    "nce": TransferabilityMetric(
        "NCE",
        "conditional entropy of the labels given the predicted source classes, negative",
        lambda probabilities, labels: nce(probabilities.argmax(1), labels),
        data=("probabilities", "labels"),
        bound=lambda classes: 0.0,
    ),
    "trans_rate": TransferabilityMetric(
        "TransRate", "coding rate of the features less that of the classes", trans_rate
    ),
    "knn": TransferabilityMetric(
        "kNN",
        "accuracy of the nearest neighbours by cosine, each sample left out in turn",
        knn_accuracy,
        bound=lambda classes: 1.0,
    ),
    "parc": TransferabilityMetric(
        "PARC",
        "rank correlation between distances of features and of labels",
        parc,
        bound=lambda classes: 1.0,
        prepare=prepare_parc,
    ),
    "sfda": TransferabilityMetric(
        "SFDA",
        "probability of the labels by Fisher discriminants, features made harder to tell",
        sfda,
        bound=lambda classes: 1.0,
        features_reach_bound=True,
    ),
    # The scores of these two change with the pool.
    "etran": TransferabilityMetric(
        "ETran",
        "energy and probability of the labels by discriminants, scaled over the pool",
        etran_terms,
        is_default=False,
        combine=etran,
    ),
    "ncti": TransferabilityMetric(
        "NCTI",
        "how near the features are to neural collapse, scaled over the pool",
        ncti_terms,
        is_default=False,
        combine=ncti,
    ),
    "pactran": TransferabilityMetric(
        "PACTran", "PAC-Bayesian bound on the error of logistic regression, negative", pactran, is_default=False
    ),
    # The other metrics are to stand in for it.
    "linear_probe": TransferabilityMetric(
        "linear probe",
        "accuracy of logistic regression over five folds, the slow reference",
        linear_probe_accuracy,
        bound=lambda classes: 1.0,
        prepare=prepare_linear_probe,
        is_default=False,
    ),
    "num_classes": TransferabilityMetric(
        "NumC",
        "number of the target's classes, the baseline for targets",
        num_classes,
        data=("labels",),
        higher_is_better=False,
        baseline="counts the classes of the target",
    ),
    # These take facts that are not known of every source.
    "source_accuracy": TransferabilityMetric(
        "source accuracy",
        "accuracy of the source on its own task, a baseline for sources",
        source_accuracy,
        data=("facts",),
        baseline="is the accuracy of the source on its own task",
        is_default=False,
    ),
    "parameters": TransferabilityMetric(
        "parameters",
        "number of the source's parameters, a baseline for sources",
        parameter_count,
        data=("facts",),
        baseline="counts the parameters of the source",
        is_default=False,
    ),
}

"""The catalogue of transferability metrics, from which commands compute, rank, print and list them."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

import numpy as np

from headstart.metrics.arrays import Flags, Floats
from headstart.metrics.transferability.inputs import Inputs
from headstart.output.shipped_files import load_yaml

CATALOGUE = Path(__file__).with_name("catalogue.yaml")
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
        fixed: Arguments that are no options, because they make it another metric.
        higher_is_better: Whether a higher score means that the source transfers better. This is false for a baseline
            only, whose sign is reversed where targets are ranked.
        baseline: How the metric follows from the labels of the target alone, or from the source alone. It is then the
            same for all sources, or for all targets. It ranks none of them and does not count in mean ranks. Empty for
            a metric that depends on both.
        is_default: Whether the metric is computed where no metrics are named.
        highest: The highest score that features can reach, or `classes - 1` where it depends on how many classes the
            target has. At it, a score says neither which source is better nor how uncertain it is. None where there is
            no such score.
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
    data: Sequence[str] = ("statistics",)
    options: Mapping[str, Any] = field(default_factory=dict)
    fixed: Mapping[str, Any] = field(default_factory=dict)
    higher_is_better: bool = True
    baseline: str = ""
    is_default: bool = True
    highest: float | Literal["classes - 1"] | None = None
    features_reach_bound: bool = False
    combine: Callable[..., Floats] | None = None
    prepare: Callable[..., Callable[[Flags], float | Floats]] | None = None

    @property
    def defaults(self) -> dict[str, Any]:
        """The options that the function has, with their defaults."""
        parameters = inspect.signature(self.function).parameters
        no_options = {*ARGUMENTS, *self.data, *self.fixed}
        return {name: option.default for name, option in parameters.items() if name not in no_options}

    def bound(self, classes: int) -> float | None:
        """Return the highest score that features can reach on a target of so many classes; None if there is none."""
        return classes - 1.0 if self.highest == "classes - 1" else self.highest

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
            options = {**self.fixed, **self.options}
            return lambda _, remaining: self.function(*(getattr(remaining, name) for name in self.data), **options)
        prepared = cache(lambda: prepare(inputs.statistics, seed=inputs.seed, **self.options))
        return lambda kept, _: prepared()(kept)


def _read(entry: Mapping[str, Any]) -> TransferabilityMetric:
    """Return a metric from its entry in the catalogue, with the functions that it names."""
    values = dict(entry)
    for name in {"function", "combine", "prepare"} & set(entry):
        module, _, function = entry[name].partition(".")
        values[name] = getattr(import_module(f"{__package__}.{module}"), function)
    return TransferabilityMetric(**values)


# By the names in options, tables and documents, in the order of reports.
METRICS = {name: _read(entry) for name, entry in load_yaml(CATALOGUE.read_text(encoding="utf-8")).items()}

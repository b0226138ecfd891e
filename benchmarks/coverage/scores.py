"""Transferability scores."""

from collections.abc import Iterator

import numpy as np

from headstart.benchmarks.frame import Shares, Values, covers
from headstart.evaluation.sources.metric_names import DEFAULT_METRICS
from headstart.metrics.ranking.aggregates import jackknife_error
from headstart.metrics.transferability.catalogue import METRICS
from headstart.metrics.transferability.inputs import Inputs
from headstart.metrics.transferability.left_out import NO_STARTS, divide, error_of_start, interval

PARTS, SOURCES = 10, 2
NAMES = [name for name in DEFAULT_METRICS if not METRICS[name].baseline]


class Population:
    """Samples of overlapping classes, and their features from two sources.

    Args:
        classes: Number of classes.
        size: Samples of each class.
        features: Number of features.
    """

    def __init__(self, classes: int, size: int, features: int) -> None:
        generator = np.random.default_rng(0)
        self.labels = np.repeat(np.arange(classes), size)
        self.scale = 3 / np.sqrt(np.arange(1, features + 1))
        self.centres = generator.standard_normal((classes, features)) * self.scale / 3
        self.rotations = [np.linalg.qr(generator.standard_normal((features, features)))[0] for _ in range(SOURCES)]
        self.head = generator.standard_normal((features, 20)) / 3

    def sample(self, seed: int) -> Iterator[Inputs]:
        """Yield the features of the same new samples from each source: a random rotation, then ReLU."""
        noise = np.random.default_rng((1, seed)).standard_normal((len(self.labels), len(self.scale)))
        samples = self.centres[self.labels] + noise * self.scale
        for rotation in self.rotations:
            features = np.maximum(samples @ rotation, 0)
            yield Inputs(features, self.labels, features @ self.head)


def score_all(inputs: Inputs) -> list[float]:
    """Compute all metrics."""
    return [METRICS[name].compute(inputs) for name in NAMES]


def leave_out(inputs: Inputs, seed: int) -> Values:
    """Compute all metrics with one part of the samples left out at a time, `[metrics, parts]`."""
    parts = divide(inputs.labels, PARTS, seed)
    scorers = [METRICS[name].scorer(inputs) for name in NAMES]
    scores = []
    for part in range(PARTS):
        remaining = parts != part
        rest = inputs.subset(remaining)
        scores.append([np.mean(scorer(remaining[inputs.order], rest)) for scorer in scorers])
    return np.array(scores).T


def score_starts(inputs: Inputs) -> list[Values]:
    """Return for each metric its scores by random start, `[starts]`; `NO_STARTS` for a metric without random starts."""
    evaluated = [METRICS[name].evaluate(inputs) for name in NAMES]
    return [result if isinstance(result, np.ndarray) else NO_STARTS for result in evaluated]


def scores(
    classes: int = 10, size: int = 40, features: int = 64, fresh: int = 200, trials: int = 40
) -> Iterator[tuple[str, Shares]]:
    """Standard errors relative to the spread of scores, and coverage of intervals, for a score and a difference of two.

    Args:
        classes: Number of classes.
        size: Samples of each class.
        features: Number of features.
        fresh: Number of samples from which the spread and the mean of the scores are computed.
        trials: Number of samples for which intervals are computed.
    """
    population = Population(classes, size, features)
    seeds = range(fresh, fresh + trials)
    fresh_scores = np.array([[score_all(source) for source in population.sample(seed)] for seed in range(fresh)])
    trial_scores = np.array([[score_all(source) for source in population.sample(seed)] for seed in seeds])
    left_out = np.array([[leave_out(source, seed) for source in population.sample(seed)] for seed in seeds])
    starts = [[score_starts(source) for source in population.sample(seed)] for seed in seeds]

    def calibration(metric: int) -> Iterator[tuple[str, float]]:
        starts_of_metric = np.array([[values[metric] for values in trial] for trial in starts])
        arrays = (fresh_scores[..., metric], trial_scores[..., metric], left_out[:, :, metric], starts_of_metric)
        single = tuple(values[:, 0] for values in arrays)
        # The starts of two sources are independent, so that the variance of their differences is the sum of theirs.
        difference = tuple(values[:, 0] - values[:, 1] for values in arrays)
        for name, (fresh_values, trial_values, parts, start_scores) in (("score", single), ("difference", difference)):
            errors = np.sqrt((jackknife_error(parts) ** 2 + error_of_start(start_scores) ** 2).mean())
            yield f"{name}: error / spread", float(errors / fresh_values.std(ddof=1))
            intervals = np.array([interval(*case) for case in zip(trial_values, parts, start_scores, strict=True)])
            yield f"{name}: held", float(covers(intervals.T, fresh_values.mean()).mean())

    for index, name in enumerate(NAMES):
        yield METRICS[name].title, dict(calibration(index))


BENCHMARKS = (scores,)

"""Transferability scores."""

from collections.abc import Iterator

import numpy as np

from headstart.benchmarks.frame import Shares, Values, holds
from headstart.evaluation.sources.metric_names import DEFAULT_METRICS
from headstart.metrics.ranking.aggregates import jackknife_error
from headstart.metrics.transferability.catalogue import METRICS
from headstart.metrics.transferability.inputs import Inputs
from headstart.metrics.transferability.left_out import NO_STARTS, divide, error_of_start, interval

PARTS, SOURCES = 10, 2
NAMES = [name for name in DEFAULT_METRICS if not METRICS[name].baseline]


class Population:
    """Features of two sources of classes that overlap.

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
        self.maps = [np.linalg.qr(generator.standard_normal((features, features)))[0] for _ in range(SOURCES)]
        self.head = generator.standard_normal((features, 20)) / 3

    def sample(self, seed: int) -> Iterator[Inputs]:
        """Yield the same samples as each source sees them: through a map of its own that is cut off at 0."""
        noise = np.random.default_rng((1, seed)).standard_normal((len(self.labels), len(self.scale)))
        samples = self.centres[self.labels] + noise * self.scale
        for axes in self.maps:
            features = np.maximum(samples @ axes, 0)
            yield Inputs(features, self.labels, features @ self.head)


def score_all(inputs: Inputs) -> list[float]:
    """Compute all metrics."""
    return [METRICS[name].compute(inputs) for name in NAMES]


def leave_out(inputs: Inputs, seed: int) -> Values:
    """Compute all metrics without each part, `[metrics, parts]`."""
    parts = divide(inputs.labels, PARTS, seed)
    scorers = [METRICS[name].scorer(inputs) for name in NAMES]
    scores = []
    for part in range(PARTS):
        remaining = parts != part
        rest = inputs.subset(remaining)
        scores.append([np.mean(scorer(remaining[inputs.order], rest)) for scorer in scorers])
    return np.array(scores).T


def score_starts(inputs: Inputs) -> list[Values]:
    """Return the scores of the random starts by metric, `[starts]`, none where it depends on none."""
    evaluated = [METRICS[name].evaluate(inputs) for name in NAMES]
    return [result if isinstance(result, np.ndarray) else NO_STARTS for result in evaluated]


def scores(
    classes: int = 10, size: int = 40, features: int = 64, fresh: int = 200, trials: int = 40
) -> Iterator[tuple[str, Shares]]:
    """Standard errors over the spread of fresh samples, and intervals, of a score and of the difference of two sources.

    Args:
        classes: Number of classes.
        size: Samples of each class.
        features: Number of features.
        fresh: Samples that tell the spread of scores.
        trials: Samples from which intervals are computed.
    """
    population = Population(classes, size, features)
    seeds = range(fresh, fresh + trials)
    truth = np.array([[score_all(source) for source in population.sample(seed)] for seed in range(fresh)])
    drawn_scores = np.array([[score_all(source) for source in population.sample(seed)] for seed in seeds])
    left_out = np.array([[leave_out(source, seed) for source in population.sample(seed)] for seed in seeds])
    starts = [[score_starts(source) for source in population.sample(seed)] for seed in seeds]

    def agreement(metric: int) -> Iterator[tuple[str, float]]:
        sources = np.array([[values[metric] for values in trial] for trial in starts])
        arrays = (truth[..., metric], drawn_scores[..., metric], left_out[:, :, metric], sources)
        one = tuple(values[:, 0] for values in arrays)
        # The starts of two sources are independent, so that the variance of their differences is the sum of theirs.
        difference = tuple(values[:, 0] - values[:, 1] for values in arrays)
        for name, (true, trial_scores, parts, of_starts) in (("score", one), ("difference", difference)):
            errors = np.sqrt((jackknife_error(parts) ** 2 + error_of_start(of_starts) ** 2).mean())
            yield f"{name}: error / spread", float(errors / true.std(ddof=1))
            intervals = np.array([interval(*case) for case in zip(trial_scores, parts, of_starts, strict=True)])
            yield f"{name}: held", float(holds(intervals.T, true.mean()).mean())

    for index, name in enumerate(NAMES):
        yield METRICS[name].title, dict(agreement(index))


BENCHMARKS = (scores,)

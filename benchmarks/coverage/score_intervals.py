"""How far standard errors of transferability scores agree with the spread over fresh samples, and intervals hold."""

from collections.abc import Iterator

import numpy as np

from headstart.benchmarks.coverage.frame import Shares, Values, holds, print_table
from headstart.evaluation.sources.metric_names import DEFAULT_METRICS
from headstart.metrics.transferability.catalogue import METRICS
from headstart.metrics.transferability.inputs import Inputs
from headstart.metrics.transferability.left_out import divide, interval, standard_error

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
            logits = np.exp(features @ self.head)
            yield Inputs(features, self.labels, logits / logits.sum(1, keepdims=True))


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
        rest = inputs.remaining(remaining)
        scores.append([scorer(remaining[inputs.order], rest) for scorer in scorers])
    return np.array(scores).T


def main(classes: int = 10, size: int = 40, features: int = 64, fresh: int = 200, trials: int = 40) -> None:
    """Print standard errors over the spread, and coverage at 95 %, for a score and the difference of two sources.

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
    scores = np.array([[score_all(source) for source in population.sample(seed)] for seed in seeds])
    left_out = np.array([[leave_out(source, seed) for source in population.sample(seed)] for seed in seeds])

    def agreement(metric: int) -> Iterator[tuple[str, float]]:
        one = tuple(values[:, 0, metric] for values in (truth, scores, left_out))
        difference = tuple(values[:, 0, metric] - values[:, 1, metric] for values in (truth, scores, left_out))
        for name, (true, trial_scores, parts) in (("score", one), ("difference", difference)):
            errors = np.sqrt((standard_error(parts) ** 2).mean())
            yield f"{name}: error / spread", float(errors / true.std(ddof=1))
            intervals = np.array([interval(*each) for each in zip(trial_scores, parts, strict=True)])
            yield f"{name}: held", float(holds(intervals.T, true.mean()).mean())

    print(f"{classes} classes of {size} samples, {features} features")
    rows: list[tuple[str, Shares]] = [(METRICS[name].title, dict(agreement(i))) for i, name in enumerate(NAMES)]
    print_table(rows)

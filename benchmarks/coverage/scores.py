"""Transferability scores."""

from collections.abc import Iterator

import numpy as np

from headstart.benchmarks.frame import Shares, Values, covers
from headstart.evaluation.sources.metric_names import DEFAULT_METRICS
from headstart.evaluation.sources.scores import score_source
from headstart.metrics.ranking.aggregates import jackknife_error
from headstart.metrics.transferability.catalogue import METRICS
from headstart.metrics.transferability.inputs import Inputs
from headstart.metrics.transferability.left_out import divide, error_of_start, interval
from headstart.output.progress import Progress

PARTS, SOURCES = 10, 2
# The classes, the samples of each and the features of the population.
CLASSES, SIZE, FEATURES = 10, 40, 64
COMPARED = {name: METRICS[name] for name in DEFAULT_METRICS if not METRICS[name].baseline}


class Population:
    """Samples of overlapping classes, and their features from two sources."""

    def __init__(self) -> None:
        generator = np.random.default_rng(0)
        self.labels = np.repeat(np.arange(CLASSES), SIZE)
        self.scale = 3 / np.sqrt(np.arange(1, FEATURES + 1))
        self.centres = generator.standard_normal((CLASSES, FEATURES)) * self.scale / 3
        self.rotations = [np.linalg.qr(generator.standard_normal((FEATURES, FEATURES)))[0] for _ in range(SOURCES)]
        self.head = generator.standard_normal((FEATURES, 20)) / 3

    def sample(self, seed: int) -> Iterator[Inputs]:
        """Yield the features of the same new samples from each source: a random rotation, then ReLU."""
        noise = np.random.default_rng((1, seed)).standard_normal((len(self.labels), len(self.scale)))
        samples = self.centres[self.labels] + noise * self.scale
        for rotation in self.rotations:
            features = np.maximum(samples @ rotation, 0)
            yield Inputs(features, self.labels, features @ self.head)


def calibration(kind: str, fresh: Values, values: Values, left_out: Values, starts: Values) -> Shares:
    """Return the standard error relative to the spread of scores, and how often intervals hold.

    Args:
        kind: What the scores are, for the columns' names.
        fresh: Scores from which the spread and the mean are computed, `[fresh]`.
        values: Scores with intervals, `[trials]`.
        left_out: The same with each part left out, `[trials, parts]`.
        starts: The same by random start, `[trials, starts]`.
    """
    errors = np.sqrt((jackknife_error(left_out) ** 2 + error_of_start(starts) ** 2).mean())
    ends = np.array([interval(*case) for case in zip(values, left_out, starts, strict=True)])
    return {
        f"{kind}: error / spread": float(errors / fresh.std(ddof=1)),
        f"{kind}: held": float(covers(ends.T, fresh.mean()).mean()),
    }


def scores(fresh: int = 200, trials: int = 40) -> Iterator[tuple[str, Shares]]:
    """Standard errors relative to the spread of scores, and coverage of intervals, for a score and a difference of two.

    Args:
        fresh: Number of samples from which the spread and the mean of the scores are computed.
        trials: Number of samples for which intervals are computed.
    """
    population = Population()
    with Progress("scores", SOURCES * (fresh + trials * (1 + PARTS)) * len(COMPARED), "scores") as progress:
        scored = [
            [
                score_source(COMPARED, source, divide(source.labels, PARTS if seed >= fresh else 0, seed), progress)
                for source in population.sample(seed)
            ]
            for seed in range(fresh + trials)
        ]

    for name, metric in COMPARED.items():
        values = np.array([[score[name].value for score in sources] for sources in scored])
        left_out = np.array([[score[name].left_out for score in sources] for sources in scored[fresh:]])
        starts = np.array([[score[name].starts for score in sources] for sources in scored[fresh:]])

        arrays = (values[:fresh], values[fresh:], left_out, starts)
        single = [array[:, 0] for array in arrays]
        # The starts of two sources are independent, so that the variance of their differences is the sum of theirs.
        difference = [array[:, 0] - array[:, 1] for array in arrays]
        yield metric.title, {**calibration("score", *single), **calibration("difference", *difference)}


BENCHMARKS = (scores,)

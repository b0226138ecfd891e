"""How far the standard error of a score agrees with the spread of scores over samples that are drawn anew."""

from __future__ import annotations

from collections.abc import Iterator

import jsonargparse
import numpy as np
from numpy.typing import NDArray

from headstart.evaluation.sources.metric_names import DEFAULT_METRICS
from headstart.metrics.transferability.catalogue import METRICS
from headstart.metrics.transferability.inputs import Inputs
from headstart.metrics.transferability.left_out import divide, interval, standard_error

PARTS = 10
SOURCES = 2
NAMES = [name for name in DEFAULT_METRICS if not METRICS[name].baseline]
Values = NDArray[np.float64]


class Population:
    """Two sources of features of classes that overlap, from whose samples anew any number can be drawn.

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

    def draw(self, seed: int) -> list[Inputs]:
        """Draw the same samples as both sources see them: through a map of their own that is cut off at 0."""
        generator = np.random.default_rng((1, seed))
        samples = (
            self.centres[self.labels] + generator.standard_normal((len(self.labels), len(self.scale))) * self.scale
        )
        found = []
        for axes in self.maps:
            features = np.maximum(samples @ axes, 0)
            logits = np.exp(features @ self.head)
            found.append(Inputs(features, self.labels, logits / logits.sum(1, keepdims=True)))
        return found


def score_all(given: Inputs) -> Values:
    """Compute all metrics, `[metrics]`."""
    return np.array([METRICS[name].compute(given) for name in NAMES])


def leave_out(given: Inputs, seed: int) -> Values:
    """Compute all metrics without each part, `[metrics, parts]`."""
    parts = divide(given.labels, PARTS, seed)
    scorers = {name: METRICS[name].scorer(given) for name in NAMES}

    def without() -> Iterator[list[float]]:
        for part in range(PARTS):
            kept = parts != part
            rest = given.remaining(kept)
            yield [scorers[name](kept[given.order], rest) for name in NAMES]

    return np.array(list(without())).T


def draw_again(given: Inputs, seed: int, resamples: int) -> Values:
    """Compute all metrics on samples drawn with replacement class by class, `[metrics, resamples]`."""
    generator, labels = np.random.default_rng(seed), given.labels
    found = []
    for _ in range(resamples):
        classes = [np.flatnonzero(labels == label) for label in np.unique(labels)]
        rows = np.concatenate([generator.choice(places, len(places)) for places in classes])
        found.append(score_all(Inputs(given.features[rows], labels[rows], given.probabilities[rows])))
    return np.array(found).T


def main(
    classes: int = 10, size: int = 40, features: int = 64, fresh: int = 200, trials: int = 40, resamples: int = 20
) -> None:
    """Print, for a score and for the difference of two sources', standard errors over the spread, and coverage at 95 %.

    Args:
        classes: Number of classes.
        size: Samples of each class.
        features: Number of features.
        fresh: Draws that tell the spread of scores.
        trials: Draws that the intervals are computed of.
        resamples: Draws of the bootstrap that the intervals are compared with.
    """
    population = Population(classes, size, features)
    truth = np.array([[score_all(source) for source in population.draw(seed)] for seed in range(fresh)])
    scores, errors, bootstrap = [], [], []
    for seed in range(fresh, fresh + trials):
        sources = population.draw(seed)
        scores.append([score_all(source) for source in sources])
        errors.append([leave_out(source, seed) for source in sources])
        bootstrap.append([draw_again(source, seed, resamples) for source in sources])
    print(f"{classes} classes of {size} samples, {features} features")
    print("                  left out                          bootstrap")
    print("metric            score  held  difference  held  score  shift")
    for place, name in enumerate(NAMES):
        cells = _held(truth[..., place], np.array(scores)[..., place], np.array(errors)[..., place, :])
        drawn = np.array(bootstrap)[:, 0, place]
        spread = truth[:, 0, place].std(ddof=1)
        shift = (drawn.mean(1) - np.array(scores)[:, 0, place]).mean() / spread
        print(f"{METRICS[name].title:16}  {cells}  {_root_mean(drawn.std(1, ddof=1)) / spread:5.2f}  {shift:5.1f}")


def _held(truth: Values, scores: Values, left_out: Values) -> str:
    """Describe `[draws, sources]` beside `[trials, sources]` and `[trials, sources, parts]`."""
    cells = []
    for true, found, out in (
        (truth[:, 0], scores[:, 0], left_out[:, 0]),
        (np.subtract(*truth.T), np.subtract(*scores.T), left_out[:, 0] - left_out[:, 1]),
    ):
        ends = [interval(score, each) for score, each in zip(found, out, strict=True)]
        held = np.mean([low <= true.mean() <= high for low, high in ends])
        cells += [f"{_root_mean(standard_error(out)) / true.std(ddof=1):5.2f}", f"{held:4.0%}"]
    return f"{cells[0]}  {cells[1]}       {cells[2]}  {cells[3]}"


def _root_mean(values: Values) -> float:
    return float(np.sqrt((values**2).mean()))


if __name__ == "__main__":
    jsonargparse.auto_cli(main)

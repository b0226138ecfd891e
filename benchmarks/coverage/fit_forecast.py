"""How often the forecasts of `headstart fit` hold the accuracy of more labels, on a data set that was left out."""

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray

from headstart.benchmarks.coverage.forecast_curves import SOURCES, TARGETS
from headstart.benchmarks.coverage.frame import Shares, print_table
from headstart.datamodules.embedding import embed_readable
from headstart.evaluation.classifiers.assessment import try_left_out
from headstart.evaluation.classifiers.candidates import Labelled
from headstart.evaluation.classifiers.forecast import forecast_rows
from headstart.evaluation.classifiers.left_out import prepare
from headstart.evaluation.classifiers.prequential import curve_sizes, learning_curve
from headstart.metrics.few_labels.folds import proportional_orderings
from headstart.metrics.forecast.curve_forecast import TIMES
from headstart.metrics.forecast.forecaster import Forecaster, known_cases
from headstart.metrics.forecast.known_curves import shipped_curves
from headstart.modules.methods.catalogue import METHODS
from headstart.modules.networks.backbone import BackboneSpec

# Samples that the accuracy is measured on, at least.
FEWEST_LEFT = 80
# So that these draws are no draw of a comparison.
STREAM = 8


def read_samples(target: str, source: str) -> Labelled:
    """Return all photos of a target, embedded by a source."""
    photos = TARGETS[target].photos()
    parts = [photos.train(), photos.validation()]
    found = [embed_readable(part, BackboneSpec("mobilenet_v2", SOURCES[source]), num_workers=0) for part in parts]
    features = torch.from_numpy(np.concatenate([each.features for each in found]))
    labels = torch.from_numpy(np.concatenate([part.labels for part in parts]))
    head, bias = found[0].backbone.source_head, found[0].backbone.source_bias
    return Labelled(features, labels, len(parts[0].classes), head, bias)


def coverage(samples: Labelled, per_class: int, draws: int, orderings: int, forecaster: Forecaster) -> list[Shares]:
    """Return how often forecasts hold at 2, 4 and 8 times the labels, their width, and how far they are off.

    Args:
        samples: All samples of a data set.
        per_class: Labels of each class that a draw has.
        draws: Number of draws.
        orderings: Orderings of the learning curve.
        forecaster: What forecasts.
    """
    shuffled = [_shuffle(samples.labels.numpy(), per_class, draw) for draw in range(draws)]
    later = [times for times in TIMES if times * per_class * samples.classes + FEWEST_LEFT <= len(samples.labels)]
    rows = [_forecast(samples, order[: per_class * samples.classes], orderings, forecaster) for order in shuffled]
    shares = []
    for column, times in enumerate(later):
        count = times * per_class * samples.classes
        truths = np.array(
            [
                _accuracy(samples, kind, order[:count], order[count:])
                for (kind, _), order in zip(rows, shuffled, strict=True)
            ]
        )
        low, high = np.array([each[column]["interval"] for _, each in rows]).T
        expected = np.array([each[column]["estimate"] for _, each in rows])
        shares.append(
            {
                "labels": float(count),
                "held": float(((low <= truths) & (truths <= high)).mean()),
                "accuracy below": float((truths < low).mean()),
                "width": float((high - low).mean()),
                "RMSE": float(((expected - truths) ** 2).mean() ** 0.5),
            }
        )
    return shares


def _shuffle(labels: NDArray[np.int64], per_class: int, draw: int) -> NDArray[np.int64]:
    """Return all samples in an order in which the classes take turns as long as all have some left, `[samples]`."""
    generator = np.random.default_rng((STREAM, draw, per_class))
    order = generator.permutation(len(labels))
    turns = np.empty(len(labels), dtype=np.int64)
    for label in np.unique(labels):
        own = order[labels[order] == label]
        turns[own] = np.arange(len(own))
    return order[np.argsort(turns[order], kind="stable")]


def _forecast(
    samples: Labelled, drawn: NDArray[np.int64], orderings: int, forecaster: Forecaster
) -> tuple[str, list[dict]]:
    """Return the class of the chosen method and its forecast, as `headstart fit` finds them."""
    own = torch.from_numpy(drawn)
    part = Labelled(
        samples.features[own], samples.labels[own], samples.classes, samples.source_head, samples.source_bias
    )
    tried = try_left_out([part], 0)
    _, method = tried.prepared[tried.expected.chosen]
    sizes = curve_sizes(len(drawn), samples.classes)
    curve = learning_curve(method, proportional_orderings(part.labels.numpy(), orderings, 0), sizes)
    name = METHODS[method.name].name
    return method.name, forecast_rows(sizes, curve, tried.expected, len(drawn), samples.classes, name, forecaster)


def _accuracy(samples: Labelled, kind: str, learnt: NDArray[np.int64], others: NDArray[np.int64]) -> float:
    """Return the accuracy on other samples after some are learnt."""
    predicted = prepare(kind, samples).predict(torch.from_numpy(learnt)[None], torch.from_numpy(others)[None])
    return float((predicted[0].argmax(-1) == samples.labels[others]).double().mean())


def main(
    targets: list[str] = ["ants and bees", "cats and dogs", "flowers", "drawn pets, noisy", "digits"],  # noqa: B006 - never changed
    sources: list[str] = ["imagenet", "birds", "insects"],  # noqa: B006 - never changed
    sizes: list[int] = [5, 20, 50],  # noqa: B006 - never changed
    draws: int = 20,
    orderings: int = 30,
) -> None:
    """Print the coverage of 80 % intervals, for draws of some labels of each class; the rest is what is predicted.

    Args:
        targets: Targets of forecast_curves.
        sources: Where backbones were pre-trained.
        sizes: Labels of each class.
        draws: Draws of each target, source and size.
        orderings: Orderings of the learning curves.
    """
    torch.set_num_threads(1)
    known = shipped_curves()

    def cases() -> Iterator[tuple[str, Shares]]:
        for target in targets:
            forecaster = Forecaster(known_cases(known.where(known.data_sets != TARGETS[target].data_set)))
            for source in sources:
                samples = read_samples(target, source)
                for size in sizes:
                    for shares in coverage(samples, size, draws, orderings, forecaster):
                        yield f"{target}, {source}, {size} per class", shares

    print_table(cases())

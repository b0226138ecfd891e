"""How often the forecasts of `headstart fit` hold the accuracy of more labels, on a data set that was left out."""

from collections.abc import Iterator
from functools import cache, partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from headstart.benchmarks.coverage.forecast_curves import SOURCES, TARGETS
from headstart.benchmarks.coverage.frame import Shares, print_table
from headstart.datamodules.embedding import embed_readable
from headstart.evaluation.classifiers.assessment import try_left_out
from headstart.evaluation.classifiers.candidates import Labelled
from headstart.evaluation.classifiers.forecast import forecast_rows
from headstart.evaluation.classifiers.left_out import prepare
from headstart.evaluation.classifiers.prequential import curve_sizes, learning_curve
from headstart.metrics.few_labels.folds import proportional_orderings
from headstart.metrics.forecast.forecaster import Forecaster, known_cases
from headstart.metrics.forecast.known_curves import shipped_curves
from headstart.modules.methods.catalogue import METHODS
from headstart.modules.networks.backbone_spec import BackboneSpec

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


def coverage(samples: Labelled, per_class: int, draws: int, orderings: int, forecaster: Forecaster) -> Shares:
    """Return how often forecasts hold at 2, 4 and 8 times the labels, their width, and their root mean square error.

    Args:
        samples: All samples of a data set.
        per_class: Labels of each class that a draw has.
        draws: Number of draws.
        orderings: Orderings of the learning curve.
        forecaster: What forecasts.
    """
    known, whole = per_class * samples.classes, cache(partial(prepare, samples=samples))
    rows = []
    for draw in range(draws):
        order = _shuffle(samples.labels.numpy(), draw)
        kind, forecasts = _forecast(samples, order[:known], orderings, forecaster)
        for each in forecasts:
            if (labels := each["labels"]) + FEWEST_LEFT <= len(order):
                learnt, others = order[:labels], order[labels:]
                predicted = whole(kind).predict(learnt[None], others[None])[0].argmax(-1)
                truth = float((predicted == samples.labels[others]).double().mean())
                rows.append((*each["interval"], each["estimate"], truth))

    low, high, expected, truths = np.array(rows).T
    return {
        "held": float(((low <= truths) & (truths <= high)).mean()),
        "accuracy below": float((truths < low).mean()),
        "width": float((high - low).mean()),
        "RMSE": float(((expected - truths) ** 2).mean() ** 0.5),
    }


def _shuffle(labels: NDArray[np.int64], draw: int) -> Tensor:
    """Return all samples in an order in which classes take turns as long as all have some left, `[samples]`."""
    order = np.random.default_rng((STREAM, draw)).permutation(len(labels))
    turns = np.empty(len(labels), dtype=np.int64)
    for label in np.unique(labels):
        own = order[labels[order] == label]
        turns[own] = np.arange(len(own))
    return torch.from_numpy(order[np.argsort(turns[order], kind="stable")])


def _forecast(
    samples: Labelled, drawn: Tensor, orderings: int, forecaster: Forecaster
) -> tuple[str, list[dict[str, Any]]]:
    """Return the class of the chosen method and its forecast, as `headstart fit` finds them."""
    part = Labelled(
        samples.features[drawn], samples.labels[drawn], samples.classes, samples.source_head, samples.source_bias
    )

    tried = try_left_out([part], 0)
    _, method = tried.prepared[tried.expected.chosen]
    sizes = curve_sizes(len(drawn), samples.classes)
    curve = learning_curve(method, proportional_orderings(part.labels.numpy(), orderings, 0), sizes)
    name = METHODS[method.name].name
    return method.name, forecast_rows(sizes, curve, tried.expected, len(drawn), samples.classes, name, forecaster)


def main(
    targets: list[str] = ["ants and bees", "cats and dogs", "flowers", "drawn pets, noisy"],  # noqa: B006 - never changed
    sources: list[str] = ["imagenet", "birds"],  # noqa: B006 - never changed
    sizes: list[int] = [5, 20, 50],  # noqa: B006 - never changed
    draws: int = 10,
    orderings: int = 30,
) -> dict[str, Shares]:
    """Print the coverage of 80 % intervals, for draws of some labels of each class; the rest is what is predicted.

    Args:
        targets: Targets of forecast_curves; each is left out as a whole of what forecasts.
        sources: Where backbones were pre-trained.
        sizes: Labels of each class.
        draws: Draws of each target, source and size.
        orderings: Orderings of the learning curves.

    Returns:
        The shares, by case.
    """
    torch.set_num_threads(1)
    known = shipped_curves()

    def cases() -> Iterator[tuple[str, Shares]]:
        found = []
        for target in targets:
            forecaster = Forecaster(known_cases(known.where(known.data_sets != TARGETS[target].data_set)))
            for source in sources:
                samples = read_samples(target, source)
                for size in sizes:
                    found.append(coverage(samples, size, draws, orderings, forecaster))
                    yield f"{target}, {source}, {size} labels per class", found[-1]
        yield "all", {name: float(np.mean([each[name] for each in found])) for name in found[0]}

    return print_table(cases())

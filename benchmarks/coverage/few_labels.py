"""`headstart fit` and forecasts.

Every data set is left out of what forecasts it. Photos and weights lie beside the checkout.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache, partial
from itertools import product

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor

from headstart.benchmarks.forecast_curves import SHARED, SOURCES, TARGETS, data_set_of, judged_cases
from headstart.benchmarks.frame import Shares
from headstart.datamodules.embedding import embed_readable
from headstart.datamodules.photos.class_folders import ClassFolders
from headstart.evaluation.classifiers.answer import doubtful_indices
from headstart.evaluation.classifiers.assessment import assess, forecast_rows, try_left_out
from headstart.evaluation.classifiers.left_out import Labelled, LeftOut, find_candidates, prepare
from headstart.metrics.few_labels.calibration import calibration_error, cross_entropies, probabilities
from headstart.metrics.forecast.curve_forecast import (
    empirical_coverage,
    leave_data_sets_out,
    mean_over_data_sets,
    mean_width,
    shipped_forecaster,
)
from headstart.metrics.forecast.forecaster import KNOWN, LEVELS, Forecaster, known_cases
from headstart.metrics.forecast.known_curves import shipped_curves
from headstart.modules.methods.catalogue import METHODS
from headstart.modules.networks.backbone_spec import BackboneSpec

SIZES = (5, 20, 50)
PHOTOS = {
    "ants and bees": "imagenet",
    "cats and dogs": "imagenet",
    "flowers": "imagenet",
    "drawn pets, noisy": "imagenet",
    "drawn animals": "objects",
}
# Further photos, each with the sources that know the target well and less well.
FURTHER = ("garbage", "textures")
NEAR_AND_FAR = ("imagenet", "birds")
# Numbers of classes beyond those of the photos.
MANY_CLASSES = (20, 50, 100)
# Share of labels that are changed, and into how many classes each class is split at random.
FLIPPED, NOISE, SPLIT = 0.05, 0.3, 4
# Samples that the accuracy is measured on, at least.
FEWEST_LEFT = 80
ORDERINGS = 30
# So that these draws are no draw of a comparison.
STREAM = 8


def read_samples(target: str, source: str) -> Labelled:
    """Return all photos of a target, embedded by a source."""
    photos = ClassFolders(f"{SHARED}/data/{target}") if target in FURTHER else TARGETS[target].photos()
    parts = [photos.train(), photos.validation()]
    tables = [embed_readable(part, BackboneSpec("mobilenet_v2", SOURCES[source]), num_workers=0) for part in parts]
    features = torch.from_numpy(np.concatenate([table.features for table in tables]))
    labels = torch.from_numpy(np.concatenate([part.labels for part in parts]))
    head, bias = tables[0].backbone.source_head, tables[0].backbone.source_bias
    return Labelled(features, labels, len(parts[0].classes), head, bias)


def shuffle(labels: NDArray[np.int64], draw: int) -> Tensor:
    """Return all samples in an order in which classes take turns as long as all have some left, `[samples]`."""
    order = np.random.default_rng((STREAM, draw)).permutation(len(labels))
    turns = pd.Series(order).groupby(labels[order]).cumcount()
    return torch.from_numpy(order[np.argsort(turns.to_numpy(), kind="stable")])


def sample(samples: Labelled, per_class: int, draws: int) -> Iterator[tuple[int, Labelled, Tensor, Tensor]]:
    """Yield a draw's number, its samples, their indices, and those of the rest."""
    for draw in range(draws):
        order = shuffle(samples.labels.numpy(), draw)
        drawn, rest = order[: per_class * samples.classes], order[per_class * samples.classes :]
        yield draw, replace(samples, features=samples.features[drawn], labels=samples.labels[drawn]), drawn, rest


def accuracy(method: LeftOut, drawn: Tensor, rest: Tensor) -> float:
    """Return the accuracy of a method on other samples than those of the draw, which it learns."""
    predicted = method.predict(drawn[None], rest[None])[0].argmax(-1)
    return float((predicted == method.samples.labels[rest]).double().mean())


def accuracy_held(samples: Labelled, per_class: int, draws: int) -> Shares:
    """Return how often the interval holds the accuracy on the rest, and how far the choice is from the best method.

    Args:
        samples: All samples of a data set.
        per_class: Labels of each class that a draw has.
        draws: Number of draws.
    """
    kinds = find_candidates(Labelled(samples.features[:1], samples.labels[:1], 1, samples.source_head))
    whole = [prepare(kind, samples) for kind in kinds]
    holds, widths, accuracies, of_chosen = [], [], [], []
    for draw, part, drawn, rest in sample(samples, per_class, draws):
        expected = try_left_out([part], seed=draw).expected
        accuracies.append([accuracy(method, drawn, rest) for method in whole])
        of_chosen.append(accuracies[-1][expected.chosen])
        holds.append(expected.low <= of_chosen[-1] <= expected.high)
        widths.append(expected.high - expected.low)
    return {
        "held": float(np.mean(holds)),
        "width": float(np.mean(widths)),
        "accuracy of the chosen method": float(np.mean(of_chosen)),
        "of the best one": float(np.mean(accuracies, axis=0).max()),
    }


def forecast_held(samples: Labelled, per_class: int, draws: int, forecaster: Forecaster) -> Shares:
    """Return how often forecasts hold at 2, 4 and 8 times the labels, their width, and their root mean square error.

    Args:
        samples: All samples of a data set.
        per_class: Labels of each class that a draw has.
        draws: Number of draws.
        forecaster: What forecasts.
    """
    labelled, whole = per_class * samples.classes, cache(partial(prepare, samples=samples))
    rows, made = list[tuple[float, ...]](), list[bool]()
    for _, part, first, rest in sample(samples, per_class, draws):
        order, tried = torch.cat([first, rest]), assess([part], ORDERINGS, 0)
        name = tried.best[1].name
        curve = tried.sizes, tried.curve, tried.expected
        drawn = forecast_rows(*curve, labelled, samples.classes, METHODS[name].name, forecaster)
        made.append(bool(drawn))
        for row in drawn:
            if (labels := row["labels"]) + FEWEST_LEFT <= len(order):
                truth = accuracy(whole(name), order[:labels], order[labels:])
                rows.append((*row["interval"], row["estimate"], truth))

    low, high, expected, truths = np.array(rows or [(np.nan,) * 4]).T
    return {
        "of the draws": float(np.mean(made)),
        "held": float(((low <= truths) & (truths <= high)).mean()),
        "width": float((high - low).mean()),
        "error": float(((expected - truths) ** 2).mean() ** 0.5),
    }


def drawn_settings(
    sources: Iterable[tuple[str, str]], sizes: Sequence[int], times: int = 1
) -> Iterator[tuple[str, str, Labelled, int]]:
    """Yield a name, a target, its samples and a number of labels per class, where enough samples are left.

    Args:
        sources: Targets with their sources.
        sizes: Numbers of labels per class.
        times: How many times as many labels are needed.
    """
    for target, source in sources:
        samples = read_samples(target, source)
        for size in sizes:
            if times * size * samples.classes + FEWEST_LEFT <= len(samples.labels):
                yield f"{target}, {source}, {size} labels per class", target, samples, size


def expected_accuracy(draws: int = 40) -> Iterator[tuple[str, Shares]]:
    """The accuracy on other photos that `headstart fit` expects."""
    for name, _, samples, size in drawn_settings(PHOTOS.items(), SIZES):
        yield name, accuracy_held(samples, size, draws)


def fit_forecasts(draws: int = 10) -> Iterator[tuple[str, Shares]]:
    """80 % intervals of the forecasts of `headstart fit`."""
    for name, target, samples, size in drawn_settings(PHOTOS.items(), SIZES, times=2):
        yield name, forecast_held(samples, size, draws, forecaster_without(data_set_of(target)))


@cache
def forecaster_without(data_set: str) -> Forecaster:
    """Return the forecaster of all data sets but one."""
    curves = shipped_curves()
    return Forecaster(known_cases(curves.query("data_set != @data_set")))


def unlearnable_forecasts(draws: int = 10) -> Iterator[tuple[str, Shares]]:
    """The same where labels are noise, or where classes cannot be told apart; a curve that does not rise has none."""
    generator, forecaster = np.random.default_rng(0), shipped_forecaster()
    samples = read_samples("textures", "imagenet")
    noise = torch.from_numpy(generator.random(len(samples.labels)) < NOISE)
    noisy = torch.where(noise, torch.from_numpy(generator.integers(0, samples.classes, len(noise))), samples.labels)
    split = SPLIT * samples.labels + torch.from_numpy(generator.integers(0, SPLIT, len(noise)))
    cases = {
        f"textures, {NOISE:.0%} of the labels at random": replace(samples, labels=noisy),
        f"textures, each class split into {SPLIT} at random": replace(
            samples, labels=split, classes=SPLIT * samples.classes
        ),
    }
    for name, changed in cases.items():
        for size in (3, 5, 10):
            if 2 * size * changed.classes + FEWEST_LEFT <= len(changed.labels):
                yield f"{name}, {size} labels per class", forecast_held(changed, size, draws, forecaster)


def probabilities_held(samples: Labelled, per_class: int, draws: int) -> Shares:
    """Return the calibration error on other photos, and the cross-entropy over that at the best temperature there.

    Args:
        samples: All samples of a data set.
        per_class: Labels of each class that a draw has.
        draws: Number of draws.
    """
    rows = []
    for draw, part, drawn, rest in sample(samples, per_class, draws):
        tried = try_left_out([part], seed=draw)
        name = tried.best[1].name
        logits = prepare(name, samples).predict(drawn[None], rest[None])[0].double().numpy()
        labels, temperature = samples.labels[rest].numpy(), tried.temperature

        predicted = probabilities(logits, temperature)
        right = predicted.argmax(1) == labels
        best = min(cross_entropies(logits, labels, temperature * scale).mean() for scale in np.geomspace(0.1, 10, 81))
        ratio = cross_entropies(logits, labels, temperature).mean() / best
        rows.append((right.mean(), predicted.max(1).mean(), calibration_error(predicted.max(1), right), ratio))
    names = ("accuracy", "mean probability", "calibration error", "cross-entropy")
    return dict(zip(names, np.mean(rows, axis=0).tolist(), strict=True))


def fit_probabilities(draws: int = 10) -> Iterator[tuple[str, Shares]]:
    """Probabilities of `headstart fit` on other photos, and their cross-entropy over that at the best temperature."""
    sources = product((*FURTHER, "flowers", "ants and bees"), NEAR_AND_FAR)
    for name, _, samples, size in drawn_settings(sources, (3, 10, 20, 50)):
        yield name, probabilities_held(samples, size, draws)

    for classes in MANY_CLASSES:
        for size in (3, 10):
            name = f"{classes} normal distributions, {size} labels per class"
            yield name, probabilities_held(normal_classes(classes), size, draws)


def normal_classes(classes: int) -> Labelled:
    """Return 40 samples of each of many normal distributions in 128 dimensions, which overlap."""
    generator = np.random.default_rng(classes)
    labels = np.repeat(np.arange(classes), 40)
    means = generator.normal(0, 0.4, (classes, 128))
    features = means[labels] + generator.normal(0, 1, (len(labels), 128)) * generator.uniform(0.3, 2, 128)
    return Labelled(torch.from_numpy(features).float(), torch.from_numpy(labels), classes)


def labels_found(samples: Labelled, per_class: int, draws: int) -> Shares:
    """Return the share of flipped labels that look wrong, and how many others do for each flipped one.

    Args:
        samples: All samples of a data set.
        per_class: Labels of each class that a draw has.
        draws: Number of draws.
    """
    right, others, flipped = 0, 0, 0
    for draw, part, _, _ in sample(samples, per_class, draws):
        generator = np.random.default_rng((STREAM, draw))
        changed = generator.choice(len(part.labels), max(1, round(FLIPPED * len(part.labels))), replace=False)
        labels = part.labels.clone()
        labels[changed] += torch.from_numpy(generator.integers(1, samples.classes, len(changed)))
        assessment = assess([replace(part, labels=labels % samples.classes)], orderings=1, seed=draw)
        noted = set(doubtful_indices((labels % samples.classes).numpy(), assessment))
        right, others = right + len(noted & {*changed}), others + len(noted - {*changed})
        flipped += len(changed)
    return {"found": right / flipped, "false for each flipped": others / flipped}


def wrong_labels(draws: int = 12) -> Iterator[tuple[str, Shares]]:
    """Labels that look wrong to `headstart fit`, of 5 % that were flipped."""
    sources = product(("cats and dogs", "ants and bees", *FURTHER, "flowers"), ("imagenet",))
    for name, _, samples, size in drawn_settings(sources, (10, 20)):
        yield name, labels_found(samples, size, draws)


def forecasts() -> Iterator[tuple[str, Shares]]:
    """Intervals of `headstart forecast`, and the root mean square error of its forecasts."""
    judged = judged_cases(leave_data_sets_out(known_cases(shipped_curves())))
    groups = {"all": judged, **{f"{count} labels known": judged[judged["labels"] == count] for count in KNOWN}}
    for name in ("data_set", "source", "method"):
        groups |= {str(value): part for value, part in judged.groupby(name)}

    for name, part in groups.items():
        error = mean_over_data_sets(part, (part["expected"] - part["accuracy"]) ** 2) ** 0.5
        shares = {f"of {level:.0%}, held": empirical_coverage(part, level) for level in LEVELS}
        widths = {f"of {level:.0%}, width": mean_width(part, level) for level in LEVELS}
        yield name, {**shares, **widths, "error": error}


BENCHMARKS = (
    expected_accuracy,
    fit_probabilities,
    wrong_labels,
    fit_forecasts,
    unlearnable_forecasts,
    forecasts,
)

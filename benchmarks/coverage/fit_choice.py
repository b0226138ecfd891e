"""Whether `headstart fit` had better choose its method and backbone on the photos, by known targets, or not at all.

Every target is left out in turn: what a rule knows of methods and backbones comes from the other ones.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import permutations
from pathlib import Path

import numpy as np
import torch

from headstart.benchmarks.coverage.fit_accuracy import accuracy, draw_labels, embed_parts
from headstart.benchmarks.coverage.forecast_curves import SHARED, TARGETS, HandwrittenDigits
from headstart.datamodules.photos.class_folders import read_class_folders
from headstart.datamodules.photos.drawn_photos import DrawnPets
from headstart.datamodules.photos.photo_source import Photos, PhotoSource
from headstart.evaluation.classifiers.assessment import try_left_out
from headstart.evaluation.classifiers.candidates import CANDIDATES, Labelled
from headstart.evaluation.classifiers.left_out import prepare
from headstart.metrics.arrays import Floats, Indices
from headstart.metrics.few_labels.expected_accuracy import choose, merits
from headstart.metrics.transferability.h_score import h_score
from headstart.metrics.transferability.log_me import log_me
from headstart.modules.networks.backbone_spec import EMBEDDED, BackboneSpec

# Weights of MobileNetV2 by their source, the best one for most targets first; "objects" are the embedded ones.
FILES = {"imagenet": "imagenet", "birds": "inat_birds", "insects": "inat_insects"}
# Draws of more labels are left out: logistic regression takes too long.
MOST_LABELS = 500
# Known settings from which the nearest rule takes its method.
NEAREST = 3
METRICS: Mapping[str, Callable[..., float]] = {"LogME": log_me, "H-score": partial(h_score, shrinkage=True)}


@dataclass(frozen=True)
class Setting:
    """Draws of some labels of each class of a target, with the features of one backbone.

    Attributes:
        target: Name of the target.
        source: Where the backbone was pre-trained.
        classes: Number of classes.
        per_class: Labels of each class.
        merit: What methods are chosen by, `[draws, methods, labels]`.
        accuracies: On all other photos, after all labels of the draw were learnt, `[draws, methods]`.
        scores: Transferability metrics of each draw by name, `[draws]`.
    """

    target: str
    source: str
    classes: int
    per_class: int
    merit: Floats
    accuracies: Floats
    scores: Mapping[str, Floats]

    @property
    def gains(self) -> Floats:
        """Mean gain of every method over discriminant analysis, `[methods]`."""
        return np.asarray((self.accuracies - self.accuracies[:, :1]).mean(0))

    def place(self, draw: int | None = None) -> Floats:
        """Return the logarithms of the number of classes and of the left-out error of discriminant analysis.

        Args:
            draw: The draw; by default the mean over all.
        """
        found = self.merit[:, 0].mean(1)
        error = 1 - (found.mean() if draw is None else found[draw])
        # An error of 0 in few labels is one of less than half a label.
        return np.log([self.classes, max(error, 0.5 / self.merit.shape[2])])


def measure(target: str, source: str, samples: Labelled, per_class: int, draws: int) -> Setting:
    """Measure all methods on draws of a target.

    Args:
        target: Name of the target.
        source: Where the backbone was pre-trained.
        samples: All samples of the target.
        per_class: Labels of each class.
        draws: Number of draws.
    """
    labels = samples.labels.numpy()
    whole = [prepare(kind, samples) for kind in CANDIDATES]
    merit, accuracies, scores = [], [], []
    for number in range(draws):
        drawn, rest = draw_labels(labels, per_class, number)
        features, own = samples.features[drawn], samples.labels[drawn]
        part = Labelled(features, own, samples.classes, samples.source_head, samples.source_bias)
        tried = try_left_out([part], seed=number)

        losses = np.stack([each.by_sample()[1] for each in tried.predictions])
        merit.append(merits(tried.correct, losses))
        accuracies.append([accuracy(method, drawn, rest) for method in whole])
        scores.append([metric(features.numpy(), own.numpy()) for metric in METRICS.values()])
    by_metric = dict(zip(METRICS, np.array(scores).T, strict=True))
    return Setting(target, source, samples.classes, per_class, np.array(merit), np.array(accuracies), by_metric)


def by_fit(setting: Setting, draw: int, _: Sequence[Setting]) -> int:
    """Return the method that `headstart fit` chooses."""
    return _choose(setting.merit[draw])


def _choose(merit: Floats) -> int:
    return int(choose(merit, np.ones((1, merit.shape[1])))[0])


def by_merit(setting: Setting, draw: int, _: Sequence[Setting]) -> int:
    """Return the method of the most left-out predictions that are right."""
    return _most_right(setting.merit[draw])


def _most_right(merit: Floats) -> int:
    return int(merit.mean(1).argmax())


def by_ranking(_: Setting, __: int, known: Sequence[Setting]) -> int:
    """Return the method that is best on average on the known targets."""
    return int(np.mean([each.gains for each in known], axis=0).argmax())


def by_nearest(setting: Setting, draw: int, known: Sequence[Setting]) -> int:
    """Return the method that is best in the nearest known settings, by classes and left-out accuracy."""
    near = sorted(known, key=lambda each: np.linalg.norm(setting.place(draw) - each.place()))[:NEAREST]
    return by_ranking(setting, draw, near)


RULES: Mapping[str, Callable[[Setting, int, Sequence[Setting]], int]] = {
    "fit": by_fit,
    "most left-out predictions right": by_merit,
    "best on the other targets": by_ranking,
    "best in the three nearest settings": by_nearest,
}


def print_methods(settings: Sequence[Setting]) -> None:
    """Print the gains of every rule over always taking discriminant analysis, in points."""
    sizes = sorted({each.per_class for each in settings})
    print(f"{'gain over discriminant analysis':38}{''.join(f'{size:>15}' for size in sizes)}{'worst':>9}{'best':>7}")
    best = {"best method of each setting": [100 * each.gains.max() for each in settings]}
    found = {name: [_gain(rule, each, settings) for each in settings] for name, rule in RULES.items()}
    for name, gains in {**found, **best}.items():
        cells = "".join(_mean(settings, gains, size) for size in sizes)
        print(f"{name:38}{cells}{min(gains):9.1f}{max(gains):7.1f}")


def _gain(rule: Callable[..., int], setting: Setting, settings: Sequence[Setting]) -> float:
    known = [each for each in settings if each.target != setting.target and each.per_class == setting.per_class]
    chosen = [rule(setting, draw, known) for draw in range(len(setting.accuracies))]
    own = setting.accuracies[np.arange(len(chosen)), chosen]
    return float(100 * (own - setting.accuracies[:, 0]).mean())


def _mean(settings: Sequence[Setting], gains: Sequence[float], size: int) -> str:
    """Return the mean over targets, of the mean over sources, with its standard error."""
    by_target: dict[str, list[float]] = {}
    for setting, gain in zip(settings, gains, strict=True):
        if setting.per_class == size:
            by_target.setdefault(setting.target, []).append(gain)
    means = [np.mean(each) for each in by_target.values()]
    return f"{np.mean(means):8.2f} ± {np.std(means, ddof=1) / len(means) ** 0.5:.2f}"


def print_backbones(settings: Sequence[Setting]) -> None:
    """Print how many points rules for backbones lose to the best one of each target, and how often they find it."""
    pools: dict[tuple[int, str], list[Setting]] = {}
    for setting in settings:
        pools.setdefault((setting.per_class, setting.target), []).append(setting)
    sizes = sorted({size for size, _ in pools})
    found = {pool: _choices(members) for pool, members in pools.items() if len(members) > 1}

    print(f"\n{'loss to the best backbone, and found':38}{''.join(f'{size:>15}' for size in sizes)}{'most':>9}")
    for name in next(iter(found.values())):
        means = [np.mean([each[name] for (own, _), each in found.items() if own == size], axis=0) for size in sizes]
        most = max(each[name][0] for each in found.values())
        print(f"{name:38}{''.join(f'{loss:9.2f}{share:6.0%}' for loss, share in means)}{most:9.1f}")


def _choices(pool: Sequence[Setting]) -> dict[str, tuple[float, float]]:
    """Return the points that rules lose to the best backbone, by discriminant analysis, and how often they find it.

    Args:
        pool: One target with all backbones, that of ImageNet first.
    """
    plain = np.stack([each.accuracies[:, 0] for each in pool])
    best = int(plain.mean(1).argmax())
    given, draws = range(len(pool)), np.arange(plain.shape[1])

    def joint(order: Sequence[int], rule: Callable[[Floats], int]) -> Floats:
        """Choose among all pairs of backbone and method; return backbones and accuracies, `[2, draws]`."""
        merit = np.concatenate([pool[i].merit for i in order], axis=1)
        accuracies = np.concatenate([pool[i].accuracies for i in order], axis=1)
        chosen = np.array([rule(each) for each in merit])
        return np.stack([np.array(order)[chosen // len(CANDIDATES)], accuracies[draws, chosen]])

    def alone(backbones: Indices) -> Floats:
        """Return backbones, and their accuracies with discriminant analysis, `[2, draws]`."""
        return np.stack([backbones, plain[backbones, draws]])

    found = {
        "ImageNet": alone(0 * draws),
        "fit, ImageNet given first": joint(given, _choose),
        "fit, any order": np.concatenate([joint(order, _choose) for order in permutations(given)], axis=1),
        "most left-out predictions right": joint(given, _most_right),
        "any": np.concatenate([alone(i + 0 * draws) for i in given], axis=1),
    }
    found |= {name: alone(np.stack([each.scores[name] for each in pool]).argmax(0)) for name in METRICS}
    return {
        name: (float(100 * (plain[best].mean() - accuracies.mean())), float(np.mean(backbones == best)))
        for name, (backbones, accuracies) in found.items()
    }


def main(shared: str = SHARED, draws: int = 20, sizes: list[int] = [5, 20, 50]) -> None:  # noqa: B006 - never changed
    """Print what rules for methods gain over always taking discriminant analysis, and what rules for backbones lose.

    Args:
        shared: Folder with the photos in `data` and the weights in `weights`.
        draws: Draws of each setting.
        sizes: Labels of each class.
    """
    torch.set_num_threads(1)
    settings = []
    for target, (photos, sources) in _targets(shared).items():
        for source in sources:
            print(f"{target}, {source}", flush=True)
            file = f"{shared}/weights/mobilenet_v2_{FILES.get(source)}.safetensors"
            samples, _ = embed_parts(photos(), BackboneSpec(weights=file if source in FILES else EMBEDDED))
            few = [size for size in sizes if size * samples.classes <= MOST_LABELS]
            settings += [measure(target, source, samples, size, draws) for size in few]
    print_methods(settings)
    print_backbones(settings)


def _targets(shared: str) -> dict[str, tuple[Callable[[], list[Photos]], Sequence[str]]]:
    """Return the photos of every target, and the sources of its backbones, the recommended one first."""
    found: dict[str, tuple[Callable[[], list[Photos]], Sequence[str]]] = {
        name: (partial(_folders, Path(shared) / "data" / name), [*FILES])
        for name in ("ants_and_bees", "cats_and_dogs", "flowers")
    }
    found["digits"] = partial(_both, HandwrittenDigits()), [*FILES, "objects"]
    found["drawn pets"] = partial(_both, DrawnPets(700, 300)), [*FILES, "objects"]
    for name in ("drawn animals", "drawn things", "drawn plants", "drawn signs"):
        found[name] = partial(_both, TARGETS[name].photos()), ["objects"]
    return found


def _folders(root: Path) -> list[Photos]:
    return [*read_class_folders(root)]


def _both(source: PhotoSource) -> list[Photos]:
    return [source.train(), source.validation()]

"""How often the interval of `headstart fit` holds the accuracy on other photos, and what choosing costs."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from headstart.benchmarks.coverage.frame import Shares, print_table
from headstart.datamodules.embedding import embed_readable
from headstart.datamodules.photos.class_folders import read_class_folders
from headstart.datamodules.photos.drawn_photos import DrawnPets
from headstart.datamodules.photos.photo_source import Photos
from headstart.evaluation.classifiers.assessment import try_left_out
from headstart.evaluation.classifiers.candidates import Labelled, find_candidates
from headstart.evaluation.classifiers.left_out import LeftOut, prepare
from headstart.modules.networks.backbone_spec import EMBEDDED, BackboneSpec

SHARED_SETS = ("ants_and_bees", "cats_and_dogs", "flowers")
DRAWN = "drawn_pets"
DRAWN_SIZE = 1_000
# So that these draws are no draw of a comparison.
STREAM = 7


def coverage(samples: Labelled, labels: NDArray[np.int64], per_class: int, draws: int) -> Shares:
    """Return how often the interval holds the accuracy on the rest, and the mean losses.

    Args:
        samples: All samples of a data set.
        labels: Their classes.
        per_class: Labels of each class that a draw has.
        draws: Number of draws.
    """
    kinds = find_candidates(Labelled(samples.features[:1], samples.labels[:1], 1, samples.source_head))
    whole = [prepare(kind, samples) for kind in kinds]
    held, below, widths, bias, accuracies, chosen = [], [], [], [], [], []
    for draw in range(draws):
        drawn, rest = draw_labels(labels, per_class, draw)
        part = Labelled(
            samples.features[drawn], samples.labels[drawn], samples.classes, samples.source_head, samples.source_bias
        )
        expected = try_left_out([part], seed=draw).expected
        truths = [accuracy(method, drawn, rest) for method in whole]
        truth = truths[expected.chosen]
        held.append(expected.low <= truth <= expected.high)
        below.append(truth < expected.low)
        widths.append(expected.high - expected.low)
        bias.append(expected.estimate - truth)
        accuracies.append(truths)
        chosen.append(truth)

    by_method = np.mean(accuracies, axis=0)
    return {
        "held": float(np.mean(held)),
        "accuracy below": float(np.mean(below)),
        "width": float(np.mean(widths)),
        "estimate less accuracy": float(np.mean(bias)),
        "chosen": float(np.mean(chosen)),
        "best fixed": float(by_method.max()),
        "default": float(by_method[0]),
    }


def draw_labels(labels: NDArray[np.int64], per_class: int, draw: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the samples of a draw of some labels of each class, and all others.

    Args:
        labels: Class of each sample.
        per_class: Labels of each class.
        draw: Number of the draw.
    """
    generator = np.random.default_rng((STREAM, draw, per_class))
    shuffled = [generator.permutation(np.flatnonzero(labels == label)) for label in range(labels.max() + 1)]
    drawn = np.concatenate([each[:per_class] for each in shuffled])
    rest = np.concatenate([each[per_class:] for each in shuffled])
    return torch.from_numpy(drawn), torch.from_numpy(rest)


def accuracy(method: LeftOut, drawn: torch.Tensor, rest: torch.Tensor) -> float:
    """Return the accuracy of a method on other samples than those of the draw, which it learns."""
    predicted = method.predict(drawn[None], rest[None])[0].argmax(-1)
    return float((predicted == method.samples.labels[rest]).double().mean())


def embed_parts(parts: list[Photos], backbone: BackboneSpec) -> tuple[Labelled, NDArray[np.int64]]:
    """Return the samples of a data set's parts, and their classes."""
    found = [embed_readable(part, backbone) for part in parts]
    labels = np.concatenate([part.labels for part in parts])
    features = torch.from_numpy(np.concatenate([each.features for each in found]))
    head, bias = found[0].backbone.source_head, found[0].backbone.source_bias
    return Labelled(features, torch.from_numpy(labels), int(labels.max()) + 1, head, bias), labels


def main(
    shared: str = "../shared",
    weights: str = "mobilenet_v2_imagenet",
    sets: list[str] = [*SHARED_SETS, DRAWN],  # noqa: B006 - never changed
    sizes: list[int] = [5, 20, 50],  # noqa: B006 - never changed
    draws: int = 40,
) -> dict[str, Shares]:
    """Print the coverage at a nominal 95 %, for draws of some labels of each class; the rest is what is predicted.

    Args:
        shared: Folder with the photos in `data` and the weights in `weights`.
        weights: Name of the file of MobileNetV2's weights there; the drawn set takes the embedded ones.
        sets: Data sets, `drawn_pets` for 1,000 drawings.
        sizes: Labels of each class.
        draws: Draws of each data set and size.

    Returns:
        The shares, by case.
    """
    torch.set_num_threads(1)

    def cases() -> Iterator[tuple[str, Shares]]:
        for name in sets:
            if name == DRAWN:
                parts: list[Photos] = [DrawnPets(train_size=DRAWN_SIZE).train()]
                backbone = BackboneSpec(weights=EMBEDDED)
            else:
                parts = list(read_class_folders(Path(shared) / "data" / name))
                backbone = BackboneSpec(weights=str(Path(shared) / "weights" / f"{weights}.safetensors"))
            samples, labels = embed_parts(parts, backbone)
            for size in sizes:
                yield f"{name}, {size} labels per class", coverage(samples, labels, size, draws)

    return print_table(cases())

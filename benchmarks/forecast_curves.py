"""Learning curves of all methods for frozen features on nine data sets, by which `headstart forecast` is calibrated.

All 18 settings of the local suite are among them, benchmarks/local/sweep/benchmark.yaml.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from PIL import Image
from sklearn.datasets import load_digits
from torch import Tensor

from headstart.datamodules.chosen_backbone import build_chosen
from headstart.datamodules.drawings.drawn_objects import SOURCE_CLASSES
from headstart.datamodules.embedding import embed
from headstart.datamodules.orderings import sample_ordering
from headstart.datamodules.photos.class_folders import ClassFolders
from headstart.datamodules.photos.class_subset import ClassSubset
from headstart.datamodules.photos.dataset_photos import DatasetPhotos
from headstart.datamodules.photos.drawn_photos import DrawnObjects, DrawnPets
from headstart.datamodules.photos.photo_source import Photos, PhotoSource
from headstart.datamodules.photos.public_archives import AntsAndBees, CatsAndDogs
from headstart.evaluation.classifiers.left_out import Labelled, create
from headstart.metrics.forecast.curve_forecast import COVERAGE, TIMES, empirical_coverage, leave_data_sets_out
from headstart.metrics.forecast.forecaster import LEVELS, known_cases
from headstart.metrics.forecast.known_curves import CURVE, ORDERING, read_curves, write_curves
from headstart.modules.arithmetic import deterministic
from headstart.modules.method import Method, MethodStart
from headstart.modules.method_state import MethodState
from headstart.modules.methods.catalogue import METHODS
from headstart.modules.methods.gradient_descent import GradientDescent
from headstart.modules.networks.backbone_spec import BackboneSpec

SHARED = "../shared"
# Numbers of labels at which methods are evaluated.
GRID = (
    *(3, 4, 5, 6, 7, 8, 10, 12, 14, 17, 20, 25, 30, 35, 40, 50, 60, 70, 80, 100),
    *(120, 140, 160, 200, 240, 280, 320, 400, 480, 560, 640, 800),
)
ORDERINGS, MOST_PHOTOS, SEED = 6, 400, 0
Batch = tuple[Tensor, Tensor, Tensor]
OMITTED = ("ScikitLearnClassifier", "GradientDescent")
SOURCES = {
    "objects": "embedded",
    "imagenet": f"{SHARED}/weights/mobilenet_v2_imagenet.safetensors",
    "birds": f"{SHARED}/weights/mobilenet_v2_inat_birds.safetensors",
    "insects": f"{SHARED}/weights/mobilenet_v2_inat_insects.safetensors",
}
# The sources of the local suite, with the most labels that are fed.
SUITE = dict.fromkeys(("imagenet", "birds", "insects"), 400)
LONGER = {**SUITE, "imagenet": 800}


class HandwrittenDigits(PhotoSource):
    """Handwritten digits that scikit-learn brings, enlarged, every third for validation.

    Source: E. Alpaydin and C. Kaynak, "Optical Recognition of Handwritten Digits", UCI Machine Learning Repository,
    1998; the test part.
    """

    name = "digits"

    def train(self) -> Photos:
        """Return the training pictures."""
        return DatasetPhotos([pair for index, pair in enumerate(_digits()) if index % 3])

    def validation(self) -> Photos:
        """Return the validation pictures."""
        return DatasetPhotos(_digits()[::3])


def _digits() -> list[tuple[Image.Image, int]]:
    """Return all digits with their classes."""
    digits = load_digits()
    pictures = [Image.fromarray(image) for image in (digits.images * (255 / 16)).astype(np.uint8)]
    larger = [picture.resize((64, 64), Image.Resampling.BICUBIC) for picture in pictures]
    return [*zip(larger, digits.target.tolist(), strict=True)]


class Target(NamedTuple):
    """A target.

    Attributes:
        photos: Its photos.
        sources: Where its backbones were pre-trained, with the most labels that each is fed.
    """

    photos: Callable[[], PhotoSource]
    sources: Mapping[str, int]


def _objects(first: int, last: int) -> PhotoSource:
    """Return some classes of drawn objects, 40 drawings of each for training and 20 for validation."""
    return ClassSubset(DrawnObjects(train_size=2400, validation_size=1200), list(SOURCE_CLASSES[first:last]))


TARGETS = {
    "ants and bees": Target(partial(AntsAndBees, f"{SHARED}/data/ants_and_bees"), SUITE),
    "cats and dogs": Target(partial(CatsAndDogs, f"{SHARED}/data/cats_and_dogs"), LONGER),
    "flowers": Target(partial(ClassFolders, f"{SHARED}/data/flowers"), LONGER),
    "drawn pets, occluded": Target(partial(DrawnPets, 600, 400, occlusion=6.0), {**SUITE, "objects": 800}),
    "drawn pets, noisy": Target(partial(DrawnPets, 600, 400, noise=2.0), SUITE),
    "drawn pets, turned": Target(partial(DrawnPets, 600, 400, pose=3.0), SUITE),
    "digits": Target(HandwrittenDigits, {"objects": 800}),
    "drawn animals": Target(partial(_objects, 11, 25), {"objects": 400}),
    "drawn things": Target(partial(_objects, 25, 44), {"objects": 400}),
    "drawn plants": Target(partial(_objects, 0, 11), {"objects": 400}),
    "drawn signs": Target(partial(_objects, 44, 60), {"objects": 400}),
}


def data_set_of(target: str) -> str:
    """Return the data set of a target, which is left out as a whole: "drawn pets" of "drawn pets, noisy"."""
    return target.partition(",")[0]


def trace(
    method: Method, start: MethodStart, batches: Sequence[Batch], held_out: Tensor, truth: Tensor
) -> NDArray[np.int64]:
    """Return the correct predictions of a method after each label, `[orderings, labels]`.

    Args:
        method: The method.
        start: What it starts from.
        batches: Indices, samples and labels of one sample of each ordering.
        held_out: Features of the validation photos, `[photos, features]`.
        truth: Their classes, `[photos]`.
    """
    state, correct = MethodState(method), []
    state.reset(start)
    with deterministic(), state.generators.in_use():
        method.begin(start)
        state.optimizers = method.build_optimizers()
        for method.indices, samples, labels in batches:
            method.adapt(samples, labels)
            with torch.no_grad():
                correct.append((method(held_out).argmax(-1) == truth).sum(-1))
    return torch.stack(correct, dim=-1).numpy()


def methods() -> Iterator[tuple[str, Any]]:
    """Yield the methods for frozen features by their names, those of configs/model/frozen_methods.yaml."""
    yield "baseline", GradientDescent()
    yield "sgd", GradientDescent(optimizer=partial(torch.optim.SGD, lr=0.01))
    for kind, method in METHODS.items():
        if "features" in method.inputs and kind not in OMITTED:
            yield method.name, create(kind)


def measure(target: str, source: str) -> pd.DataFrame:
    """Measure the curves of all methods on a target, from a source, as `read_curves` returns them."""
    photos, most = TARGETS[target].photos(), TARGETS[target].sources[source]
    train, validation = photos.train(), photos.validation()
    shown = np.random.default_rng((SEED, 1)).permutation(len(validation.labels))[:MOST_PHOTOS]
    orders = [sample_ordering(len(train.labels), number, SEED)[:most] for number in range(ORDERINGS)]
    needed, indices = np.unique(np.stack(orders), return_inverse=True)

    spec = BackboneSpec("mobilenet_v2", SOURCES[source])
    samples, held_out = (
        torch.from_numpy(embed(part, spec, num_workers=0)) for part in (train.subset(needed), validation.subset(shown))
    )
    labels, truth = torch.from_numpy(train.labels[needed]), torch.from_numpy(validation.labels[shown])
    positions = torch.from_numpy(indices.reshape(ORDERINGS, -1)).split(1, dim=1)
    batches = [(position, samples[position], labels[position]) for position in positions]

    _, backbone = build_chosen(spec, SEED, torch.device("cpu"))
    head, bias = backbone.source_head, backbone.source_bias
    start = Labelled(samples, labels, len(train.classes), head, bias, SEED).start(samples, ORDERINGS, most)
    sizes = np.array([size for size in GRID if size <= len(batches)])
    curves = {}
    for name, method in methods():
        correct = trace(method, start, batches, held_out, truth)
        key = (data_set_of(target), target, source, name, start.classes)
        curves[key] = pd.DataFrame(correct[:, sizes - 1] / len(truth), columns=sizes)
    return pd.concat(curves, names=[*CURVE, ORDERING]).reindex(columns=GRID)


def main(folder: str = "runs/forecast_curves") -> None:
    """Measure the curves of every target and source, and write them and their coverage where forecasts read them.

    Args:
        folder: Folder with a file for each target and source; those that are there are not measured again.
    """
    torch.set_num_threads(1)
    Path(folder).mkdir(parents=True, exist_ok=True)
    parts = []
    for target, source in ((name, source) for name, drawn in TARGETS.items() for source in drawn.sources):
        path = Path(folder) / f"{target}, {source}.csv"
        if not path.exists():
            print(f"{target}, {source}", flush=True)
            write_curves(measure(target, source), path)
        parts.append(read_curves(path))
    curves = pd.concat(parts)
    write_curves(curves)

    judged = judged_cases(leave_data_sets_out(known_cases(curves)))
    shares = {str(level): round(empirical_coverage(judged, level), 3) for level in LEVELS}
    COVERAGE.write_text(json.dumps(shares) + "\n", encoding="utf-8")


def judged_cases(cases: pd.DataFrame) -> pd.DataFrame:
    """Return the cases that are judged: 10, 20, 50 and 100 labels, and about 2, 4 and 8 times as many."""
    near = np.abs(cases["ratio"].to_numpy()[:, None] / np.array(TIMES) - 1) < 0.15
    return cases[near.any(1)]

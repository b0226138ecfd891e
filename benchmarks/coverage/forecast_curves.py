"""Learning curves of all methods for frozen features on nine data sets, from which forecasts are calibrated."""

import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from headstart.benchmarks.coverage.handwritten_digits import HandwrittenDigits
from headstart.datamodules.chosen_backbone import build_chosen
from headstart.datamodules.drawings.drawn_objects import SOURCE_CLASSES
from headstart.datamodules.embedding import embed
from headstart.datamodules.orderings import sample_ordering
from headstart.datamodules.photos.ants_and_bees import AntsAndBees
from headstart.datamodules.photos.cats_and_dogs import CatsAndDogs
from headstart.datamodules.photos.class_folders import ClassFolders
from headstart.datamodules.photos.class_subset import ClassSubset
from headstart.datamodules.photos.drawn_photos import DrawnObjects, DrawnPets
from headstart.datamodules.photos.photo_source import PhotoSource
from headstart.modules.arithmetic import deterministic
from headstart.modules.method import Start
from headstart.modules.method_state import MethodState
from headstart.modules.methods.catalogue import METHODS
from headstart.modules.networks.backbone import BackboneSpec

SHARED = "../shared"
# Numbers of labels at which methods are evaluated.
GRID = (3, 4, 5, 6, 7, 8, 10, 12, 14, 17, 20, 25, 30, 35, 40, 50, 60, 70, 80, 100, 120, 140, 160, 200, 240, 280, 320, 400, 480, 560, 640, 800)
ORDERINGS, MOST_PHOTOS, SEED = 6, 400, 0
# Methods whose result depends on the size of batches: they get one sample at a time.
ONE_BY_ONE = ("baseline", "sgd", "replay", "cosine_classifier", "learned_semantic_prior")
OMITTED = ("ScikitLearnClassifier", "OwnLightningModule", "GradientDescent")


@dataclass(frozen=True)
class Target:
    """A target: the data set that it belongs to, and its photos."""

    data_set: str
    photos: Callable[[], PhotoSource]


def _objects(first: int, last: int) -> Callable[[], PhotoSource]:
    names = list(SOURCE_CLASSES[first:last])
    return lambda: ClassSubset(DrawnObjects(train_size=2400, validation_size=1200), names)


def _flowers(*classes: str) -> PhotoSource:
    return ClassSubset(ClassFolders(f"{SHARED}/data/flowers"), list(classes))


TARGETS = {
    "flowers": Target("flowers", lambda: ClassFolders(f"{SHARED}/data/flowers")),
    "cats and dogs": Target("cats and dogs", lambda: CatsAndDogs(f"{SHARED}/data/cats_and_dogs")),
    "ants and bees": Target("ants and bees", lambda: AntsAndBees(f"{SHARED}/data/ants_and_bees")),
    "digits": Target("digits", HandwrittenDigits),
    "drawn pets, occluded": Target("drawn pets", lambda: DrawnPets(600, 400, occlusion=6.0)),
    "drawn animals": Target("drawn animals", _objects(11, 25)),
    "drawn things": Target("drawn things", _objects(25, 44)),
    "drawn signs": Target("drawn signs", _objects(44, 60)),
    "drawn plants": Target("drawn plants", _objects(0, 11)),
    "daisies and roses": Target("flowers", lambda: _flowers("daisy", "rose")),
    "dandelions, sunflowers, tulips": Target("flowers", lambda: _flowers("dandelion", "sunflower", "tulip")),
    "drawn pets, noisy": Target("drawn pets", lambda: DrawnPets(600, 400, noise=2.0)),
    "drawn pets, turned": Target("drawn pets", lambda: DrawnPets(600, 400, pose=3.0)),
}
SOURCES = {
    "objects": "embedded",
    "imagenet": f"{SHARED}/weights/mobilenet_v2_imagenet.safetensors",
    "birds": f"{SHARED}/weights/mobilenet_v2_inat_birds.safetensors",
    "insects": f"{SHARED}/weights/mobilenet_v2_inat_insects.safetensors",
}


def measure(target: Target, source: str) -> dict[str, Any]:
    """Return the accuracies of all methods on a target from a source, `[methods, orderings, labels]`."""
    photos, spec = target.photos(), BackboneSpec("mobilenet_v2", SOURCES[source])
    train, validation = photos.train(), photos.validation()
    generator = np.random.default_rng((SEED, 1))
    chosen = np.sort(generator.permutation(len(validation.labels))[:MOST_PHOTOS])
    orders = np.stack([sample_ordering(len(train.labels), number, SEED)[: GRID[-1]] for number in range(ORDERINGS)])
    needed, orders = np.unique(orders, return_inverse=True)
    orders = torch.from_numpy(orders.reshape(ORDERINGS, -1))
    inputs, labels = (torch.from_numpy(each) for each in (embed(train.subset(needed), spec, num_workers=0), train.labels[needed]))
    held_out = torch.from_numpy(embed(validation.subset(chosen), spec, num_workers=0))
    truth = torch.from_numpy(validation.labels[chosen])
    _, backbone = build_chosen(spec, SEED, torch.device("cpu"))
    start = Start(
        inputs.shape[1], len(train.classes), range(ORDERINGS), GRID[-1], SEED,
        source_head=backbone.source_head, source_bias=backbone.source_bias, samples=inputs,
    )
    grid = [at for at in GRID if at <= orders.shape[1]]
    accuracies = {}
    for name, method in methods():
        state = MethodState(method)
        accuracies[name] = np.stack(list(_curve(state, start, name, inputs, labels, orders, grid, held_out, truth)), axis=1)
    return {"classes": len(train.classes), "grid": np.array(grid), "accuracies": accuracies}


def methods() -> Iterator[tuple[str, Any]]:
    """Yield the methods for frozen features by their names, gradient descent with Adam and with SGD first."""
    def kind(name: str) -> Any:
        return getattr(import_module(METHODS[name].module), name)

    from headstart.modules.methods.gradient_descent import GradientDescent
    yield "baseline", GradientDescent()
    yield "sgd", GradientDescent(optimizer=lambda parameters: torch.optim.SGD(parameters, lr=0.01))
    for name, each in METHODS.items():
        if "features" in each.inputs and name not in OMITTED:
            yield each.name, kind(name)()


@torch.no_grad()
def _evaluate(state: MethodState, held_out, truth) -> NDArray[np.float64]:
    return (state.method(held_out).argmax(-1) == truth).double().mean(-1).numpy()


def _curve(state, start, name, inputs, labels, orders, grid, held_out, truth):
    method = state.method
    with deterministic():
        state.reset(start)
        with state.generators.in_use():
            method.begin(start)
            state.optimizers = method.build_optimizers()
            seen = 0
            for at in grid:
                while seen < at:
                    end = seen + 1 if name in ONE_BY_ONE else at
                    indices = orders[:, seen:end]
                    method.indices = indices
                    method.adapt(inputs[indices], labels[indices])
                    seen = end
                yield _evaluate(state, held_out, truth)

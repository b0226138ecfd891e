"""Predictions change nothing of a method, whatever was seen before: evaluations may be left out, or made again."""

import io
import pickle
import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from headstart.modules import NearestClassMean
from headstart.modules.method import Method, Start
from headstart.modules.method_state import MethodState
from headstart.modules.networks.trainable_backbone import folded
from headstart.tests.material.shipped_methods import CASES, ON_PHOTOS, Make, maker
from headstart.tests.material.streams import adapt, batches, begin, make_start, random_photos, random_samples, tail

CLASSES = 3
SAMPLES = 20
BATCH = 4


def contents(state: MethodState) -> list[Any]:
    """Return all that a method holds: which tensors and objects, how often torch saw each tensor change, and values."""
    method = state.method
    held = [{**vars(module), **module._parameters, **module._buffers} for module in method.modules()]
    # Pickling a traced network regenerates its code.
    written = ("_code", "_lineno_map")
    identities = [{name: id(value) for name, value in each.items() if name not in written} for each in held]
    versions = [{name: each._version for name, each in one.items() if isinstance(each, Tensor)} for one in held]
    generators = [random.getstate(), pickle.dumps(np.random.get_state()), torch.get_rng_state().tolist()]
    torch.save(state.held(), values := io.BytesIO())
    return [identities, versions, values.getvalue(), *generators]


def check(make: Make, inputs: str) -> None:
    if inputs == "features":
        stream, labels = random_samples(4, SAMPLES, 12, CLASSES)
    else:
        stream, labels = random_photos(SAMPLES, CLASSES)
    start = make_start(stream, CLASSES)
    state = MethodState(make())
    state.reset(start)
    method = begin(state.method, replace(start, backbone=tail()) if inputs == "tail" else start)
    with folded(method):
        method(stream[0])  # what it keeps to save time
    for part in batches(stream, labels, BATCH):
        adapt(method, part)
        before = contents(state)
        with folded(method):
            logits = [method(stream[0]) for _ in range(2)]
        assert torch.equal(*logits)
        assert contents(state) == before


@pytest.mark.parametrize(("name", "inputs"), [*CASES, *((name, "tail") for name in ON_PHOTOS)])
def test_predicting_changes_nothing(name: str, inputs: str) -> None:
    check(maker(name), inputs)


class Tires(NearestClassMean):
    """Learns while it is evaluated."""

    def forward(self, inputs: Tensor) -> Tensor:
        self.sums += 0
        return super().forward(inputs)


class Counts(NearestClassMean):
    """Counts how often it predicts."""

    def begin(self, start: Start) -> None:
        super().begin(start)
        self.calls = {"predictions": [0]}

    def forward(self, inputs: Tensor) -> Tensor:
        self.calls["predictions"][0] += 1
        return super().forward(inputs)


class Flickers(NearestClassMean):
    """Replaces its attributes when it predicts."""

    def forward(self, inputs: Tensor) -> Tensor:
        self.sums = self.sums.clone()
        return super().forward(inputs)


class Draws(NearestClassMean):
    """Draws from a global generator where it predicts."""

    def forward(self, inputs: Tensor) -> Tensor:
        random.random()
        return super().forward(inputs)


@pytest.mark.parametrize("method", [Tires, Counts, Flickers, Draws])
def test_a_change_is_found(method: type[Method]) -> None:
    with pytest.raises(AssertionError):
        check(method, "features")

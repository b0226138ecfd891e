"""A method is put back into earlier states, predicts as it did then, and goes on as if nothing had been."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

import modules
from modules.method import Method
from modules.past_states import PastStates
from output.errors import UserError
from tests.material.shipped_methods import CASES, SETTINGS
from tests.material.streams import adapt, batches, begin, draw_photos, draw_samples, make_start


def draw(inputs: str) -> tuple[Tensor, Tensor]:
    return draw_samples(1, 24, 6) if inputs == "features" else draw_photos(24)


@pytest.mark.parametrize(("name", "inputs"), CASES)
def test_states_are_those_of_then_and_training_does_not_notice(name: str, inputs: str) -> None:
    samples, labels = draw(inputs)
    validation = draw(inputs)[0][0, :9]
    undisturbed, method = (
        begin(getattr(modules, name)(**SETTINGS.get(name, {})), make_start(samples)) for _ in range(2)
    )
    past, then = PastStates(method, {}), {}
    for place, batch in enumerate(batches(samples, labels, 2)):
        adapt(undisturbed, batch)
        adapt(method, batch)
        with torch.inference_mode():
            then[place] = undisturbed(validation)
            past.keep(place, [])
            past.retain(range(place - 3, place + 1))
            for earlier in (place, max(place - 3, 0), max(place - 2, 0)):
                with past.at(earlier):
                    assert torch.equal(method(validation), then[earlier])
            assert torch.equal(method(validation), then[place])
    assert sorted(past.states) == [8, 9, 10, 11]


def test_what_all_methods_share_is_not_copied() -> None:
    samples, labels = draw("features")
    method = begin(modules.Replay(), make_start(samples))
    adapt(method, next(batches(samples, labels, 2)))
    past = PastStates(method, {})
    past.keep(0, method.build_optimizers())
    with past.at(0):
        assert method.memory.matrix is method.start.samples  # type: ignore[union-attr]


def test_optimisers_are_not_copied() -> None:
    samples, labels = draw("features")
    method: Any = begin(modules.GradientDescent(), make_start(samples))
    adapt(method, next(batches(samples, labels, 2)))
    past, optimizer, weight = PastStates(method, {}), method.optimizer, method.weight
    past.keep(0, [optimizer])
    with past.at(0):
        assert method.optimizer is optimizer
        assert method.weight is not weight
    assert method.weight is weight


class Locked(modules.NearestClassMean):
    """Holds something that cannot be copied."""

    def adapt(self, inputs: Tensor, labels: Tensor) -> None:
        super().adapt(inputs, labels)
        self.numbers = (number for number in range(3))


def test_what_cannot_be_copied_is_said() -> None:
    samples, labels = draw("features")
    method: Method = begin(Locked(), make_start(samples))
    adapt(method, next(batches(samples, labels, 2)))
    with pytest.raises(UserError, match=r"^criterion\.evaluation: lazy needs copies of Locked.*generator"):
        PastStates(method, {}).keep(0, [])

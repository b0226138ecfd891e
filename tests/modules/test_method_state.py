"""A copy of a method predicts as the method did then, and the method continues as if nothing had been."""

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from headstart import modules
from headstart.modules.lazy_evaluation import copy_of
from headstart.modules.method import Method, MethodStart, linear_logits
from headstart.modules.method_state import MethodState
from headstart.modules.networks.trainable_backbone import TrainableBackbone
from headstart.output.errors import UserError
from headstart.tests.material.shipped_methods import CASES, SETTINGS
from headstart.tests.material.streams import adapt, batches, make_start, random_photos, random_samples, staged


def draw(inputs: str) -> tuple[Tensor, Tensor]:
    return random_samples(1, 24, 6) if inputs == "features" else random_photos(24)


def begin(make: Callable[[], Method], samples: Tensor) -> tuple[Method, MethodState]:
    state, start = MethodState(make()), make_start(samples)
    state.reset(start)
    state.method.begin(start)
    state.optimizers = state.method.build_optimizers()
    return state.method, state


def follow(make: Callable[[], Method], inputs: str) -> None:
    """Hold a method that is copied again and again to one that is not."""
    samples, labels = draw(inputs)
    validation = draw(inputs)[0][0, :9]
    undisturbed, _ = begin(make, samples)
    method, state = begin(make, samples)
    then, copies = dict[int, Tensor](), dict[int, Method]()
    for index, batch in enumerate(batches(samples, labels, 2)):
        adapt(undisturbed, batch)
        adapt(method, batch)
        with torch.inference_mode():
            then[index] = undisturbed(validation)
            copies[index] = copy_of(state)
            for earlier in (index, max(index - 3, 0), max(index - 2, 0)):
                assert torch.equal(copies[earlier](validation), then[earlier])
            assert torch.equal(method(validation), then[index])


@pytest.mark.parametrize(("name", "inputs"), CASES)
def test_states_are_those_of_then_and_training_does_not_notice(name: str, inputs: str) -> None:
    follow(lambda: getattr(modules, name)(**SETTINGS.get(name, {})), inputs)


def look(head: nn.Module, features: Tensor) -> Tensor:
    result: Tensor = head(features)
    return result


class Alias(Method):
    """Predicts by two functions that refer to a module of its own."""

    def begin(self, start: MethodStart) -> None:
        super().begin(start)
        self.head = nn.utils.skip_init(nn.Linear, start.features, start.classes).requires_grad_(False)
        nn.init.zeros_(self.head.weight), nn.init.zeros_(self.head.bias)
        self.bound, self.partial = self.head.forward, partial(look, self.head)

    def adapt(self, inputs: Tensor, labels: Tensor) -> None:
        self.head.weight += inputs.mean()
        self.head.bias[0] += 1

    def forward(self, inputs: Tensor) -> Tensor:
        logits: Tensor = self.bound(inputs) + 2 * self.partial(inputs)
        return logits[None]


class Averaged(modules.GradientDescent):
    """Predicts by a running mean of its weights, which is a buffer."""

    mean: Tensor

    def begin(self, start: MethodStart) -> None:
        super().begin(start)
        self.register_buffer("mean", self.weight.detach().clone())

    def adapt(self, inputs: Tensor, labels: Tensor) -> None:
        super().adapt(inputs, labels)
        self.mean.lerp_(self.weight.detach(), 0.3)

    def forward(self, inputs: Tensor) -> Tensor:
        return linear_logits(
            inputs, self.weight if self.weight.requires_grad and inputs.dim() == 3 else self.mean, self.bias
        )


class Scheduled(modules.GradientDescent):
    """Steps a scheduler, which refers to the optimiser."""

    def build_optimizers(self) -> list[torch.optim.Optimizer]:
        optimizers = super().build_optimizers()
        self.scheduler = torch.optim.lr_scheduler.StepLR(self.optimizer, 2, 0.5)
        return optimizers

    def adapt(self, inputs: Tensor, labels: Tensor) -> None:
        super().adapt(inputs, labels)
        self.scheduler.step()


class Dropped(modules.GradientDescent):
    """Learns from a part of the features, by generators of its own."""

    def begin(self, start: MethodStart) -> None:
        super().begin(start)
        self.random, self.seen = np.random.default_rng(start.seed), deque([0.0], maxlen=3)

    def adapt(self, inputs: Tensor, labels: Tensor) -> None:
        kept = torch.from_numpy(self.random.random(inputs.shape[-1]) < 0.5)
        self.seen.append(float(inputs.sum()))
        super().adapt(inputs * kept, labels)

    def forward(self, inputs: Tensor) -> Tensor:
        return super().forward(inputs) + sum(self.seen)


class Gain(Method):
    """Keeps numbers, tensors and layers in its backbone."""

    parts: Any

    def begin(self, start: MethodStart) -> None:
        super().begin(start)
        parts: Any = TrainableBackbone(staged())
        self.parts, parts.gain = parts, 1.0
        parts.network.scales = [torch.ones(1)]

    def adapt(self, inputs: Tensor, labels: Tensor) -> None:
        self.parts.gain *= -1.5
        self.parts.network.scales[0].add_(1)
        with torch.no_grad():
            next(self.parts.parameters()).data.mul_(1.1)
        self.parts.network.append(nn.Hardtanh(-9.0, 9.0))

    def forward(self, inputs: Tensor) -> Tensor:
        scaled: Tensor = self.parts(inputs) * self.parts.gain + self.parts.network.scales[0]
        return scaled[None, :, :2] * len(self.parts.network)


class Tied(Method):
    """Has two layers of one weight, of which one comes to have another."""

    parts: Any

    def begin(self, start: MethodStart) -> None:
        super().begin(start)
        layers: Any = nn.Sequential(nn.Flatten(), *(nn.utils.skip_init(nn.Linear, 12, 12) for _ in range(2)))
        nn.init.eye_(layers[1].weight), nn.init.zeros_(layers[1].bias), nn.init.ones_(layers[2].bias)
        layers[2].weight = layers[1].weight
        self.parts = TrainableBackbone(layers)

    def adapt(self, inputs: Tensor, labels: Tensor) -> None:
        first, second = self.parts.network[1:]
        with torch.no_grad():
            first.weight.mul_(1.1)
            if first.weight[0, 0] > 1.8:
                second.weight = nn.Parameter(2 * second.weight)

    def forward(self, inputs: Tensor) -> Tensor:
        logits: Tensor = self.parts(inputs)[None, :, :2]
        return logits


def test_references_buffers_schedulers_generators_and_parts_are_those_of_then() -> None:
    kinds: list[type[Method]] = [Alias, Averaged, Scheduled, Dropped, Gain, Tied]
    for kind in kinds:
        follow(kind, "photos" if kind in (Gain, Tied) else "features")


def copy_after_a_batch(kind: type[Method]) -> tuple[Any, Any, MethodState]:
    samples, labels = draw("features")
    method, state = begin(kind, samples)
    adapt(method, next(batches(samples, labels, 2)))
    return copy_of(state), method, state


def test_shared_tensors_and_optimisers_are_not_copied() -> None:
    copied, method, _ = copy_after_a_batch(modules.Replay)
    assert copied.memory.matrix is method.start.samples
    assert copied.memory is not method.memory
    copied, method, state = copy_after_a_batch(modules.GradientDescent)
    assert copied.optimizer is state.optimizers[0]
    assert copied.weight is not method.weight


class Locked(modules.NearestClassMean):
    """Holds something that cannot be copied."""

    part: Any = None

    def adapt(self, inputs: Tensor, labels: Tensor) -> None:
        super().adapt(inputs, labels)
        self.part = self.part or (number for number in range(3))


class Greedy(Locked):
    """Holds something for whose copy memory does not suffice."""

    def adapt(self, inputs: Tensor, labels: Tensor) -> None:
        self.part = TakesAllMemory()
        super().adapt(inputs, labels)


class Closing(Locked):
    """Holds a function that refers to it, which a copy would share."""

    def adapt(self, inputs: Tensor, labels: Tensor) -> None:
        super().adapt(inputs, labels)
        self.part = [lambda rows: self.forward(rows)]


class TakesAllMemory:
    def __deepcopy__(self, memo: object) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried")


def test_what_cannot_be_copied_is_one_line() -> None:
    refused: dict[type[Method], str] = {
        Locked: "lazy needs copies of Locked, .*generator",
        Greedy: "a copy of Greedy, .* does not fit into memory",
        Closing: "lazy evaluates copies of Closing, .*lambda> refers to .* method of the class, or",
    }
    for kind, words in refused.items():
        with pytest.raises(UserError, match=rf"^criterion\.evaluation: {words}.* give every"):
            copy_after_a_batch(kind)

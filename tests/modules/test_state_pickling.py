"""A method that continues from a checkpoint gives bit for bit what it gives without a break."""

import io
import pickle
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from lightning.pytorch.cli import OptimizerCallable
from sklearn.linear_model import SGDClassifier
from torch import Tensor, nn

from headstart import modules
from headstart.modules.method import Method, Start
from headstart.modules.method_state import MethodState
from headstart.modules.networks.trainable_backbone import folded
from headstart.modules.state_pickling import pickling
from headstart.tests.material.shipped_methods import ON_FEATURES, ON_PHOTOS, maker
from headstart.tests.material.streams import adapt, batches, make_start, random_photos, random_samples, tail


class Scheduled(modules.GradientDescent):
    """Has a schedule, draws from a global generator, and keeps Python's own values."""

    def __init__(self, optimizer: OptimizerCallable = lambda p: torch.optim.AdamW(p, lr=0.1)) -> None:
        super().__init__(optimizer)
        self.history: list[float] = []

    def begin(self, start: Start) -> None:
        super().begin(start)
        self.dropout = nn.Dropout(0.5)
        self.recent: deque[Tensor] = deque(maxlen=3)

    def build_optimizers(self) -> list[torch.optim.Optimizer]:
        optimizers = super().build_optimizers()
        self.schedule = torch.optim.lr_scheduler.ExponentialLR(self.optimizer, 0.9)
        return optimizers

    def adapt(self, inputs: Tensor, labels: Tensor) -> None:
        self.recent.append(inputs.mean())
        super().adapt(self.dropout(inputs) + sum(self.recent), labels)
        self.schedule.step()
        self.history.append(float(self.schedule.get_last_lr()[0]))

    def forward(self, inputs: Tensor) -> Tensor:
        return super().forward(inputs) + len(self.history)


class PerOrdering(Method):
    """Keeps one model of another library for every ordering."""

    def begin(self, start: Start) -> None:
        super().begin(start)
        self.models = [SGDClassifier(random_state=start.seed) for _ in start.numbers]

    def adapt(self, inputs: Tensor, labels: Tensor) -> None:
        for model, features, target in zip(self.models, inputs, labels, strict=True):
            model.partial_fit(features.numpy(), target.numpy(), classes=[0, 1])

    def forward(self, inputs: Tensor) -> Tensor:
        scores = torch.stack([torch.from_numpy(model.decision_function(inputs.numpy())) for model in self.models])
        return torch.stack([-scores, scores], -1)


class Lookahead(torch.optim.SGD):
    """Has attributes beside those of torch's optimisers, tensors and a number."""

    def __init__(self, parameters: Any) -> None:
        super().__init__(parameters, lr=0.1, momentum=0.9)
        self.steps = 0
        self.slow = [value.detach().clone() for group in self.param_groups for value in group["params"]]

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        super().step(closure)
        self.steps += 1
        if self.steps % 3 == 0:
            fast = [value for group in self.param_groups for value in group["params"]]
            for value, slow in zip(fast, self.slow, strict=True):
                value.copy_(slow.lerp_(value, 0.5))


class Gathers(modules.GradientDescent):
    """Takes a step every third batch, on the gradients of all three."""

    def begin(self, start: Start) -> None:
        super().begin(start)
        self.batches = 0

    def adapt(self, inputs: Tensor, labels: Tensor) -> None:
        self.loss(self(inputs), labels).backward()
        self.batches += 1
        if self.batches % 3 == 0:
            self.optimizer.step()
            self.optimizer.zero_grad()


class Forgets(modules.GradientDescent):
    """Has an attribute until the first batch alone."""

    def begin(self, start: Start) -> None:
        super().begin(start)
        self.first = True

    def adapt(self, inputs: Tensor, labels: Tensor) -> None:
        if hasattr(self, "first"):
            del self.first
            labels = 1 - labels
        super().adapt(inputs, labels)


OWN: dict[str, Callable[[], Method]] = {
    "Scheduled": Scheduled,
    "PerOrdering": PerOrdering,
    "Lookahead": lambda: modules.GradientDescent(Lookahead),
    "Gathers": Gathers,
    "Forgets": Forgets,
}


def _run(make: Callable[[], Method], inputs_are: str, stop: int | None, limit: int = 20) -> Tensor:
    """Feed ten batches, storing and loading the method after some of them, until when the sample limit is `limit`."""
    inputs, labels = random_samples(3, 20, 6) if inputs_are == "features" else random_photos(20)
    start = make_start(inputs)
    if inputs_are == "tail":
        start = replace(start, backbone=tail())
    limits = iter([limit, 20])

    def begin() -> MethodState:
        state = MethodState(make())
        state.reset(start)
        with state.generators.in_use():
            state.method.begin(replace(start, max_samples=next(limits)))
            state.optimizers = state.method.build_optimizers()
        return state

    state = begin()
    for number, batch in enumerate(batches(inputs, labels, 2)):
        if number == stop:
            torch.save(state.held(), file := io.BytesIO(), pickle_module=pickling(start))
            state = begin()
            file.seek(0)
            loaded = torch.load(file, pickle_module=pickling(start), weights_only=False)
            state.restore(loaded)
        with state.generators.in_use():
            adapt(state.method, batch)
    with state.generators.in_use(), folded(state.method):
        logits: Tensor = state.method(inputs[0])
        return logits


@pytest.mark.parametrize("name", [*ON_FEATURES, *OWN])
def test_stored_methods_go_on_bit_for_bit(name: str) -> None:
    make = OWN.get(name) or maker(name)
    whole = _run(make, "features", None)
    assert torch.equal(_run(make, "features", 4), whole)
    # The next samples follow a lower limit.
    assert torch.equal(_run(make, "features", 4, limit=8), whole)


@pytest.mark.parametrize("inputs", ["photos", "tail"])
@pytest.mark.parametrize("name", ON_PHOTOS)
def test_stored_backbones_go_on_bit_for_bit(name: str, inputs: str) -> None:
    assert torch.equal(_run(maker(name), inputs, 6), _run(maker(name), inputs, None))


def test_shared_inputs_are_not_stored() -> None:
    inputs, _ = random_samples(3, 20, 6)
    start = make_start(inputs)
    assert start.source_head is not None
    torch.save({"a": start.source_head}, file := io.BytesIO(), pickle_module=pickling(start))
    file.seek(0)
    assert torch.load(file, pickle_module=pickling(start), weights_only=False)["a"] is start.source_head
    file.seek(0)
    with pytest.raises(pickle.UnpicklingError, match="the tensor source_head of the start"):
        torch.load(file, weights_only=False)

"""Every method of a comparison starts from the same and sees the same."""

import threading
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from headstart.modules.comparison import Comparison
from headstart.modules.method import MethodStart
from headstart.modules.methods.gradient_descent import GradientDescent
from headstart.output.errors import UserError
from headstart.tests.material.constant_predictions import Constant, compared, set_up


@pytest.mark.parametrize("trainable", [False, True])
def test_all_methods_start_from_equal_but_separate_copies(trainable: bool) -> None:
    backbone = nn.Sequential(nn.Flatten(), nn.Linear(12, 6)) if trainable else None
    comparison = Comparison(GradientDescent(), {"a": GradientDescent(), "b": GradientDescent()})
    set_up(comparison, MethodStart(6, 3, range(2), max_samples=9, seed=0, backbone=backbone))
    states = [method.state_dict(keep_vars=True) for method in comparison.methods.values()]
    assert len(states) == 3
    for name, value in states[0].items():
        for other in states[1:]:
            assert torch.equal(other[name], value)
            assert other[name].data_ptr() != value.data_ptr()
    if backbone is not None:
        assert {"backbone.1.weight", "backbone.1.bias"} < set(states[0])
        own = {parameter.data_ptr() for parameter in backbone.parameters()}
        assert not own & {value.data_ptr() for state in states for value in state.values()}


def test_batches_are_fed_to_all_and_counted() -> None:
    methods = Constant([0, 1]), Constant([2, 2])
    comparison = Comparison(methods[0], {"other": methods[1]})
    set_up(comparison, MethodStart(4, 3, range(2), max_samples=9, seed=0))
    for size in (4, 4, 1):
        comparison.training_step((torch.randn(2, size, 4), *torch.zeros(2, 2, size, dtype=torch.int64)), 0)
    assert comparison.samples_seen == 9
    assert [len(method.batches) for method in methods] == [3, 3]
    assert all(
        torch.equal(ours, theirs) and ours.data_ptr() != theirs.data_ptr()
        for a, b in zip(methods[0].batches, methods[1].batches, strict=True)
        for ours, theirs in zip(a, b, strict=True)
    )


def test_correct_predictions_are_counted_afresh_at_every_evaluation_by_the_weights_of_classes() -> None:
    comparison = Comparison(Constant([0, 1]), {"other": Constant([2, 0])})
    set_up(comparison, MethodStart(4, 3, range(2), max_samples=9, seed=0))
    for weights, correct in ((None, [[2, 2], [3, 2]]), (None, [[2, 2], [3, 2]]), ([10, 20, 50], [[20, 40], [150, 20]])):
        if weights is not None:
            comparison.weigh(np.array(weights))
        comparison.on_validation_epoch_start()
        for part in torch.tensor([0, 1, 1, 2, 2, 2, 0]).split(3):
            comparison.validation_step([(torch.zeros(len(part), 4), part)], 0)
        assert comparison.counted().tolist() == [correct, [[0, 0], [0, 0]]]
        assert comparison.samples_validated == 7


@pytest.mark.parametrize(
    ("features", "classes", "max_samples"), [(1280, 2, 500), (2048, 1000, 500), (200_000, 1000, 50_000)]
)
def test_as_many_orderings_at_once_as_the_states_of_methods_fit(features: int, classes: int, max_samples: int) -> None:
    start = MethodStart(features, classes, range(1), max_samples, seed=0, samples=torch.empty(1, features))
    for methods in (2, 9):
        orderings = Comparison(Constant([0])).orderings_at_once(start, methods)
        # Adam holds four heads; recursive least squares rows of samples, or a matrix of features by features.
        held = 4 * (4 * features * classes + min(max_samples, features) * features)
        assert orderings == 1 or orderings * methods * held <= 4 * 2**30
        assert orderings >= (100 if features == 1280 else 1)

        # Samples that are not in memory are copied by the methods, which then have half a gigabyte in all.
        fewer = Comparison(Constant([0])).orderings_at_once(replace(start, samples=None), methods)
        assert fewer == 1 or fewer * methods * 4 * (4 * features * classes + max_samples * features) <= 2**29


def test_a_method_that_defines_what_is_never_called_is_refused() -> None:
    for hook in ("training_step", "configure_optimizers", "on_train_batch_end", "on_fit_start"):
        method = type("Mine", (GradientDescent,), {hook: lambda self, *_: None})()
        with pytest.raises(UserError, match=rf"^model\.methods\.mine: Mine defines {hook}, which is never called"):
            Comparison(GradientDescent(), {"mine": method})


def test_logged_values_are_means_over_orderings() -> None:
    class Talks(Constant):
        def adapt(self, inputs: Tensor, labels: Tensor) -> None:
            self.log("loss", torch.tensor([1.0, 4.0]), prog_bar=True)
            self.log_dict({"steps": 3})

    comparison = compared(Talks([0, 0]))
    comparison.training_step((torch.ones(2, 1, 4), *torch.zeros(2, 2, 1, dtype=torch.int64)), 0)
    assert comparison.logged() == {"mine/loss": 2.5, "mine/steps": 3}


def test_attributes_that_cannot_be_copied_stay_and_functions_are_the_same() -> None:
    class Keeps(Constant):
        count: Tensor

        def __init__(self) -> None:
            super().__init__([0, 0])
            self.lock, self.locks = threading.Lock(), [threading.Lock()]
            self.make = partial(torch.optim.SGD, lr=0.1)
            self.own = self.forward
            self.nested: dict[str, list[list[int]]] = {"a": [[]]}
            self.generator = np.random.default_rng(0)
            self.register_buffer("count", torch.zeros(()))

        def begin(self, start: MethodStart) -> None:
            super().begin(start)
            self.nested["a"][0].append(1)
            self.drawn = self.generator.random()
            self.count += 1
            self.locks.append(self.locks[0])

    method = Keeps()
    lock, make = method.lock, method.make
    comparison = Comparison(method)
    for _ in range(2):
        set_up(comparison, MethodStart(4, 3, range(2), max_samples=9, seed=0))
        assert (method.lock, method.make, method.nested, len(method.locks)) == (lock, make, {"a": [[1]]}, 2)
        # Every pass begins with what the constructor left.
        assert (method.drawn, int(method.count)) == (np.random.default_rng(0).random(), 1)
        assert method.own == method.forward


class Rounded(Constant):
    """Notes whether products are rounded where it predicts."""

    def forward(self, inputs: Tensor) -> Tensor:
        self.noted = torch.is_autocast_enabled(inputs.device.type)
        return super().forward(inputs)


def test_the_precision_of_training_is_none_of_evaluations() -> None:
    method = Rounded([0, 0])
    comparison = Comparison(method)
    set_up(comparison, MethodStart(4, 3, range(2), max_samples=9, seed=0))
    comparison.on_validation_epoch_start()
    with torch.autocast("cpu", torch.bfloat16):
        comparison.validation_step([(torch.randn(5, 4), torch.zeros(5, dtype=torch.int64))], 0)
    assert method.noted is False

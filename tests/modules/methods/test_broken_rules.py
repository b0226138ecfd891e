"""A method that breaks one of the rules of methods is found."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from headstart.modules.method import Method, Start
from headstart.modules.methods.nearest_class_mean import NearestClassMean
from headstart.tests.material.method_rules import (
    check_alone_as_among_many,
    check_any_device,
    check_deterministic,
    check_evaluations_change_nothing,
    check_leaves_the_start_alone,
    check_sees_no_label_early,
)
from headstart.tests.material.shipped_methods import Make


class Couples(NearestClassMean):
    """Learns from what other orderings are fed."""

    def adapt(self, inputs: Tensor, labels: Tensor) -> None:
        super().adapt(inputs.mean(0).expand_as(inputs), labels)


class Spoils(NearestClassMean):
    """Changes what others start from."""

    def begin(self, start: Start) -> None:
        super().begin(start)
        assert start.source_head is not None
        start.source_head.zero_()


class Gambles(NearestClassMean):
    """Draws from the generator that all share."""

    def adapt(self, inputs: Tensor, labels: Tensor) -> None:
        super().adapt(inputs + torch.rand_like(inputs), labels)


class Peeks(NearestClassMean):
    """Reads the labels to come, of which its batch is a view."""

    def adapt(self, inputs: Tensor, labels: Tensor) -> None:
        super().adapt(inputs, labels)
        self.sums += 0 if labels._base is None else labels._base.sum()


class Tires(NearestClassMean):
    """Learns while it is evaluated."""

    def forward(self, inputs: Tensor) -> Tensor:
        self.sums += 1
        return super().forward(inputs)


class StaysBehind(NearestClassMean):
    """Makes a tensor on the processor."""

    def adapt(self, inputs: Tensor, labels: Tensor) -> None:
        super().adapt(inputs + torch.zeros(inputs.shape), labels)


class Waits(NearestClassMean):
    """Reads a value from the device."""

    def adapt(self, inputs: Tensor, labels: Tensor) -> None:
        if labels.sum().item() >= 0:
            super().adapt(inputs, labels)


@pytest.mark.parametrize(
    ("check", "method"),
    [
        (check_alone_as_among_many, Couples),
        (lambda make: check_leaves_the_start_alone(make, "features"), Spoils),
        (lambda make: check_deterministic(make, "features"), Gambles),
        (lambda make: check_sees_no_label_early(make, "features"), Peeks),
        (lambda make: check_evaluations_change_nothing(make, "features"), Tires),
        (lambda make: check_any_device(make, "features"), StaysBehind),
        (lambda make: check_any_device(make, "features"), Waits),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else "",
)
def test_a_broken_rule_is_found(check: Callable[[Make], None], method: type[Method]) -> None:
    with pytest.raises((AssertionError, RuntimeError)):
        check(method)

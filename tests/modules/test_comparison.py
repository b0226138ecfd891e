"""Every method of a comparison starts from the same and sees the same."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from torch import Tensor, nn

from modules.comparison import Comparison
from modules.method import Method, Start, draw_head
from modules.methods.gradient_descent import GradientDescent
from output.errors import UserError


def set_up(comparison: Comparison, start: Start) -> None:
    comparison.trainer = SimpleNamespace(datamodule=SimpleNamespace(start=lambda: start))  # type: ignore[assignment]
    comparison.setup("fit")


@pytest.mark.parametrize("trainable", [False, True])
def test_all_methods_start_from_equal_but_separate_copies(trainable: bool) -> None:
    backbone = nn.Sequential(nn.Flatten(), nn.Linear(12, 6)) if trainable else None
    comparison = Comparison(GradientDescent(), {"a": GradientDescent(), "b": GradientDescent()})
    set_up(comparison, Start(*draw_head(6, 3, 0), orderings=2, max_samples=9, seed=0, backbone=backbone))
    states = [method.state_dict(keep_vars=True) for method in comparison]
    assert len(states) == 3
    for name, value in states[0].items():
        for other in states[1:]:
            assert torch.equal(other[name], value)
            assert other[name].data_ptr() != value.data_ptr()
    if backbone is not None:
        assert {"backbone.1.weight", "backbone.1.bias"} < set(states[0])
        own = {parameter.data_ptr() for parameter in backbone.parameters()}
        assert not own & {value.data_ptr() for state in states for value in state.values()}


def test_name_of_the_baseline_is_taken() -> None:
    with pytest.raises(UserError, match="the name 'baseline' is the baseline's own"):
        Comparison(GradientDescent(), {"baseline": GradientDescent()})


@pytest.mark.parametrize("custom", [None, {}, {"z": GradientDescent(), "a": GradientDescent()}])
def test_names_in_the_order_given(custom: dict[str, Method] | None) -> None:
    assert Comparison(GradientDescent(), custom).names == ["baseline", *(custom or {})]


class Constant(Method):
    """Predicts one class per ordering, and keeps what it is fed.

    Args:
        predictions: The class of every ordering.
    """

    def __init__(self, predictions: list[int]) -> None:
        super().__init__()
        self.predictions = predictions
        self.fed: list[tuple[Tensor, Tensor]] = []

    def adapt(self, inputs: Tensor, labels: Tensor) -> None:
        self.fed.append((inputs, labels))

    def forward(self, inputs: Tensor) -> Tensor:
        one_hot = torch.eye(3)[self.predictions]
        return one_hot[:, None].expand(-1, len(inputs), -1)


def test_batches_are_fed_to_all_and_counted() -> None:
    methods = Constant([0, 1]), Constant([2, 2])
    comparison = Comparison(methods[0], {"other": methods[1]})
    set_up(comparison, Start(*draw_head(4, 3, 0), orderings=2, max_samples=9, seed=0))
    for size in (4, 4, 1):
        comparison.training_step((torch.randn(2, size, 4), torch.zeros(2, size, dtype=torch.int64)), 0)
    assert comparison.samples_seen == 9
    assert [len(method.fed) for method in methods] == [3, 3]
    assert all(
        ours is theirs
        for a, b in zip(methods[0].fed, methods[1].fed, strict=True)
        for ours, theirs in zip(a, b, strict=True)
    )


def test_correct_predictions_are_counted_afresh_at_every_evaluation() -> None:
    comparison = Comparison(Constant([0, 1]), {"other": Constant([2, 0])})
    set_up(comparison, Start(*draw_head(4, 3, 0), orderings=2, max_samples=9, seed=0))
    labels = torch.tensor([0, 1, 1, 2, 2, 2, 0])
    for _ in range(2):
        comparison.on_validation_epoch_start()
        for part in labels.split(3):
            comparison.validation_step((torch.zeros(len(part), 4), part), 0)
        assert comparison.correct.tolist() == [[2, 2], [3, 2]]


def test_optimisers_of_all_methods_are_known() -> None:
    comparison = Comparison(GradientDescent(), {"closed": Constant([0]), "other": GradientDescent()})
    set_up(comparison, Start(*draw_head(4, 3, 0), orderings=1, max_samples=9, seed=0))
    assert len(comparison.configure_optimizers()) == 2

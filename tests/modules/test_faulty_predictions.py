"""Logits of another shape are refused, and predictions that are not finite are counted or end the run."""

from contextlib import nullcontext
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from headstart.modules.comparison import Comparison
from headstart.modules.method import MethodStart
from headstart.modules.methods.gradient_descent import GradientDescent
from headstart.output.errors import UserError
from headstart.tests.material.constant_predictions import Constant, compared, set_up


class Logits(Constant):
    """Gives logits as they are."""

    def __init__(self, logits: object) -> None:
        super().__init__([])
        self.logits = logits

    def forward(self, inputs: Tensor) -> Any:
        return self.logits


def test_logits_of_another_shape_are_refused_by_the_methods_name() -> None:
    for logits in (torch.zeros(5, 3), torch.zeros(1, 5, 3), torch.zeros(2, 5, 4), None):
        with pytest.raises(UserError, match=r"^model\.methods\.mine: forward returns .*here \[2, 5, 3\]"):
            compared(Logits(logits)).validation_step([(torch.zeros(5, 4), torch.zeros(5, dtype=torch.int64))], 0)


def test_predictions_that_are_not_finite_are_counted_and_wrong_but_for_one_plus_infinity() -> None:
    inf, nan = torch.inf, torch.nan
    rows = [[0.0, -inf, -inf], [nan, nan, nan], [1.0, nan, 0.0], [inf, 0.0, 0.0], [-inf, -inf, -inf], [2.0, 1.0, 0.0]]
    rows += [[inf, inf, 0.0], [inf, inf, inf]]
    comparison = compared(Logits(torch.tensor([rows, [[1.0, 0.0, 0.0]] * 8])))
    comparison.validation_step([(torch.zeros(8, 4), torch.zeros(8, dtype=torch.int64))], 0)
    correct, not_finite = comparison.counts[:, 1]
    assert correct.tolist() == [3, 8]
    assert not_finite.tolist() == [6, 0]


@pytest.mark.parametrize(("value", "is_fine"), [(-torch.inf, True), (torch.inf, False), (torch.nan, False)])
def test_a_class_may_be_barred(value: float, is_fine: bool) -> None:
    class Bars(GradientDescent):
        def adapt(self, inputs: Tensor, labels: Tensor) -> None:
            self.bias.data[:, 2] = value

    start = MethodStart(4, 3, range(1), max_samples=9, seed=0, backbone=nn.Sequential(nn.Flatten(), nn.Linear(12, 4)))
    comparison = Comparison(Bars())
    set_up(comparison, start)
    comparison.on_validation_epoch_start()
    comparison.training_step((torch.zeros(1, 1, 3, 2, 2), torch.zeros(1, 1, dtype=torch.int64), torch.zeros(1, 1)), 0)
    comparison.validation_step([(torch.zeros(5, 3, 2, 2), torch.zeros(5, dtype=torch.int64))], 0)
    with nullcontext() if is_fine else pytest.raises(UserError, match="turned NaN or infinite"):
        comparison.counted()

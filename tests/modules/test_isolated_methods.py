"""What a method changes of the tensors and settings that all methods share reaches no other method, or is an error."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from headstart.modules.arithmetic import set_float32_arithmetic
from headstart.modules.comparison import Comparison
from headstart.modules.method import Method, MethodStart
from headstart.output.errors import UserError
from headstart.tests.material.constant_predictions import Constant, set_up


class Takes(Constant):
    """Changes something behind torch's back, while it does something.

    Args:
        doing: The function in which it does, empty for all.
        change: Given the method and what the function is given.
    """

    def __init__(self, doing: str, change: Callable[[Method, Any], object]) -> None:
        super().__init__([0, 0])
        self.doing, self.change = doing, change

    def begin(self, start: MethodStart) -> None:
        super().begin(start)
        self._do("begin", start)

    def build_optimizers(self) -> list[torch.optim.Optimizer]:
        self._do("build_optimizers", None)
        return []

    def adapt(self, inputs: Tensor, labels: Tensor) -> None:
        self._do("adapt", inputs)

    def forward(self, inputs: Tensor) -> Tensor:
        self._do("forward", inputs)
        return super().forward(inputs)

    def _do(self, doing: str, argument: Any) -> None:
        if self.doing in ("", doing):
            self.change(self, argument)


def test_no_method_decides_on_the_arithmetic_of_another() -> None:
    noted = list[str]()
    rounds = Takes("", lambda *_: torch.set_float32_matmul_precision("medium"))
    notes = Takes("", lambda *_: noted.append(torch.get_float32_matmul_precision()))
    comparison = Comparison(rounds, {"notes": notes})
    set_up(comparison, MethodStart(4, 3, range(2), max_samples=9, seed=0))
    comparison.training_step((torch.randn(2, 1, 4), torch.zeros(2, 1, dtype=torch.int64), torch.zeros(2, 1)), 0)
    comparison.on_validation_epoch_start()
    comparison.validation_step([(torch.randn(5, 4), torch.zeros(5, dtype=torch.int64))], 0)
    set_float32_arithmetic()
    assert noted == ["highest"] * 3


def _start() -> MethodStart:
    torch.manual_seed(0)
    backbone = nn.Linear(4, 4)
    head, bias = torch.randn(5, 4), torch.randn(5)
    start = MethodStart(4, 3, range(2), max_samples=9, seed=0, samples=torch.randn(6, 4), backbone=backbone)
    return replace(start, source_head=head, source_bias=bias)


Change = Callable[[Any, Any], object]
CHANGES: list[tuple[str, Change, str]] = [
    ("begin", lambda mine, start: start.samples.zero_(), "start.samples"),
    ("begin", lambda mine, start: start.samples.data.div_(2), "start.samples"),
    ("begin", lambda mine, start: start.source_head.numpy().fill(1), "start.source_head"),
    ("begin", lambda mine, start: start.source_bias.neg_(), "start.source_bias"),
    ("begin", lambda mine, start: start.backbone.weight.data.neg_(), "start.backbone"),
    ("build_optimizers", lambda mine, _: mine.start.samples.mul_(2), "start.samples"),
    ("adapt", lambda mine, inputs: mine.start.samples.data.copy_(mine.start.samples.flip(0)), "start.samples"),
    ("forward", lambda mine, inputs: inputs.numpy().fill(0), "the validation inputs"),
    ("forward", lambda mine, _: mine.trainer.datamodule.held()["the labels"].data.neg_(), "the labels"),
]


def test_changes_of_shared_tensors_are_found() -> None:
    for doing, change, what in CHANGES:
        comparison = Comparison(Constant([0, 0]), {"mine": Takes(doing, change), "other": Constant([0, 0])})
        held = {"the validation inputs": torch.ones(5, 4), "the labels": torch.ones(5, dtype=torch.int64)}
        set_up(comparison, _start(), held)
        comparison.configure_optimizers()
        comparison.training_step((torch.ones(2, 1, 4), *torch.zeros(2, 2, 1, dtype=torch.int64)), 0)
        comparison.on_validation_epoch_start()
        with torch.inference_mode():
            comparison.validation_step([(held["the validation inputs"], held["the labels"])], 0)
        message = comparison.shared_changes()
        assert message.startswith("model: one of baseline, mine, other changes ")
        assert f"{what}, which all methods share" in message, (doing, what)


def test_a_change_of_one_value_is_found() -> None:
    start = _start()
    comparison = Comparison(Constant([0, 0]))
    set_up(comparison, start)
    comparison.require_shared_unchanged()
    assert start.samples is not None
    start.samples.numpy()[3, 1] += 1e-6
    with pytest.raises(UserError, match=r"^model\.baseline changes start\.samples,"):
        comparison.require_shared_unchanged()


def test_nobody_sees_what_another_makes_of_its_batch() -> None:
    other = Constant([0, 0])
    comparison = Comparison(Takes("adapt", lambda mine, inputs: inputs.numpy().fill(7)), {"other": other})
    set_up(comparison, _start())
    batch = (torch.ones(2, 1, 4), *torch.zeros(2, 2, 1, dtype=torch.int64))
    comparison.training_step(batch, 0)
    assert torch.equal(other.batches[0][0], batch[0])
    assert torch.equal(batch[0], torch.ones(2, 1, 4))

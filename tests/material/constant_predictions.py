"""A method that predicts one class in each ordering, and comparisons of it without a trainer."""

from collections.abc import Mapping
from types import SimpleNamespace

import torch
from torch import Tensor

from headstart.modules.comparison import Comparison
from headstart.modules.method import Method, MethodStart


def set_up(comparison: Comparison, start: MethodStart, held: Mapping[str, Tensor] = {}) -> None:
    stream = SimpleNamespace(
        start=lambda: start, feed=lambda numbers: None, orderings=start.ordering_numbers, held=lambda: held
    )
    comparison.trainer = SimpleNamespace(datamodule=stream)  # type: ignore[assignment]
    comparison.setup("fit")


class Constant(Method):
    """Predicts one class per ordering, and keeps what it is fed.

    Args:
        predictions: The class of every ordering.
    """

    def __init__(self, predictions: list[int]) -> None:
        super().__init__()
        self.predictions = predictions
        self.batches: list[tuple[Tensor, Tensor]] = []

    def adapt(self, inputs: Tensor, labels: Tensor) -> None:
        self.batches.append((inputs, labels))

    def forward(self, inputs: Tensor) -> Tensor:
        one_hot = torch.eye(3)[self.predictions]
        return one_hot[:, None].expand(-1, len(inputs), -1)


def compared(method: Method, orderings: int = 2) -> Comparison:
    comparison = Comparison(Constant([0] * orderings), {"mine": method})
    set_up(comparison, MethodStart(4, 3, range(orderings), max_samples=9, seed=0))
    comparison.on_validation_epoch_start()
    return comparison

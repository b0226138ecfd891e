"""Methods that keep a part of their state where neither a copy nor a checkpoint of them has it."""

from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from headstart.modules.method import Method, Start

# Batches seen, as a careless method counts them.
SEEN = {"batches": 0}


class Counting(Method):
    """Is right on as many validation samples as it has seen batches; a subclass keeps their number elsewhere.

    The input of a validation sample is its index, and its class is 0 where that is even.
    """

    def begin(self, start: Start) -> None:
        super().begin(start)
        self.batches = 0

    def adapt(self, inputs: Tensor, labels: Tensor) -> None:
        self.batches += 1

    def forward(self, inputs: Tensor) -> Tensor:
        return self.predict(inputs, self.batches)

    def predict(self, inputs: Tensor, right: float) -> Tensor:
        classes = inputs[:, 0].long() % 2
        predicted = torch.where(inputs[:, 0] < right, classes, 1 - classes)
        return torch.nn.functional.one_hot(predicted, 2).float().expand(len(self.start.numbers), -1, -1)


class InPlaceTensor(Counting):
    """Its `forward` adds to a plain tensor, but not at first."""

    def begin(self, start: Start) -> None:
        super().begin(start)
        self.extra = torch.zeros(1)

    def forward(self, inputs: Tensor) -> Tensor:
        if self.batches > 9:
            self.extra += 1
        return self.predict(inputs, self.batches + float(self.extra))


class InPlaceNested(InPlaceTensor):
    """The same in a list in a dictionary."""

    def begin(self, start: Start) -> None:
        super().begin(start)
        self.kept: dict[str, Any] = {"list": [torch.zeros(1)]}

    def forward(self, inputs: Tensor) -> Tensor:
        if self.batches > 9:
            self.kept["list"][0].add_(1)
        return self.predict(inputs, self.batches + float(self.kept["list"][0]))


class InPlaceArray(Counting):
    """Its `forward` adds to an array of NumPy, but not at first."""

    def begin(self, start: Start) -> None:
        super().begin(start)
        self.extra = np.zeros(1)

    def forward(self, inputs: Tensor) -> Tensor:
        if self.batches > 9:
            self.extra += 1
        return self.predict(inputs, self.batches + float(self.extra[0]))


class InPlaceData(InPlaceTensor):
    """Its `forward` adds to a plain tensor in a way that torch does not know of."""

    def forward(self, inputs: Tensor) -> Tensor:
        if self.batches > 5:
            self.extra.data.add_(1)
        return self.predict(inputs, self.batches + float(self.extra))


class InModule(Counting):
    """Its state is a global of its module."""

    def begin(self, start: Start) -> None:
        super().begin(start)
        SEEN["batches"] = 0

    def adapt(self, inputs: Tensor, labels: Tensor) -> None:
        SEEN["batches"] += 1

    def forward(self, inputs: Tensor) -> Tensor:
        return self.predict(inputs, SEEN["batches"])


class OnClass(Counting):
    """Its state lies on the class."""

    seen: ClassVar[list[int]] = []

    def begin(self, start: Start) -> None:
        super().begin(start)
        self.seen.clear()

    def adapt(self, inputs: Tensor, labels: Tensor) -> None:
        self.seen.append(1)

    def forward(self, inputs: Tensor) -> Tensor:
        return self.predict(inputs, len(self.seen))


class InOptimizer(Counting):
    """Reads the state of its optimiser where it predicts."""

    def begin(self, start: Start) -> None:
        super().begin(start)
        self.weight = torch.nn.Parameter(torch.zeros(1))
        self.optimizer = torch.optim.Adam([self.weight])

    def build_optimizers(self) -> list[torch.optim.Optimizer]:
        return [self.optimizer]

    def adapt(self, inputs: Tensor, labels: Tensor) -> None:
        self.weight.grad = torch.ones(1)
        self.optimizer.step()

    def forward(self, inputs: Tensor) -> Tensor:
        return self.predict(inputs, float(self.optimizer.state[self.weight]["step"]))


class InTrainer(Counting):
    """Reads what the comparison has seen."""

    def forward(self, inputs: Tensor) -> Tensor:
        return self.predict(inputs, self.trainer.lightning_module.samples_seen)  # type: ignore[arg-type]


class InAlias(Counting):
    """Predicts from a tensor that shares the memory of an array."""

    def begin(self, start: Start) -> None:
        super().begin(start)
        self.array = np.zeros(1)
        self.tensor = torch.from_numpy(self.array)

    def adapt(self, inputs: Tensor, labels: Tensor) -> None:
        self.array += 1

    def forward(self, inputs: Tensor) -> Tensor:
        return self.predict(inputs, float(self.tensor))


class InClassSet(Counting):
    """Keeps a set on its class, to which the same batch adds nothing twice."""

    seen: ClassVar[set[int]] = set()

    def adapt(self, inputs: Tensor, labels: Tensor) -> None:
        self.batches += 1
        self.seen.add(self.batches)

    def forward(self, inputs: Tensor) -> Tensor:
        return self.predict(inputs, len(self.seen))


class Drawing(Counting):
    """Is right on more samples the more it draws; what it draws has an axis of orderings, as dropout's mask has."""

    def begin(self, start: Start) -> None:
        super().begin(start)
        self.right = torch.zeros(len(start.numbers), 1)

    def adapt(self, inputs: Tensor, labels: Tensor) -> None:
        self.right = self.right + 2 * torch.rand(len(inputs), 1)

    def forward(self, inputs: Tensor) -> Tensor:
        classes = inputs[:, 0].long() % 2
        predicted = torch.where(inputs[:, 0] < self.right, classes, 1 - classes)
        return torch.nn.functional.one_hot(predicted, 2).float()

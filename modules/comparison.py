"""The comparison: one baseline and any number of custom methods, fed the same batches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from lightning.pytorch import LightningModule
from numpy.typing import NDArray
from torch import Tensor, nn

from modules.method import Method, Start
from output.errors import UserError

BASELINE = "baseline"


class Stream(Protocol):
    """What a comparison is fed from, as far as it concerns the comparison."""

    batch_size: int
    max_samples: int
    orderings: range
    validation_labels: Tensor

    def start(self) -> Start:
        """Give what every method starts from."""

    def protocol(self) -> dict[str, Any]:
        """Describe what is fed."""


@dataclass(frozen=True)
class Snapshot:
    """A comparison as it stands after an evaluation.

    Attributes:
        methods: Names, the baseline first.
        orderings: Numbers of the orderings.
        batch_size: New samples in each batch, for every ordering.
        max_samples: The sample limit.
        validation_size: Number of validation samples.
        protocol: What was fed, as it stands in the results.
        samples_seen: Samples that each ordering has fed so far.
        correct: Correct predictions, `[methods, orderings]`.
    """

    methods: list[str]
    orderings: range
    batch_size: int
    max_samples: int
    validation_size: int
    protocol: dict[str, Any]
    samples_seen: int
    correct: NDArray[np.int64]


class Comparison(LightningModule):
    """Feed one stream of samples to a baseline and to custom methods, and count their correct predictions.

    After each validation pass `snapshot` gives the number of correct predictions and the samples fed so far.

    Args:
        baseline: The method that all others are compared with.
        methods: The custom methods, by the name under which they appear in the results.
    """

    def __init__(self, baseline: Method, methods: dict[str, Method] | None = None) -> None:
        super().__init__()
        self.automatic_optimization = False
        custom = methods or {}
        if BASELINE in custom:
            raise UserError(f"model.methods: the name {BASELINE!r} is the baseline's own; give this method another")
        for name in custom:
            if "." in name or not name or hasattr(nn.ModuleDict, name):
                raise UserError(
                    f"model.methods: {name!r} cannot be a method's name; take letters, digits and underscores"
                )
        self.methods = nn.ModuleDict({BASELINE: baseline, **custom})
        self.samples_seen = 0

    @property
    def names(self) -> list[str]:
        """Names of the methods, the baseline first."""
        return list(self.methods)

    def __iter__(self) -> Iterator[Method]:
        """Iterate over the methods, the baseline first."""
        return iter(self.methods.values())  # type: ignore[arg-type]

    def setup(self, stage: str) -> None:
        """Give every method the same start."""
        self.stream: Stream = self.trainer.datamodule  # type: ignore[attr-defined]
        start = self.stream.start()
        for method in self:
            method.begin(start)
        self.correct = torch.zeros(len(self.names), start.orderings, dtype=torch.int64)

    def configure_optimizers(self) -> list[torch.optim.Optimizer]:
        """Collect the methods' optimisers, so that the trainer knows and saves them."""
        return [optimizer for method in self for optimizer in method.build_optimizers()]

    def training_step(self, batch: tuple[Tensor, Tensor], batch_idx: int) -> None:
        """Let every method adapt on the same batch."""
        inputs, labels = batch
        for method in self:
            method.adapt(inputs, labels)
        self.samples_seen += labels.shape[1]

    def on_validation_epoch_start(self) -> None:
        """Start the counts of one evaluation."""
        self.correct = torch.zeros_like(self.correct, device=self.device)

    def validation_step(self, batch: tuple[Tensor, Tensor], batch_idx: int) -> None:
        """Count the correct predictions of every method and ordering."""
        inputs, labels = batch
        for counts, method in zip(self.correct, self, strict=True):
            counts += (method(inputs).argmax(-1) == labels).sum(-1)

    def snapshot(self) -> Snapshot:
        """Give what the callbacks read."""
        stream = self.stream
        return Snapshot(
            methods=self.names,
            orderings=stream.orderings,
            batch_size=stream.batch_size,
            max_samples=stream.max_samples,
            validation_size=len(stream.validation_labels),
            protocol=stream.protocol(),
            samples_seen=self.samples_seen,
            correct=self.correct.cpu().numpy(),
        )

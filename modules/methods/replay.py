"""Gradient descent with a replay buffer of all samples seen."""

import torch
from jsonargparse.typing import PositiveInt
from lightning.pytorch.cli import OptimizerCallable
from torch import Tensor

from headstart.modules.method import MethodStart
from headstart.modules.methods.gradient_descent import GradientDescent
from headstart.modules.methods.samples_seen import SamplesSeen


class Replay(GradientDescent):
    """Gradient descent with earlier samples, sampled at random, in every step.

    Source: Arslan Chaudhry, Marcus Rohrbach, Mohamed Elhoseiny, Thalaiyasingam Ajanthan, Puneet K. Dokania, Philip H.
    S. Torr, Marc'Aurelio Ranzato, "On Tiny Episodic Memories in Continual Learning", arXiv 1902.10486, 2019, algorithm
    1. Each step descends on the new batch joined with samples chosen at random, without replacement, from the memory.
    Here the memory keeps all samples, and each batch has several steps. A trainable backbone computes the features of
    these samples again in each step.

    Args:
        optimizer: Optimiser and its settings; it must work element by element.
        replay_size: Earlier samples that are chosen for each step, fewer while there are fewer.
        steps: Optimiser steps per batch.
    """

    def __init__(
        self,
        optimizer: OptimizerCallable = lambda p: torch.optim.Adam(p, lr=1e-3),
        replay_size: PositiveInt = 16,
        steps: PositiveInt = 4,
    ) -> None:
        super().__init__(optimizer)
        self.replay_size = replay_size
        self.steps = steps

    def begin(self, start: MethodStart) -> None:
        """Start with an empty memory."""
        super().begin(start)
        self.memory = SamplesSeen(start)
        self.generator = torch.Generator(start.device).manual_seed(start.seed)

    def adapt(self, inputs: Tensor, labels: Tensor) -> None:
        """Perform several optimiser steps, each on the batch and new random samples from the memory."""
        before = self.memory.count
        self.memory.append(inputs, labels, self.indices)
        # They are sampled on the device, so that no step waits for them.
        device = labels.device
        new = torch.arange(before, self.memory.count, device=device)
        for _ in range(self.steps):
            replayed = torch.randperm(before, generator=self.generator, device=device)[: self.replay_size]
            joined = torch.cat([new, replayed])
            super().adapt(self.memory.features(joined), self.memory.labels[:, joined])

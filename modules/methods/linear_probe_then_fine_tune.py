"""Linear probing, then fine-tuning."""

import torch
from jsonargparse.typing import PositiveInt
from lightning.pytorch.cli import OptimizerCallable
from torch import Tensor

from headstart.modules.methods.fine_tuning import FineTuning
from headstart.modules.methods.gradient_descent import require_fitting


class LinearProbeThenFineTune(FineTuning):
    """Train the head alone for the first samples, then the whole network.

    Source: Ananya Kumar, Aditi Raghunathan, Robbie Jones, Tengyu Ma, Percy Liang, "Fine-Tuning can Distort Pretrained
    Features and Underperform Out-of-Distribution", ICLR 2022, section 3.4. Gradients of a random head would distort the
    pre-trained features. The head is therefore fitted before the backbone is trained.

    Args:
        probe_samples: Samples for which the head alone is trained.
        optimizer: Optimiser of the whole network afterwards; it must work element by element.
        probe_optimizer: Optimiser of the head until then.
    """

    def __init__(
        self,
        probe_samples: PositiveInt = 32,
        optimizer: OptimizerCallable = lambda p: torch.optim.Adam(p, lr=1e-4),
        probe_optimizer: OptimizerCallable = lambda p: torch.optim.Adam(p, lr=1e-3),
    ) -> None:
        super().__init__(optimizer)
        self.probe_samples = probe_samples
        self.make_probe_optimizer = probe_optimizer
        self.samples_seen = 0

    def check_arguments(self) -> None:
        """Raise a UserError for optimisers that do not fit."""
        super().check_arguments()
        require_fitting(self.make_probe_optimizer)

    def build_optimizers(self) -> list[torch.optim.Optimizer]:
        """Create the optimiser of the whole network and that of the head."""
        self.probe_optimizer = self.make_probe_optimizer([self.weight, self.bias])
        return [*super().build_optimizers(), self.probe_optimizer]

    def adapt(self, inputs: Tensor, labels: Tensor) -> None:
        """Perform one step of the head or of the whole network."""
        if self.samples_seen < self.probe_samples:
            self.adapt_head(self.probe_optimizer, inputs, labels)
        else:
            super().adapt(inputs, labels)
        self.samples_seen += labels.shape[1]

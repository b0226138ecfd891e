"""Fine-tuning that is pulled back to the pre-trained weights."""

import torch
from jsonargparse.typing import NonNegativeFloat
from lightning.pytorch.cli import OptimizerCallable
from torch import Tensor

from headstart.modules.methods.fine_tuning import FineTuning


class L2SP(FineTuning):
    """Fine-tuning with a penalty on the squared distance from the pre-trained weights, the starting point.

    Source: Xuhong Li, Yves Grandvalet, Franck Davoine, "Explicit Inductive Bias for Transfer Learning with
    Convolutional Networks", ICML, 2018, section 3. Two terms are added to the loss. The backbone's weights w,
    pre-trained as w0, add `alpha / 2 * |w - w0|^2`. The weights v of the head, which are not pre-trained, add `beta / 2
    * |v|^2`.

    Args:
        alpha: Strength of the pull towards the pre-trained weights.
        beta: Strength of the pull of the head's weights towards zero.
        optimizer: Optimiser and its settings; it must work element by element.
    """

    def __init__(
        self,
        alpha: NonNegativeFloat = 0.1,
        beta: NonNegativeFloat = 0.01,
        optimizer: OptimizerCallable = lambda p: torch.optim.Adam(p, lr=1e-4),
    ) -> None:
        super().__init__(optimizer)
        self.alpha = alpha
        self.beta = beta

    def build_optimizers(self) -> list[torch.optim.Optimizer]:
        """Create the optimiser, and copy the pre-trained weights."""
        self.starting_point = [parameter.detach().clone() for parameter in self.backbone.parameters()]
        return super().build_optimizers()

    def loss(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Cross-entropy and the penalties, as a scalar; arguments as in the base class."""
        pairs = zip(self.backbone.parameters(), self.starting_point, strict=True)
        distance: Tensor = sum(((now - then).square().sum() for now, then in pairs), logits.new_zeros(()))
        penalty: Tensor = self.alpha / 2 * distance + self.beta / 2 * self.weight.square().sum()
        return super().loss(logits, labels) + penalty

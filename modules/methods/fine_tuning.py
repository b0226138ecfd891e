"""Fine-tuning of a backbone, or of a part of it: the base class of its methods."""

from collections.abc import Iterable

from torch import Tensor, nn
from torch.optim import Optimizer

from headstart.modules.method import MethodStart, linear_logits
from headstart.modules.methods.gradient_descent import GradientDescent
from headstart.modules.networks.trainable_backbone import folded
from headstart.output.errors import UserError


class FineTuning(GradientDescent):
    """Train the head and the backbone, or the part of it that a subclass selects; frozen features raise an error.

    Args:
        optimizer: Optimiser and its settings; it must work element by element.
    """

    backbone: nn.Module

    def begin(self, start: MethodStart) -> None:
        """Copy the initial head and the backbone.

        Raises:
            UserError: The stream feeds frozen features.
        """
        if start.backbone is None:
            raise UserError(f"{type(self).__name__} runs a backbone of its own; feed it photos, with data=PhotoStream")
        super().begin(start)
        self.train_only(self.trained(self.backbone))

    def trained(self, backbone: nn.Module) -> Iterable[nn.Parameter]:
        """Return the parameters of the backbone that are trained: all, unless a subclass selects some.

        Args:
            backbone: The method's own copy; a subclass may change its layers.
        """
        return list(backbone.parameters())

    def train_only(self, trained: Iterable[nn.Parameter]) -> None:
        """Compute gradients of some parameters of the backbone, and of no others; the optimiser has them all.

        Args:
            trained: Parameters of the backbone.
        """
        self.backbone.requires_grad_(False)
        for parameter in trained:
            parameter.requires_grad_(True)

    def adapt_head(self, optimizer: Optimizer, inputs: Tensor, labels: Tensor) -> None:
        """Perform one step of the head, on features as in an evaluation: no statistics are trained.

        Args:
            optimizer: The optimiser of the head's weights.
            inputs: As for `adapt`.
            labels: As for `adapt`.
        """
        with folded(self):
            features = self.features(inputs)
        # A tensor from inference mode cannot be part of a graph.
        self.loss(linear_logits(features.clone(), self.weight, self.bias), labels).backward()
        optimizer.step()
        optimizer.zero_grad()

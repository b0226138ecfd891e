"""The baseline: standard gradient descent."""

import torch
from lightning.pytorch.cli import OptimizerCallable
from torch import Tensor, nn
from torch.nn import functional

from headstart.modules.method import Method, MethodStart, linear_logits
from headstart.output.errors import UserError

COUPLING = (torch.optim.LBFGS, torch.optim.Adafactor, torch.optim.Muon)


class GradientDescent(Method):
    """Standard gradient descent on the cross-entropy, one optimiser step per batch.

    On frozen features it trains the head; with a trainable backbone it fine-tunes the whole network. The loss is the
    mean over a batch and the sum over orderings, so gradients of different orderings do not mix. Element-wise
    optimisers (SGD, Adam and similar ones) train every ordering as if it were alone.

    Args:
        optimizer: Optimiser and its settings; it must work element by element.
    """

    def __init__(self, optimizer: OptimizerCallable = lambda p: torch.optim.Adam(p, lr=1e-3)) -> None:
        super().__init__()
        self.make_optimizer = optimizer

    def check_arguments(self) -> None:
        """Raise a UserError for an optimiser that refuses its settings, or does not work element by element."""
        super().check_arguments()
        require_fitting(self.make_optimizer)

    def begin(self, start: MethodStart) -> None:
        """Start from the initial head of every ordering."""
        super().begin(start)
        self.weight, self.bias = map(nn.Parameter, start.heads())

    def build_optimizers(self) -> list[torch.optim.Optimizer]:
        """Create one optimiser of all parameters."""
        self.optimizer = self.make_optimizer(list(self.parameters()))
        return [self.optimizer]

    def loss(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Cross-entropy: mean over the batch, sum over orderings.

        Args:
            logits: `[orderings, batch, classes]`.
            labels: `[orderings, batch]`.

        Returns:
            A scalar.
        """
        return functional.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="sum") / labels.shape[1]

    def adapt(self, inputs: Tensor, labels: Tensor) -> None:
        """Perform one optimiser step on the batch."""
        self.loss(self(inputs), labels).backward()
        self.optimizer.step()
        # Gradients are freed here, so that neither evaluations nor copies hold them.
        self.optimizer.zero_grad()

    def forward(self, inputs: Tensor) -> Tensor:
        """Apply every ordering's head to the features."""
        return linear_logits(self.features(inputs), self.weight, self.bias)


def require_fitting(make_optimizer: OptimizerCallable) -> None:
    """Check an optimiser before features are computed.

    Args:
        make_optimizer: Creates it.

    Raises:
        UserError: It refuses its settings, or does not work element by element.
    """
    try:
        optimizer = make_optimizer([nn.Parameter(torch.zeros(1, 1))])
    except (TypeError, ValueError) as error:
        raise UserError(f"optimizer: {error}; give other settings") from error
    if isinstance(optimizer, COUPLING):
        raise UserError(
            f"optimizer: {type(optimizer).__name__} does not work element by element, so orderings would change each "
            "other; take SGD, Adam or a similar optimiser"
        )

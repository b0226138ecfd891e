"""Training of the head alone, on photos."""

from collections.abc import Iterable

from torch import Tensor, nn

from headstart.modules.methods.fine_tuning import FineTuning


class HeadOnly(FineTuning):
    """Train the head alone, on photos; on frozen features, `GradientDescent` does the same.

    Also called linear probing: Guillaume Alain, Yoshua Bengio, "Understanding Intermediate Layers Using Linear
    Classifier Probes", ICLR workshop, 2017.

    Args:
        optimizer: Optimiser and its settings; it must work element by element.
    """

    def trained(self, backbone: nn.Module) -> Iterable[nn.Parameter]:
        """Return no parameter."""
        return []

    def adapt(self, inputs: Tensor, labels: Tensor) -> None:
        """Perform one step of the head, on features as in an evaluation."""
        self.adapt_head(self.optimizer, inputs, labels)

"""Training of the head alone, on photos."""

from __future__ import annotations

from torch import Tensor

from modules.method import Start, linear_logits
from modules.methods.gradient_descent import GradientDescent
from modules.methods.trained_part import frozen_features, require_photos, train_only


class HeadOnly(GradientDescent):
    """Train the head alone, as gradient descent on frozen features does, beside methods that train the backbone.

    Also called linear probing: Guillaume Alain, Yoshua Bengio, "Understanding Intermediate Layers Using Linear
    Classifier Probes", ICLR workshop, 2017.

    Args:
        optimizer: Optimiser and its settings; it must work element by element.
    """

    independent_of_limit = True

    def begin(self, start: Start) -> None:
        """Copy the initial head and the backbone.

        Raises:
            UserError: There is no backbone; on frozen features take `modules.GradientDescent`.
        """
        require_photos(start, self)
        super().begin(start)
        assert self.backbone is not None
        train_only(self.backbone, [])

    def adapt(self, inputs: Tensor, labels: Tensor) -> None:
        """Take one step of the head, on features as an evaluation has them."""
        self.optimizer.zero_grad()
        self.loss(linear_logits(frozen_features(self, inputs), self.weight, self.bias), labels).backward()
        self.optimizer.step()

"""Training of the head alone, on photos."""

from __future__ import annotations

from modules.method import Start
from modules.methods.gradient_descent import GradientDescent
from modules.methods.trained_part import require_photos, train_only


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

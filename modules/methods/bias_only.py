"""Fine-tuning of the biases alone."""

from __future__ import annotations

from modules.method import Start
from modules.methods.gradient_descent import GradientDescent
from modules.methods.trained_part import require_photos, train_only
from output.errors import UserError


class BiasOnly(GradientDescent):
    """Train the head and the biases of the backbone, those of its normalisation layers among them.

    Source: Elad Ben Zaken, Yoav Goldberg, Shauli Ravfogel, "BitFit: Simple Parameter-efficient Fine-tuning for
    Transformer-based Masked Language-models", ACL, 2022, section 3.

    Args:
        optimizer: Optimiser and its settings; it must work element by element.
    """

    independent_of_limit = True

    def begin(self, start: Start) -> None:
        """Copy the initial head and the backbone.

        Raises:
            UserError: There is no backbone to train, or it has no bias.
        """
        require_photos(start, self)
        super().begin(start)
        assert self.backbone is not None
        # The projections of torch's attention have one of another name.
        biases = [each for name, each in self.backbone.named_parameters() if name.endswith("bias")]
        if not biases:
            raise UserError("model.methods: BiasOnly has nothing to train in a backbone without a bias; take another")
        train_only(self.backbone, biases)

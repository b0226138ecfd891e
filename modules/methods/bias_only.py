"""Fine-tuning of the biases alone."""

from collections.abc import Iterable

from torch import nn

from headstart.modules.methods.fine_tuning import FineTuning
from headstart.output.errors import UserError


class BiasOnly(FineTuning):
    """Train the head and the biases of the backbone, those of its normalisation layers among them.

    Source: Elad Ben Zaken, Yoav Goldberg, Shauli Ravfogel, "BitFit: Simple Parameter-efficient Fine-tuning for
    Transformer-based Masked Language-models", ACL, 2022, section 3.

    Args:
        optimizer: Optimiser and its settings; it must work element by element.
    """

    def trained(self, backbone: nn.Module) -> Iterable[nn.Parameter]:
        """Return every bias.

        Raises:
            UserError: There is none.
        """
        # Biases of projections in torch's attention have longer names.
        biases = [parameter for name, parameter in backbone.named_parameters() if name.endswith("bias")]
        if not biases:
            raise UserError("BiasOnly has nothing to train in a backbone without a bias; take another")
        return biases

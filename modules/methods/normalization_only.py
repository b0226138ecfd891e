"""Fine-tuning of the normalisation layers alone."""

from collections.abc import Iterable

from torch import nn

from headstart.modules.methods.fine_tuning import FineTuning
from headstart.output.errors import UserError


class NormalizationOnly(FineTuning):
    """Train the head, and scale and shift of every normalisation layer of the backbone.

    Source: Jonathan Frankle, David J. Schwab, Ari S. Morcos, "Training BatchNorm and Only BatchNorm: On the Expressive
    Power of Random Features in CNNs", ICLR, 2021. If batch norm follows every convolution, these are the parameters of
    FiLM layers, with which few-shot learners adapt a backbone: Aliaksandra Shysheya, John Bronskill, Massimiliano
    Patacchiola, Sebastian Nowozin, Richard E. Turner, "FiT: Parameter Efficient Few-shot Transfer Learning for
    Personalized and Federated Image Classification", ICLR, 2023, section 2 (arXiv, 2022). They train them at some
    convolutions only; here all are trained. Statistics do not change unless `data.batch_norm` is `trained`.

    Args:
        optimizer: Optimiser and its settings; it must work element by element.
    """

    def trained(self, backbone: nn.Module) -> Iterable[nn.Parameter]:
        """Return every scale and shift of a normalisation layer.

        Raises:
            UserError: There is none.
        """
        layers = [module for module in backbone.modules() if _is_normalization(module)]
        trained = [parameter for layer in layers for parameter in layer.parameters(recurse=False)]
        if not trained:
            raise UserError(
                "NormalizationOnly has nothing to train in a backbone without normalisation layers that "
                "have a scale or shift; take another"
            )
        return trained


def _is_normalization(module: nn.Module) -> bool:
    """Return whether a class name contains "Norm": libraries have classes of their own, such as timm's LayerNorm2d."""
    return any("Norm" in kind.__name__ for kind in type(module).__mro__)

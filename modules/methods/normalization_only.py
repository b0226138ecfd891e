"""Fine-tuning of the normalisation layers alone."""

from __future__ import annotations

from torch import nn

from modules.method import Start
from modules.methods.gradient_descent import GradientDescent
from modules.methods.trained_part import require_photos, train_only
from output.errors import UserError


class NormalizationOnly(GradientDescent):
    """Train the head, and scale and shift of every normalisation layer of the backbone.

    Source: Jonathan Frankle, David J. Schwab, Ari S. Morcos, "Training BatchNorm and Only BatchNorm: On the
    Expressive Power of Random Features in CNNs", ICLR, 2021. In a network with batch norm after every convolution
    these are the parameters of FiLM layers, by which few-shot learners adapt a backbone: Aliaksandra Shysheya, John
    Bronskill, Massimiliano Patacchiola, Sebastian Nowozin, Richard E. Turner, "FiT: Parameter Efficient Few-shot
    Transfer Learning for Personalized and Federated Image Classification", ICLR, 2023, section 2 (arXiv, 2022), who put
    them at some of the convolutions only, where here all are trained. Statistics stay unless `data.batch_norm` is
    `trained`.

    Args:
        optimizer: Optimiser and its settings; it must work element by element.
    """

    independent_of_limit = True

    def begin(self, start: Start) -> None:
        """Copy the initial head and the backbone.

        Raises:
            UserError: There is no backbone to train, or it has no normalisation layer with a scale or shift.
        """
        require_photos(start, self)
        super().begin(start)
        assert self.backbone is not None
        layers = [each for each in self.backbone.modules() if _normalizes(each)]
        trained = [parameter for layer in layers for parameter in layer.parameters(recurse=False)]
        if not trained:
            raise UserError(
                "model.methods: NormalizationOnly has nothing to train in a backbone without normalisation layers that "
                "have a scale or shift; take another"
            )
        train_only(self.backbone, trained)


def _normalizes(module: nn.Module) -> bool:
    """Tell by the name: libraries have classes of their own, such as timm's LayerNorm2d and BatchNormAct2d."""
    return any("Norm" in kind.__name__ for kind in type(module).__mro__)

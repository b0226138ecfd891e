"""Low-rank adaptation of the backbone."""

from collections.abc import Iterable

import torch
from jsonargparse.typing import PositiveFloat, PositiveInt
from lightning.pytorch.cli import OptimizerCallable
from torch import Tensor, nn
from torch.nn.modules.linear import NonDynamicallyQuantizableLinear

from headstart.modules.methods.fine_tuning import FineTuning
from headstart.output.errors import UserError


class LowRankWeight(nn.Module):
    """A layer whose weight is the pre-trained one plus a product of two narrow matrices.

    Reading `weight` returns their sum, in the layer's own `forward`, in attention and in the folding of batch norm.

    Attributes:
        pretrained: The pre-trained weight, `[outputs, inputs, ...]`.
        up: `[outputs, rank]`.
        down: `[rank, inputs]`.
        scale: Factor of their product.
    """

    pretrained: Tensor
    up: nn.Parameter
    down: nn.Parameter
    scale: float

    @property
    def weight(self) -> Tensor:
        """The sum."""
        return self.pretrained + (self.scale * self.up @ self.down).view_as(self.pretrained)


class LowRankLinear(LowRankWeight, nn.Linear):  # type: ignore[override]
    """A linear layer with a weight of this kind."""


class LowRankConv2d(LowRankWeight, nn.Conv2d):  # type: ignore[override]
    """A convolution of single pixels with a weight of this kind."""


# Attention reads the weight of the second type, which is a linear layer by another name.
ADAPTED: dict[type[nn.Module], type[LowRankWeight]] = {
    nn.Linear: LowRankLinear,
    NonDynamicallyQuantizableLinear: LowRankLinear,
    nn.Conv2d: LowRankConv2d,
}


class LoRA(FineTuning):
    """Train the head, and for linear layers and 1x1 convolutions of the backbone a change of low rank.

    Source: Edward J. Hu, Yelong Shen, Phillip Wallis, Zeyuan Allen-Zhu, Yuanzhi Li, Shean Wang, Lu Wang, Weizhu Chen,
    "LoRA: Low-Rank Adaptation of Large Language Models", ICLR, 2022, section 4.1. The weight of a layer is `W + alpha /
    rank * B A`, where the pre-trained W does not change. B starts at zero and A at random, here uniform in
    +-1/sqrt(inputs) as in the authors' code.

    Layers whose weights have at most as many values as B and A would have are not changed. Neither are depthwise and
    grouped convolutions, biases and normalisation layers. The matrix of queries, keys and values in
    `torch.nn.MultiheadAttention` is not changed either; attention of timm has linear layers for them.

    Args:
        rank: Columns of B, and rows of A.
        alpha: The change of the weights is multiplied by `alpha / rank`.
        optimizer: Optimiser and its settings; it must work element by element.
    """

    def __init__(
        self,
        rank: PositiveInt = 4,
        alpha: PositiveFloat = 4.0,
        optimizer: OptimizerCallable = lambda p: torch.optim.Adam(p, lr=1e-3),
    ) -> None:
        super().__init__(optimizer)
        self.rank = rank
        self.alpha = alpha

    def trained(self, backbone: nn.Module) -> Iterable[nn.Parameter]:
        """Add a change of low rank to the layers, zero at first, and return its parameters.

        Raises:
            UserError: No layer is large enough for the rank.
        """
        layers = [module for module in backbone.modules() if isinstance(module, nn.Linear | nn.Conv2d)]
        # The processor samples it, so that every device has the same.
        generator = torch.Generator().manual_seed(self.start.seed)
        adapted = [self._adapt_layer(layer, generator) for layer in layers if self._can_adapt(layer)]
        if not adapted:
            raise UserError(
                f"rank: {self.rank} requested, but the backbone has no linear layer or 1x1 convolution whose weight "
                "has more values than a change of this rank; take a lower one or another method"
            )
        return [factor for layer in adapted for factor in (layer.up, layer.down)]

    def _can_adapt(self, layer: nn.Linear | nn.Conv2d) -> bool:
        is_of_pixels = isinstance(layer, nn.Linear) or (layer.kernel_size == (1, 1) and layer.groups == 1)
        outputs, inputs = layer.weight.shape[:2]
        return type(layer) in ADAPTED and is_of_pixels and self.rank * (outputs + inputs) < layer.weight.numel()

    def _adapt_layer(self, layer: nn.Linear | nn.Conv2d, generator: torch.Generator) -> LowRankWeight:
        """Change the class of a layer in place, so that all references to the layer remain valid."""
        pretrained = layer.weight
        outputs, inputs = pretrained.shape[:2]
        down = (2 * torch.rand(self.rank, inputs, generator=generator) - 1) * inputs**-0.5
        del layer.weight
        layer.__class__ = ADAPTED[type(layer)]  # type: ignore[assignment]
        assert isinstance(layer, LowRankWeight)
        layer.pretrained = pretrained
        layer.up = nn.Parameter(pretrained.new_zeros(outputs, self.rank))
        layer.down = nn.Parameter(down.to(pretrained))
        layer.scale = self.alpha / self.rank
        return layer

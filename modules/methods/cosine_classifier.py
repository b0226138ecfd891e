"""A cosine classifier whose weights are imprinted by the first samples."""

import torch
from jsonargparse.typing import PositiveFloat, PositiveInt
from lightning.pytorch.cli import OptimizerCallable
from torch import Tensor, nn
from torch.nn import functional

from headstart.modules.method import MethodStart, linear_logits
from headstart.modules.methods.gradient_descent import GradientDescent


class CosineClassifier(GradientDescent):
    """Classify by the cosine between features and class weights; imprint the weights, then train them.

    The logit of a class is a learnt scale times the cosine (Spyros Gidaris, Nikos Komodakis, "Dynamic Few-Shot Visual
    Learning without Forgetting", CVPR, 2018). The weight of a new class is the mean of the unit-length features of its
    first samples, scaled to unit length. Gradient steps continue from there (Hang Qi, Matthew Brown, David G. Lowe,
    "Low-Shot Learning with Imprinted Weights", CVPR, 2018). The cosine has no intercept. A class without a sample is
    never predicted.

    The default optimiser is plain gradient descent. Steps of Adam have about one size, however small the gradient is.
    At 1,280 features and a learning rate of 0.001, all weights would turn by about two degrees in each step, even those
    of classes that the batch lacks. As features of all classes have nearly the same direction, the imprinted
    differences of many classes would soon be lost.

    Args:
        optimizer: Optimiser of weights, scale and, if trainable, backbone; it must work element by element.
        imprint_samples: Samples of a class that imprint its weight; each of them replaces a weight that gradient
            steps had changed.
        scale: Initial scale of the cosines; one per ordering is learnt.
    """

    def __init__(
        self,
        optimizer: OptimizerCallable = lambda p: torch.optim.SGD(p, lr=1e-2),
        imprint_samples: PositiveInt = 5,
        scale: PositiveFloat = 10.0,
    ) -> None:
        super().__init__(optimizer)
        self.imprint_samples = imprint_samples
        self.initial_scale = scale

    def begin(self, start: MethodStart) -> None:
        """Start without any sample; only the shape of the initial head is used."""
        super().begin(start)
        del self.bias
        self.scale = nn.Parameter(torch.full((start.orderings, 1, 1), self.initial_scale))
        self.sums: Tensor = nn.Buffer(torch.zeros(start.orderings, start.features, start.classes))
        self.counts: Tensor = nn.Buffer(torch.zeros(start.orderings, start.classes))

    def adapt(self, inputs: Tensor, labels: Tensor) -> None:
        """Imprint the classes that are new, then perform one optimiser step on the batch."""
        self._imprint(inputs, labels)
        super().adapt(inputs, labels)

    @torch.no_grad()
    def _imprint(self, inputs: Tensor, labels: Tensor) -> None:
        one_hot = functional.one_hot(labels, self.start.classes).to(self.sums.dtype)
        fresh = (self.counts < self.imprint_samples) & (one_hot.sum(1) > 0)
        self.counts += one_hot.sum(1)
        self.sums.baddbmm_(functional.normalize(self.features(inputs), dim=-1).mT, one_hot)
        self.weight.copy_(torch.where(fresh[:, None], functional.normalize(self.sums, dim=1), self.weight))

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the scaled cosines."""
        features = functional.normalize(self.features(inputs), dim=-1)
        bias = torch.zeros_like(self.counts).masked_fill(self.counts == 0, -torch.inf)
        return linear_logits(features, self.scale * functional.normalize(self.weight, dim=1), bias)

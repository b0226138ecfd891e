"""Kernel ridge regression on one-hot targets."""

import torch
from jsonargparse.typing import PositiveFloat
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.weak import WeakTensorKeyDictionary

from headstart.modules.method import Method, MethodStart
from headstart.modules.methods.samples_seen import SeenProducts, solve_positive

# Number of the first samples, whose distances define the width.
FOR_WIDTH = 64
# Most bytes of cached products with the validation inputs.
LARGEST_CACHE = 2**28
# A smaller squared distance of two unit vectors in float32 is rounding error.
LEAST_DISTANCE = 1e-5


class KernelRidge(Method):
    """Ridge regression to one-hot labels with a Gaussian kernel, whose width follows from the samples.

    Source: Craig Saunders, Alexander Gammerman, Volodya Vovk, "Ridge Regression Learning Algorithm in Dual Variables",
    ICML, 1998. The scores of x are `k(x)' (K + ridge I)^-1 Y`. K is the kernel of the samples seen, Y their one-hot
    labels, and k(x) the kernel between them and x. The kernel is `exp(-d^2 / (2 w^2))` of the distance d. The width w
    is the median of the distances of all pairs of samples: Arthur Gretton, Karsten M. Borgwardt, Malte J. Rasch,
    Bernhard Schoelkopf, Alexander Smola, "A Kernel Two-Sample Test", Journal of Machine Learning Research, 2012,
    section 8. Here it is that of the first 64 samples, because each sample adds distances to all before it.

    Features are scaled to unit norm. There is no intercept. A class without a sample is never predicted.

    Args:
        ridge: Penalty on the squared norm of the functions, in units of one sample.
    """

    def __init__(self, ridge: PositiveFloat = 0.1) -> None:
        super().__init__()
        self.ridge = ridge

    def begin(self, start: MethodStart) -> None:
        """Start without any sample."""
        super().begin(start)
        self.pairs = SeenProducts(start)
        self.variance: Tensor = nn.Buffer(torch.ones(start.orderings, 1, 1))
        self.coefficients: Tensor = nn.Buffer(torch.zeros(start.orderings, 0, start.classes), persistent=False)
        # The same validation samples come after every batch.
        self.cached = WeakTensorKeyDictionary()

    @torch.no_grad()
    def adapt(self, inputs: Tensor, labels: Tensor) -> None:
        """Add the batch and solve for the coefficients of all samples again."""
        is_width_settled = self.pairs.seen.count >= FOR_WIDTH
        one_hot = functional.one_hot(torch.cat([self.pairs.seen.labels, labels], 1), self.start.classes)
        targets = one_hot.to(self.variance.dtype)

        coefficients = []
        for group, _ in self.pairs.append(self.features(inputs), labels, self.indices):
            products = self.pairs.products[group]
            if not is_width_settled:
                self.variance[group] = _median_squared_distance(products[:, :FOR_WIDTH, :FOR_WIDTH])
            kernel = _gaussian(products.clone(), self.variance[group])
            coefficients.append(solve_positive(kernel, self.ridge, targets[group]))
        self.coefficients = torch.cat(coefficients)

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the regression's estimates of the one-hot labels."""
        unit = functional.normalize(self.features(inputs), dim=-1)
        one_hot = functional.one_hot(self.pairs.seen.labels, self.start.classes)
        bias = torch.where(one_hot.sum(1, keepdim=True) == 0, -torch.inf, 0.0)
        logits = []
        for group in self.pairs.seen.groups(unit.shape[-2]):
            kernel = _gaussian(self._products_with(inputs, unit, group), self.variance[group])
            logits.append((self.coefficients[group].mT @ kernel).mT + bias[group])
        return torch.cat(logits)

    def _products_with(self, inputs: Tensor, unit: Tensor, group: slice) -> Tensor:
        """Return the products of the samples of some orderings with inputs, `[group, count, inputs]`."""
        if inputs not in self.cached:
            samples, values = self.pairs.seen.matrix, sum(products.numel() for products in self.cached.values())
            # Samples that are not shared are copied in every batch.
            is_lasting = self.pairs.seen.shared and inputs.dim() == 2
            if not is_lasting or 4 * (values + len(samples) * len(unit)) > LARGEST_CACHE:
                return self.pairs.gather(group) @ (unit if unit.dim() == 2 else unit[group]).mT
            self.cached[inputs] = functional.normalize(samples, dim=-1) @ unit.mT
        return functional.embedding(self.pairs.seen.indices[group], self.cached[inputs])


def _gaussian(products: Tensor, variance: Tensor) -> Tensor:
    """Compute the kernel from products of unit vectors, in place."""
    return products.sub_(1).div_(variance).exp_()


def _median_squared_distance(products: Tensor) -> Tensor:
    """Return the median over all pairs of samples, `[orderings, 1, 1]`; 1 where that is 0 or there is no pair."""
    first, second = torch.triu_indices(products.shape[-1], products.shape[-1], 1, device=products.device)
    if not len(first):
        return torch.ones_like(products)
    distances = 2 - 2 * products[:, first, second]
    median = distances.median(-1).values
    return torch.where(median > LEAST_DISTANCE, median, 1.0)[:, None, None]

"""Random projection with a nonlinearity, then ridge regression."""

from dataclasses import replace

import torch
from jsonargparse.typing import PositiveFloat, PositiveInt
from torch import Tensor, nn
from torch.nn import functional

from headstart.modules.method import MethodStart
from headstart.modules.methods.computed_once import ComputedOnce
from headstart.modules.methods.recursive_least_squares import RecursiveLeastSquares


class RandomProjection(RecursiveLeastSquares):
    """Ridge regression on random features `max(0, xR)`, updated batch by batch.

    Source: Mark D. McDonnell, Dong Gong, Amin Parvaneh, Ehsan Abbasnejad, Anton van den Hengel, "RanPAC: Random
    Projections and Pre-trained Models for Continual Learning", NeurIPS, 2023. The entries of R are standard normal. The
    weights are the ridge solution from the random features to one-hot labels. R is sampled once from the seed of the
    comparison, for all orderings. The recursion of the base class has the same solution as the paper's running sums.

    The paper projects to 10,000 features and chooses the ridge on a fifth of the first task's samples. Here there is
    neither a first task nor a sample to spare. The ridge is therefore fixed, for random features that are scaled to
    unit norm. Fewer features limit the memory of 100 orderings to a few hundred megabytes.

    Args:
        ridge: Penalty on the squared weights, in units of one sample.
        projections: Number of random features.
    """

    def __init__(self, ridge: PositiveFloat = 0.1, projections: PositiveInt = 2000) -> None:
        super().__init__(ridge)
        self.projections = projections

    def begin(self, start: MethodStart) -> None:
        """Sample the projection and start from weights of zero."""
        super().begin(replace(start, features=self.projections))
        # The processor samples it, so that every device has the same.
        generator = torch.Generator().manual_seed(start.seed)
        projection = torch.randn(start.features, self.projections, generator=generator)
        self.projection: Tensor = nn.Buffer(projection.to(start.device), persistent=False)
        self.projected = ComputedOnce()

    def unit_features(self, inputs: Tensor) -> Tensor:
        """Return the random features of a batch, scaled to unit norm.

        Args:
            inputs: As for `forward`.

        Returns:
            `[samples, projections]` or `[orderings, samples, projections]`.
        """
        return self.projected.of(inputs, lambda: self._project(self.features(inputs)))

    def _project(self, features: Tensor) -> Tensor:
        return functional.normalize((features @ self.projection).relu(), dim=-1)

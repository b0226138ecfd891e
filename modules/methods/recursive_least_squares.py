"""Ridge regression on one-hot targets, updated batch by batch."""

import torch
from jsonargparse.typing import PositiveFloat
from torch import Tensor, nn
from torch.nn import functional

from headstart.modules.method import Method, MethodStart, linear_logits
from headstart.modules.methods.samples_seen import with_room


class RecursiveLeastSquares(Method):
    """Ridge regression from features to one-hot labels, in closed form.

    The weights are `W = P X'Y` with `P = (X'X + ridge I)^-1` over all samples X seen and their one-hot labels Y.
    A batch `X_b, Y_b` moves them by the recursion of Robin L. Plackett, "Some Theorems in Least Squares",
    Biometrika, 1950 (batches of a classifier on fixed features: Nan-Ying Liang, Guang-Bin Huang, Paramasivan
    Saratchandran, Narasimhan Sundararajan, "A Fast and Accurate Online Sequential Learning Algorithm for
    Feedforward Networks", IEEE Transactions on Neural Networks, 2006)::

        S = I + X_b P X_b',    W += P X_b' S^-1 (Y_b - X_b W),    P -= P X_b' S^-1 X_b P

    While fewer samples than features are seen, P is kept as `(I - V'V) / ridge` with one row of V per sample.
    Afterwards it is kept as the matrix itself. Float32 suffices. With 1,280 features of an ImageNet network, 300
    samples and ridges from 0.01 to 1, scores differ from a float64 solve by at most 2e-6.

    Features are scaled to unit norm, so that one ridge suits any backbone. There is no intercept: the direction
    that non-negative features share serves as one. A class without a sample is never predicted.

    Args:
        ridge: Penalty on the squared weights, in units of one sample.
    """

    def __init__(self, ridge: PositiveFloat = 0.1) -> None:
        super().__init__()
        self.ridge = ridge

    def begin(self, start: MethodStart) -> None:
        """Start from weights of zero and the prior `P = I / ridge`."""
        super().begin(start)
        self.rows = 0
        self.explicit = False
        self.weight: Tensor = nn.Buffer(torch.zeros(start.orderings, start.features, start.classes))
        self.counts: Tensor = nn.Buffer(torch.zeros(start.orderings, start.classes))
        self.factor: Tensor = nn.Buffer(torch.empty(start.orderings, 0, start.features), persistent=False)

    def unit_features(self, inputs: Tensor) -> Tensor:
        """Return the features of a batch, scaled to unit norm.

        Args:
            inputs: As for `forward`.

        Returns:
            `[samples, features]` or `[orderings, samples, features]`.
        """
        return functional.normalize(self.features(inputs), dim=-1)

    @torch.no_grad()
    def adapt(self, inputs: Tensor, labels: Tensor) -> None:
        """Update the ridge solution."""
        features = self.unit_features(inputs)
        targets = functional.one_hot(labels, self.start.classes).to(features.dtype)
        self.counts += targets.sum(1)

        covered = self._times_inverse(features)
        identity = torch.eye(features.shape[1], device=features.device)
        lower = torch.linalg.cholesky_ex(identity + covered @ features.mT).L
        gain = torch.linalg.solve_triangular(lower, covered, upper=False)
        errors = targets - features @ self.weight
        self.weight.baddbmm_(gain.mT, torch.linalg.solve_triangular(lower, errors, upper=False))
        self._shrink_inverse(gain)

    def _times_inverse(self, features: Tensor) -> Tensor:
        """Return X_b P, `[orderings, batch, features]`."""
        if self.explicit:
            return features @ self.factor
        factor = self.factor[:, : self.rows]
        return torch.baddbmm(features, features @ factor.mT, factor, alpha=-1).div_(self.ridge)

    def _shrink_inverse(self, gain: Tensor) -> None:
        """Subtract gain' gain from P, `gain` being `[orderings, batch, features]`."""
        end = self.rows + gain.shape[1]
        if not self.explicit and end > self.start.features:
            factor = self.factor[:, : self.rows]
            identity = torch.eye(self.start.features, device=gain.device)
            self.factor = (identity - factor.mT @ factor) / self.ridge
            self.explicit = True

        if self.explicit:
            self.factor.baddbmm_(gain.mT, gain, alpha=-1)
        else:
            most = min(self.start.max_samples, self.start.features)
            self.factor = with_room(self.factor, [1], end, most)
            self.factor[:, self.rows : end] = gain * self.ridge**0.5
            self.rows = end

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the regression's estimates of the one-hot labels."""
        bias = torch.zeros_like(self.counts).masked_fill(self.counts == 0, -torch.inf)
        return linear_logits(self.unit_features(inputs), self.weight, bias)

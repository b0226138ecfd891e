"""Nearest class mean with means that are shrunk towards their common mean."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from headstart.modules.method import MethodStart
from headstart.modules.methods.nearest_class_mean import NearestClassMean

# Rounds in which the spread of the class means and the weights of their common mean settle.
ROUNDS = 3
# Keeps quotients of zeros finite.
TINY = 1e-12


class ShrunkenClassMean(NearestClassMean):
    """Nearest class mean, each mean shrunk towards the common mean; the more uncertain the mean, the more it is shrunk.

    Source: Carl N. Morris, "Parametric Empirical Bayes Inference: Theory and Applications", Journal of the American
    Statistical Association, 1983. It extends the estimator of Willard James, Charles Stein, "Estimation with Quadratic
    Loss", Fourth Berkeley Symposium, 1961, to unequal variances and a common mean. Let s be the trace of the covariance
    within classes. The mean `m_c` of `n_c` samples has the variance `v_c = s / n_c` around the true mean. The true
    means have the variance t around m. With weights `w_c = 1 / (v_c + t)`, m and t are computed in turns:

        m = sum w_c m_c / sum w_c,    t = sum w_c (k / (k - 1) |m_c - m|^2 - v_c) / sum w_c

    for k classes with samples, and the mean becomes `m_c + v_c / (v_c + t) (m - m_c)`. The squared length of the plain
    mean of few samples is too long by `v_c`. Nearest class mean therefore puts a class at a disadvantage while it has
    fewer samples than others. Shrinking removes such differences. t is at least `s / n`, for n samples in all, so that
    the means do not coincide. As long as no class has two samples, s is unknown and nothing is shrunk.

    Features are scaled to unit norm. A class without a sample is never predicted.
    """

    def represent(self, inputs: Tensor) -> Tensor:
        """Return the features, scaled to unit norm; `inputs` are as for `forward`."""
        return functional.normalize(self.features(inputs), dim=-1)

    def begin(self, start: MethodStart) -> None:
        """Start without any sample."""
        super().begin(start)
        self.squares: Tensor = nn.Buffer(torch.zeros(start.orderings))

    @torch.no_grad()
    def adapt(self, inputs: Tensor, labels: Tensor) -> None:
        """Add the batch to the sums and counts of its classes, and its squared norms."""
        super().adapt(inputs, labels)
        self.squares += self.represent(inputs).square().sum((1, 2))

    def means(self) -> Tensor:
        """Return the shrunken means, `[orderings, classes, features]`."""
        counts, means = self.counts.clamp(min=1)[..., None], super().means()
        seen = (self.counts > 0)[..., None].to(means.dtype)
        classes, total = seen.sum(1, keepdim=True), self.counts.sum(1)[:, None, None]
        scatter = self.squares[:, None, None] - (counts * _squared(means)).sum(1, keepdim=True)
        scale = scatter.clamp(min=0) / (total - classes).clamp(min=1)
        variances, least = scale / counts, scale / total.clamp(min=1)

        weights = seen
        for _ in range(ROUNDS):
            weights = weights / weights.sum(1, keepdim=True).clamp(min=TINY)
            common = (weights * means).sum(1, keepdim=True)
            deviations = _squared(means - common) * classes / (classes - 1).clamp(min=1)
            spread = torch.maximum((weights * (deviations - variances)).sum(1, keepdim=True), least)
            weights = seen / (variances + spread).clamp(min=TINY)

        return means + variances / (variances + spread).clamp(min=TINY) * (common - means)


def _squared(vectors: Tensor) -> Tensor:
    """Return the squared norms, `[..., 1]`."""
    return vectors.square().sum(-1, keepdim=True)

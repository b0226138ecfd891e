"""Gaussian discriminant analysis with a precision matrix by empirical Bayes."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from headstart.modules.method import MethodStart
from headstart.modules.methods.nearest_class_mean import NearestClassMean
from headstart.modules.methods.samples_seen import SeenProducts, solve_positive

# Rounding leaves a smaller trace where all unit vectors in float32 are the same.
LEAST_TRACE = 1e-4


class GaussianDiscriminantAnalysis(NearestClassMean):
    """Gaussian discriminant analysis without training: class means, and a precision that all classes share.

    Source: Zhengbo Wang, Jian Liang, Lijun Sheng, Ran He, Zilei Wang, Tieniu Tan, "A Hard-to-Beat Baseline for
    Training-free CLIP-based Adaptation", ICLR, 2024, equations 3 and 4. The score of a class with mean m is `m'Px -
    m'Pm / 2`; all classes are equally likely. The precision is that by empirical Bayes of Tatsuya Kubokawa, Muni S.
    Srivastava, "Estimation of the precision matrix of a singular Wishart distribution and its application in
    high-dimensional data", Journal of Multivariate Analysis, 2008::

        P = D ((n - 1) C + tr(C) I)^-1

    for the covariance C within classes of n samples with D features. So the ridge follows from the data; in
    `headstart.modules.StreamingLDA` it is an argument. The paper adds the scores to those of CLIP's texts, which other
    backbones lack.

    P is computed without the factor `D / tr(C)`, which all scores share. It is then the identity as long as no class
    has two samples, as in nearest class mean. The scatter `S = (n - 1) C` is `X'HX` for the samples X and the
    projection H that subtracts their class means. With at most as many samples as features, the weights are
    combinations `X'A` of the samples. Let `G = XX'` be the products, and B the shares of the samples in the class
    means. By Woodbury's identity,

        A = B - (HGH + tr(C) I)^-1 HGB

    With more samples, S itself is kept. Features are scaled to unit norm. A class without a sample is never predicted.
    """

    def begin(self, start: MethodStart) -> None:
        """Start without any sample."""
        super().begin(start)
        self.count = 0
        self.pairs: SeenProducts | None = SeenProducts(start)
        self.weight: Tensor = nn.Buffer(torch.zeros_like(self.sums))
        self.second_moments: Tensor = nn.Buffer(torch.empty(start.orderings, 0, 0), persistent=False)

    def learn(self, vectors: Tensor, labels: Tensor) -> None:
        """Add the batch and solve for the weights again; arguments as in the base class."""
        unit = functional.normalize(vectors, dim=-1)
        super().learn(unit, labels)
        self.count += labels.shape[1]
        if self.pairs is not None and self.count > self.start.features:
            gathered = map(self.pairs.gather, self.pairs.seen.groups())
            self.second_moments = torch.cat([samples.mT @ samples for samples in gathered])
            self.pairs = None

        if self.pairs is None:
            self.second_moments.baddbmm_(unit.mT, unit)
            self._fit_to_scatter()
        else:
            for group, samples in self.pairs.append(vectors, labels, self.indices):
                self._fit_to_products(self.pairs, group, samples)

    def _fit_to_products(self, pairs: SeenProducts, group: slice, samples: Tensor) -> None:
        """Set the weights of some orderings, whose samples are `[group, count, features]`."""
        one_hot = functional.one_hot(pairs.seen.labels[group], self.start.classes).to(samples.dtype)
        shares = one_hot / self.counts[group, None].clamp(min=1)
        products = pairs.products[group]
        projected = products - one_hot @ (shares.mT @ products)
        explained = projected @ shares
        scatter = projected - explained @ one_hot.mT
        coefficients = shares - solve_positive(scatter, _trace(scatter, self.count), explained)
        self.weight[group] = (coefficients / pairs.norms[group, :, None]).mT @ samples

    def _fit_to_scatter(self) -> None:
        """Set the weights of all orderings."""
        means = self.means()
        scatter = self.second_moments - self.sums.mT @ means
        trace = _trace(scatter, self.count)
        self.weight = trace * solve_positive(scatter, trace, means.mT).mT

    def forward(self, inputs: Tensor) -> Tensor:
        """Score by the log-likelihood of each class, up to a term and a factor that all classes share."""
        return self.score(functional.normalize(self.features(inputs), dim=-1), self.means(), self.weight)


def _trace(scatter: Tensor, count: int) -> Tensor:
    """Return the trace of the covariance, `[orderings, 1, 1]`, or a small number where rounding hides it."""
    total = scatter.diagonal(dim1=-2, dim2=-1).sum(-1) / max(count - 1, 1)
    return total.clamp(min=LEAST_TRACE)[:, None, None]

"""Nearest class mean."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from headstart.modules.method import Method, MethodStart, linear_logits


class NearestClassMean(Method):
    """Predict the class whose mean feature vector is nearest in the Euclidean distance.

    Source: Thomas Mensink, Jakob Verbeek, Florent Perronnin, Gabriela Csurka, "Distance-Based Image
    Classification: Generalizing to New Classes at Near-Zero Cost", IEEE Transactions on Pattern Analysis and
    Machine Intelligence, 2013, equations 1-2. The squared distance to mean m is, up to a term that all classes
    share, the linear score `m . x - |m|^2 / 2`. A class without a sample is never predicted.
    """

    # Vectors of the features' width that represent one sample.
    spaces = 1

    def begin(self, start: MethodStart) -> None:
        """Start without any sample."""
        super().begin(start)
        self.sums: Tensor = nn.Buffer(torch.zeros(start.orderings, start.classes, self.spaces * start.features))
        self.counts: Tensor = nn.Buffer(torch.zeros(start.orderings, start.classes))

    @torch.no_grad()
    def adapt(self, inputs: Tensor, labels: Tensor) -> None:
        """Add the batch to the sums and counts of its classes."""
        self.learn(self.represent(inputs), labels)

    def represent(self, inputs: Tensor) -> Tensor:
        """Return the vectors whose class means are computed, here the features; `inputs` are as for `forward`."""
        return self.features(inputs)

    def learn(self, vectors: Tensor, labels: Tensor) -> None:
        """Add vectors to the sums and counts of their classes.

        Args:
            vectors: `[orderings, batch, features]`.
            labels: `[orderings, batch]`.
        """
        one_hot = functional.one_hot(labels, self.start.classes).to(self.sums.dtype)
        self.sums.baddbmm_(one_hot.mT, vectors)
        self.counts += one_hot.sum(1)

    def means(self) -> Tensor:
        """Return the class means, `[orderings, classes, features]`; zeros for a class without a sample."""
        return self.sums / self.counts.clamp(min=1)[..., None]

    def score(self, vectors: Tensor, means: Tensor, weight: Tensor) -> Tensor:
        """Return the scores `w . x - w . m / 2` of the classes, -inf for a class without a sample.

        Args:
            vectors: `[samples, features]` or `[orderings, samples, features]`.
            means: Class means m, `[orderings, classes, features]`.
            weight: Their products w with the precision, likewise.
        """
        bias = (-0.5 * (means * weight).sum(-1)).masked_fill(self.counts == 0, -torch.inf)
        return linear_logits(vectors, weight.mT, bias)

    def forward(self, inputs: Tensor) -> Tensor:
        """Score by the negative squared distance to the class means."""
        means = self.means()
        return self.score(self.represent(inputs), means, means)

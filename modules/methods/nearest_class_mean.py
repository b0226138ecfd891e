"""Nearest class mean."""

from __future__ import annotations

import torch
from torch import Tensor

from headstart.modules.method import Method, Start, linear_logits


class NearestClassMean(Method):
    """Predict the class whose mean feature vector is nearest in the Euclidean distance.

    Source: Thomas Mensink, Jakob Verbeek, Florent Perronnin, Gabriela Csurka, "Distance-Based Image
    Classification: Generalizing to New Classes at Near-Zero Cost", IEEE Transactions on Pattern Analysis and
    Machine Intelligence, 2013, equations 1-2. The squared distance to mean m is, up to a term that all classes
    share, the linear score `m . x - |m|^2 / 2`. A class without a sample is never predicted.
    """

    independent_of_limit = True

    sums: Tensor
    counts: Tensor
    # How many vectors of the features' width a sample is placed by.
    spaces = 1

    def begin(self, start: Start) -> None:
        """Start without any sample."""
        super().begin(start)
        self.register_buffer("sums", torch.zeros(start.orderings, start.classes, self.spaces * start.features))
        self.register_buffer("counts", torch.zeros(start.orderings, start.classes))

    @torch.no_grad()
    def adapt(self, inputs: Tensor, labels: Tensor) -> None:
        """Add the batch to the sums and counts of its classes."""
        one_hot = torch.nn.functional.one_hot(labels, self.start.classes).to(self.sums.dtype)
        self.sums.baddbmm_(one_hot.mT, self.place(inputs))
        self.counts += one_hot.sum(1)

    def place(self, inputs: Tensor) -> Tensor:
        """Give the vectors whose class means are taken, the features here; `inputs` are as for `forward`."""
        return self.features(inputs)

    def forward(self, inputs: Tensor) -> Tensor:
        """Score by the negative squared distance to the class means."""
        means = self.sums / self.counts.clamp(min=1)[..., None]
        bias = (-0.5 * means.square().sum(-1)).masked_fill(self.counts == 0, -torch.inf)
        return linear_logits(self.features(inputs), means.mT, bias)

"""Nearest class mean among the class vectors of the source head, with a prior."""

from __future__ import annotations

import torch
from jsonargparse.typing import PositiveFloat
from lightning.fabric.utilities.exceptions import MisconfigurationException
from torch import Tensor
from torch.nn import functional
from torch.utils.weak import WeakTensorKeyDictionary

from modules.method import Method, Start, linear_logits


class SemanticClassMean(Method):
    """Nearest class mean where a sample lies among the source classes that the source head takes it for.

    The source head knows which directions of the features tell things apart and which source classes are alike.
    A sample becomes the mean of the source classes' weight vectors, each weighted by its probability under the
    source head, scaled to unit length: Mohammad Norouzi, Tomas Mikolov, Samy Bengio, Yoram Singer, Jonathon
    Shlens, Andrea Frome, Greg S. Corrado, Jeffrey Dean, "Zero-Shot Learning by Convex Combination of Semantic
    Embeddings", ICLR, 2014, equation 2, with weight vectors in the place of word vectors. The vectors are
    centred on their mean, so the origin is what an average source class looks like.

    Class means are estimated under the prior that they are drawn around this origin: `sum / (count + prior)`,
    the posterior mean of a normal mean (Kevin P. Murphy, "Conjugate Bayesian analysis of the Gaussian
    distribution", 2007, equation 20). So a class without a sample sits at the origin and can be predicted: a
    photo unlike the only class seen is of another one. Of several such classes the first is predicted.

    Args:
        temperature: Divides the source head's logits before the softmax; higher spreads a sample over more
            source classes.
        prior: Weight of the prior, in samples.
    """

    source_head: Tensor
    sums: Tensor
    counts: Tensor

    def __init__(self, temperature: PositiveFloat = 4.0, prior: PositiveFloat = 1.0) -> None:
        super().__init__()
        self.temperature = temperature
        self.prior = prior

    def begin(self, start: Start) -> None:
        """Centre the source head's class vectors and start without any sample.

        Raises:
            MisconfigurationException: There is no source head.
        """
        super().begin(start)
        if start.source_head is None:
            msg = "SemanticClassMean needs the backbone's own classifier: choose one pre-trained as a classifier"
            raise MisconfigurationException(msg)
        centred = start.source_head - start.source_head.mean(0)
        self.register_buffer("source_head", centred, persistent=False)
        self.register_buffer("sums", torch.zeros(start.orderings, start.classes, start.features))
        self.register_buffer("counts", torch.zeros(start.orderings, start.classes))
        # The same validation samples come after every batch, and placing them costs more than all the rest.
        self.placed = WeakTensorKeyDictionary()

    def embed(self, inputs: Tensor) -> Tensor:
        """Place samples among the source classes.

        Args:
            inputs: As for `forward`.

        Returns:
            Unit vectors, `[samples, features]` or `[orderings, samples, features]`.
        """
        logits = self.features(inputs) @ self.source_head.mT
        return functional.normalize((logits / self.temperature).softmax(-1) @ self.source_head, dim=-1)

    @torch.no_grad()
    def adapt(self, inputs: Tensor, labels: Tensor) -> None:
        """Add the batch to the sums and counts of its classes."""
        one_hot = functional.one_hot(labels, self.start.classes).to(self.sums.dtype)
        self.sums.baddbmm_(one_hot.mT, self.embed(inputs))
        self.counts += one_hot.sum(1)

    def forward(self, inputs: Tensor) -> Tensor:
        """Score by the negative squared distance to the class means."""
        means = self.sums / (self.counts + self.prior)[..., None]
        if inputs not in self.placed:
            self.placed[inputs] = self.embed(inputs)
        return linear_logits(self.placed[inputs], means.mT, -0.5 * means.square().sum(-1))

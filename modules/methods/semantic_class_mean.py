"""Nearest class mean among the class vectors of the source head, with a prior."""

import torch
from jsonargparse.typing import PositiveFloat
from torch import Tensor
from torch.nn import functional

from headstart.modules.method import MethodStart, linear_logits
from headstart.modules.methods.computed_once import ComputedOnce
from headstart.modules.methods.nearest_class_mean import NearestClassMean
from headstart.modules.methods.source_classes import SourceClasses


class SemanticClassMean(NearestClassMean):
    """Nearest class mean among vectors that represent a sample by the source classes which the source head predicts.

    `headstart.modules.methods.source_classes.SourceClasses` computes these vectors. The prior on their class means is a
    distribution around the origin. The estimate is `sum / (count + prior)`, the posterior mean of a normal mean (Kevin
    P. Murphy, "Conjugate Bayesian analysis of the Gaussian distribution", 2007, section 2). A class without a sample is
    therefore at the origin and can be predicted: a photo unlike the only class seen is predicted to be of another one.
    Of several such classes, the first is predicted.

    The features may separate classes that the source head does not. So the scores are mixed with those of plain class
    means of the features, scaled to unit length. The share of the latter, `n / (n + evidence)`, grows with the samples
    n of the rarest class. The mixture is this suite's own.

    Args:
        temperature: Divides the source head's logits before the softmax; higher spreads a sample over more
            source classes.
        prior: Weight of the prior on the class means, in samples.
        evidence: Samples of the rarest class at which plain class means weigh as much as those among the source
            classes.
    """

    spaces = 2

    def __init__(
        self, temperature: PositiveFloat = 4.0, prior: PositiveFloat = 1.0, evidence: PositiveFloat = 10.0
    ) -> None:
        super().__init__()
        self.temperature = temperature
        self.prior = prior
        self.evidence = evidence

    def begin(self, start: MethodStart) -> None:
        """Centre the source head's class vectors and start without any sample.

        Raises:
            UserError: There is no source head.
        """
        super().begin(start)
        self.source_classes = SourceClasses(start, self.temperature, type(self).__name__)
        self.represented = ComputedOnce()

    def represent(self, inputs: Tensor) -> Tensor:
        """Represent samples by their source classes, and by their features.

        Args:
            inputs: As for `forward`.

        Returns:
            Two unit vectors, one after the other, `[samples, 2 * features]` or `[orderings, samples, 2 * features]`.
        """
        features = self.features(inputs)
        return torch.cat([self.source_classes(features), functional.normalize(features, dim=-1)], -1)

    def forward(self, inputs: Tensor) -> Tensor:
        """Score by the negative squared distances to the class means in both spaces."""
        rarest = self.counts.amin(1)[:, None, None]
        share = rarest / (rarest + self.evidence)
        semantic, plain = self.sums.chunk(2, -1)
        semantic = semantic / (self.counts + self.prior)[..., None]
        plain = plain / self.counts.clamp(min=1)[..., None]
        weight = torch.cat([(1 - share) * semantic, share * plain], -1)
        bias = -0.5 * (weight * torch.cat([semantic, plain], -1)).sum(-1)
        return linear_logits(self.represented.of(inputs, lambda: self.represent(inputs)), weight.mT, bias)

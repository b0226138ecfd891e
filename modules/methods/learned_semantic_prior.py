"""A semantic prior from the source head, whose weight is learned beside linear discriminant analysis."""

from collections.abc import Iterator

import torch
from jsonargparse.typing import PositiveFloat
from torch import Tensor, nn
from torch.nn import functional

from headstart.modules.method import MethodStart, linear_logits
from headstart.modules.methods.computed_once import ComputedOnce
from headstart.modules.methods.source_classes import SourceClasses
from headstart.modules.methods.streaming_lda import StreamingLDA

# Scales of the scores of each expert, which are learned, too; those of log-likelihoods lie around 1.
SEMANTIC_SCALES = (1.0, 4.0, 16.0, 64.0)
LIKELIHOOD_SCALES = (0.125, 0.5, 2.0, 8.0)


class LearnedSemanticPrior(StreamingLDA):
    """Class means among the source classes, and discriminant analysis of the features, weighted by how they predict.

    Two experts compute scores. The semantic expert uses the distance to class means of the vectors of
    `headstart.modules.methods.source_classes.SourceClasses`. Its prior is that these means are around the origin (`sum
    / (count + prior)`, as in `headstart.modules.SemanticClassMean`). The other expert is
    `headstart.modules.StreamingLDA` on the features. The semantic expert predicts a target near the source well before
    any sample is seen, but cannot separate classes that the source head does not. The weights of the experts are
    learned from the samples. Each expert k predicts a batch before the batch is learned. Its probabilities p_k of the
    true labels change its weight

        u_k = w_k p_k / sum w p,    w_k = (1 - 1 / (n + 1)) u_k + 1 / ((n + 1) K)

    after n samples, for K experts of equal weight at first. The products of these predictions are the marginal
    likelihoods of Bayesian model averaging (A. Philip Dawid, "Present Position and Potential Developments: Some
    Personal Views: Statistical Theory: The Prequential Approach", Journal of the Royal Statistical Society A, 1984).
    The small share for all follows Mark Herbster, Manfred K. Warmuth, "Tracking the Best Expert", Machine Learning,
    1998. Its rate falls with n. Without it, an expert that predicts badly on few samples and well afterwards would
    catch up late (Tim van Erven, Peter Gruenwald, Steven de Rooij, "Catching Up Faster by Switching Sooner", Journal of
    the Royal Statistical Society B, 2012). All weights are learned; that of the semantic expert is logged.

    The scores of discriminant analysis are log-likelihoods, `m'Lx - m'Lm / 2` with the precision L that
    `headstart.modules.StreamingLDA` describes. An expert's probabilities are the softmax of its scores times a scale;
    each of four scales is an expert of its own. One sample is spread over all classes: `(n softmax + 1) / (n +
    classes)`. So a class without a sample can be predicted. The combination of these parts is this suite's own.

    Args:
        temperature: Divides the source head's logits before the softmax; higher spreads a sample over more
            source classes.
        prior: Weight of the prior on the class means among the source classes, in samples.
        shrinkage: Weight of the prior covariance of the features, which is the identity, in samples.
    """

    def __init__(
        self, temperature: PositiveFloat = 4.0, prior: PositiveFloat = 1.0, shrinkage: PositiveFloat = 1.0
    ) -> None:
        super().__init__(shrinkage)
        self.temperature = temperature
        self.prior = prior

    def begin(self, start: MethodStart) -> None:
        """Start without any sample and with experts of equal weight.

        Raises:
            UserError: There is no source head.
        """
        super().begin(start)
        self.source_classes = SourceClasses(start, self.temperature, type(self).__name__)
        self.seen = 0
        self.semantic_sums: Tensor = nn.Buffer(torch.zeros_like(self.sums))
        experts = len(SEMANTIC_SCALES) + len(LIKELIHOOD_SCALES)
        self.weights: Tensor = nn.Buffer(torch.full((start.orderings, experts), 1 / experts))
        self.represented = ComputedOnce()

    @torch.no_grad()
    def adapt(self, inputs: Tensor, labels: Tensor) -> None:
        """Update the experts' weights by their predictions of the batch, then the experts by the batch."""
        likelihoods = [p.gather(0, labels[None]).log().sum((0, 2)) for p in self._probabilities(inputs)]
        self.seen += labels.shape[1]
        updated = (self.weights.log() + torch.stack(likelihoods, -1)).softmax(-1)
        self.weights = updated.lerp(torch.full_like(updated, 1 / updated.shape[-1]), 1 / (self.seen + 1))
        self.log("semantic_weight", self.weights[:, : len(SEMANTIC_SCALES)].sum(-1))

        super().adapt(inputs, labels)
        one_hot = functional.one_hot(labels, self.start.classes).to(self.semantic_sums.dtype)
        self.semantic_sums.baddbmm_(one_hot.mT, self._represent(inputs))

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the logarithms of the experts' weighted probabilities."""
        weighted = zip(self.weights.T, self._probabilities(inputs), strict=True)
        mixed: Tensor = sum(weight[:, None] * probabilities for weight, probabilities in weighted)
        return mixed.log().permute(1, 2, 0)

    def _probabilities(self, inputs: Tensor) -> Iterator[Tensor]:
        """Compute the probabilities of the semantic expert at every scale, then of the other.

        Args:
            inputs: As for `forward`.

        Yields:
            `[classes, orderings, samples]`: sums over few classes are faster along the first axis.
        """
        means = self.semantic_sums / (self.counts + self.prior)[..., None]
        semantic = linear_logits(self._represent(inputs), means.mT, -0.5 * means.square().sum(-1))
        # The base class leaves out a factor of the log-likelihoods; before the first sample no class has a score.
        plain = super().forward(inputs) * (self.seen + self.ridge) if self.seen else torch.zeros_like(semantic)
        total = self.seen + self.start.classes
        for scores, scales in ((semantic, SEMANTIC_SCALES), (plain, LIKELIHOOD_SCALES)):
            relative = (scores - scores.amax(-1, keepdim=True)).permute(2, 0, 1).contiguous()
            for scale in scales:
                odds = (scale * relative).exp()
                yield (odds * (self.seen / total / odds.sum(0))).add_(1 / total)

    def _represent(self, inputs: Tensor) -> Tensor:
        """Represent samples by their source classes; `inputs` are as for `forward`."""
        return self.represented.of(inputs, lambda: self.source_classes(self.features(inputs)))

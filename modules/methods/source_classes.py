"""Samples represented by the classes that the backbone was pre-trained with."""

from torch import Tensor, nn
from torch.nn import functional

from headstart.modules.method import MethodStart
from headstart.output.errors import UserError


class SourceClasses(nn.Module):
    """The class vectors of the source head, and the vectors by which they represent samples.

    The source head knows which directions of the features separate classes and which source classes are alike. A sample
    is represented by the mean of the source classes' weight vectors, scaled to unit length. Each vector is weighted by
    its probability under the source head. Source: Mohammad Norouzi, Tomas Mikolov, Samy Bengio, Yoram Singer, Jonathon
    Shlens, Andrea Frome, Greg S. Corrado, Jeffrey Dean, "Zero-Shot Learning by Convex Combination of Semantic
    Embeddings", ICLR, 2014, equation 2, with weight vectors instead of word vectors. The vectors are centred on their
    mean, so that the origin is an average source class.

    Args:
        start: What the method starts from.
        temperature: Divides the source head's logits before the softmax.
        method: Name of the method, for the message.

    Raises:
        UserError: There is no source head.
    """

    vectors: Tensor
    biases: Tensor

    def __init__(self, start: MethodStart, temperature: float, method: str) -> None:
        super().__init__()
        if start.source_head is None:
            raise UserError(f"{method} needs the backbone's own classifier: choose one pre-trained as a classifier")
        self.temperature = temperature
        self.register_buffer("biases", start.source_bias, persistent=False)
        self.register_buffer("vectors", start.source_head - start.source_head.mean(0), persistent=False)

    def forward(self, features: Tensor) -> Tensor:
        """Represent samples.

        Args:
            features: `[..., features]`.

        Returns:
            Unit vectors, `[..., features]`.
        """
        # Centring the vectors subtracts the same number from all logits, which changes no probability.
        probabilities = ((features @ self.vectors.mT + self.biases) / self.temperature).softmax(-1)
        return functional.normalize(probabilities @ self.vectors, dim=-1)

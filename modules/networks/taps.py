"""The layers of a network at which embeddings are computed; defined without torch."""

from dataclasses import dataclass
from typing import Literal

Strategy = Literal["pool", "cls", "flatten", "mean"]

PENULTIMATE = "penultimate"
LOGITS = "logits"
# The layer of entries whose network classifies every pixel, and the path of the module in it.
PIXELS = "pixels"


@dataclass(frozen=True)
class Tap:
    """A layer at which an embedding is computed.

    Args:
        layer: Module path in the network. Unless a module has that path, `penultimate` means its linear classifier, and
            `logits` the network itself, whose output a classifier's logits are.
        strategy: How the layer's values become one row per photo; None for pool on maps, mean on tokens and flatten
            on vectors.
        width: Columns of the embedding. It is the layer's output if that has as many, else the layer's input if that
            has. None for the output's, however many. Under `penultimate` the classifier's input must have it.
        of_classifier: Whether it is left out where the network has no classifier (`num_classes` is 0).
    """

    layer: str
    strategy: Strategy | None
    width: int | None
    of_classifier: bool = False


# The logits of the classifier with which a network was pre-trained.
SOURCE_HEAD = Tap(LOGITS, None, None, of_classifier=True)

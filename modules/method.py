"""The base class of every transfer method, and what all methods of a comparison start from."""

from abc import abstractmethod
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from lightning.pytorch import LightningModule
from torch import Tensor, nn


@dataclass(frozen=True)
class MethodStart:
    """The start of every method of a comparison, equal for all of them.

    Attributes:
        features: Width of the features.
        classes: Number of target classes.
        ordering_numbers: Numbers of the orderings that it learns side by side.
        max_samples: The most samples that one ordering will feed.
        seed: Seed of a method's random numbers. Sample the same for every ordering, for example positions in the
            stream. An ordering then has the same results alone and among many.
        device: The device on which the method runs.
        backbone: The trainable backbone, from inputs `[samples, ...]` to `[samples, features]`. It is a whole network,
            or the part after a freeze boundary. None when the stream feeds frozen features.
        sample_dims: Axes of one input where the backbone is trainable: 3 of photos and maps, 2 of tokens.
        source_head: Weights of the classifier that the backbone was pre-trained with, `[source classes,
            features]`; None where there is none.
        source_bias: Its bias, `[source classes]`, likewise.
        samples: Features of all training samples, `[training samples, features]`, which all orderings and methods
            share. None where the backbone is trainable, or where they are not in the device's memory.
    """

    features: int
    classes: int
    ordering_numbers: Sequence[int]
    max_samples: int
    seed: int
    device: torch.device | str = "cpu"
    backbone: nn.Module | None = None
    sample_dims: int = 3
    source_head: Tensor | None = None
    source_bias: Tensor | None = None
    samples: Tensor | None = None

    @property
    def orderings(self) -> int:
        """Number of orderings that are fed side by side."""
        return len(self.ordering_numbers)

    def heads(self) -> tuple[Tensor, Tensor]:
        """Sample the initial head of every ordering, the same for all methods.

        Returns:
            Weights `[orderings, features, classes]` and biases `[orderings, classes]`.
        """
        heads = [sample_head(self.features, self.classes, self.seed, number) for number in self.ordering_numbers]
        weight, bias = (torch.stack(parts).to(self.device) for parts in zip(*heads, strict=True))
        return weight, bias


def sample_head(features: int, classes: int, seed: int, ordering: int) -> tuple[Tensor, Tensor]:
    """Sample the initial head of one ordering, uniform in +-1/sqrt(features) as in `torch.nn.Linear`.

    Args:
        features: Width of the features.
        classes: Number of target classes.
        seed: Seed of the comparison.
        ordering: Number of the ordering; its head does not depend on other orderings.

    Returns:
        Weights `[features, classes]` and bias `[classes]`.
    """
    # The third number distinguishes this generator from those of the orderings and of the validation part.
    generator = np.random.default_rng((seed, ordering, 2))
    uniform = generator.random((features + 1, classes), dtype=np.float32)
    values = torch.from_numpy((2 * uniform - 1) * np.float32(features**-0.5))
    return values[:-1], values[-1]


def linear_logits(features: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Apply one linear head per ordering.

    Args:
        features: Either shared by all orderings, `[samples, features]`, or `[orderings, samples, features]`.
        weight: `[orderings, features, classes]`.
        bias: `[orderings, classes]`.

    Returns:
        Logits, `[orderings, samples, classes]`.
    """
    if features.dim() == 3:
        # Classes are few: with them as rows the product and its gradient run two to three times as fast.
        return torch.baddbmm(bias[:, :, None], weight.mT, features.mT).mT
    orderings, width, classes = weight.shape
    # One matrix product for all orderings reads the shared features once instead of once per ordering.
    flat = weight.permute(1, 0, 2).reshape(width, orderings * classes)
    logits = torch.addmm(bias.flatten(), features, flat)
    return logits.view(-1, orderings, classes).transpose(0, 1)


def run_backbone(backbone: nn.Module, inputs: Tensor, sample_dims: int) -> Tensor:
    """Compute the features of inputs with any number of leading axes.

    Args:
        backbone: From `[samples, ...]` to `[samples, features]`.
        inputs: `[..., *sample]`.
        sample_dims: Axes of one sample.

    Returns:
        `[..., features]`.
    """
    axes = inputs.dim() - sample_dims
    features: Tensor = backbone(inputs.flatten(end_dim=axes - 1)).unflatten(0, inputs.shape[:axes])
    return features


class Method(LightningModule):
    """One way to adapt the classifier to the target, for all orderings at the same time.

    A method is created from its hyperparameters alone. `begin` then passes its start, `adapt` feeds it each new batch,
    and calling it returns logits. Overriding `adapt` and `forward` is enough for a closed-form method; a gradient
    method overrides the loss or the optimiser of `headstart.modules.GradientDescent`. Of Lightning's module it has
    `trainer`, `device`, `log` and `manual_backward`. Lightning's steps and hooks belong to the comparison; a method
    that defines one raises an error.

    Its state consists of its attributes and its optimisers. The attributes are copied for later evaluation, without
    further code of the method. `forward` must change none, and must not read optimisers.

    Attributes:
        independent_of_limit: Whether the method does the same up to any sample, whatever `Start.max_samples` is. Its
            traces can then be reused with other limits. It holds for the class that defines it, not for classes that
            inherit from it.
        indices: Positions of the batch's samples among the training samples, and so in `Start.samples`, int64
            `[orderings, batch]`; set before every call of `adapt`. A method that keeps samples keeps their positions,
            not copies.
    """

    independent_of_limit: ClassVar[bool] = False
    indices: Tensor

    def check_arguments(self) -> None:
        """Raise a UserError for arguments that cannot work; called once, before features are computed."""

    def begin(self, start: MethodStart) -> None:
        """Set up the state; called before the first batch of a pass over the stream, after the constructor.

        Extend it to create parameters and buffers. `self.backbone` holds the method's own copy of the trainable
        backbone, None on frozen features.

        Args:
            start: The start of every method of the comparison.
        """
        self.start = start
        self.backbone = deepcopy(start.backbone)
        self.automatic_optimization = False
        self.logged: dict[str, Tensor] = {}

    @abstractmethod
    def adapt(self, inputs: Tensor, labels: Tensor) -> None:
        """Learn from one new batch.

        Args:
            inputs: Features `[orderings, batch, features]`; where the backbone is trainable its inputs, photos
                `[orderings, batch, 3, height, width]` or activations `[orderings, batch, ...]`.
            labels: `[orderings, batch]`, integers from 0 to classes - 1.
        """

    @abstractmethod
    def forward(self, inputs: Tensor) -> Tensor:
        """Predict.

        Args:
            inputs: Validation inputs shared by all orderings, `[samples, features]`, or inputs of a trainable backbone,
                `[samples, ...]`. They may also have a leading axis of orderings, as in `adapt`.

        Returns:
            Logits, `[orderings, samples, classes]`.
        """

    def features(self, inputs: Tensor) -> Tensor:
        """Return the features of a batch: itself on frozen features, else through the method's own backbone.

        Args:
            inputs: As for `forward`.

        Returns:
            `[samples, features]` or `[orderings, samples, features]`.
        """
        return inputs if self.backbone is None else run_backbone(self.backbone, inputs, self.start.sample_dims)

    def log(self, name: str, value: Any, *_: Any, **__: Any) -> None:  # noqa: ANN401
        """Log a value, which goes to the loggers as `METHOD/NAME` at the next evaluation.

        Args:
            name: Its name.
            value: A number, or the mean of a tensor of any shape, such as one value per ordering.
        """
        self.logged[name] = torch.as_tensor(value).detach().float().mean()

    def build_optimizers(self) -> list[torch.optim.Optimizer]:
        """Create the optimisers that `adapt` steps; none by default."""
        return []

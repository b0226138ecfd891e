"""Fine-tuning from the last stage of the backbone to the first."""

import torch
from jsonargparse.typing import PositiveInt
from lightning.pytorch.cli import OptimizerCallable
from torch import Tensor, nn

from headstart.modules.methods.fine_tuning import FineTuning

# Less than the share of MobileNetV3's features, more than that of one of two residual blocks.
MOST = 0.6


class GradualUnfreezing(FineTuning):
    """Train the head, and after every few samples one more stage of the backbone, the last one first.

    Source: Jeremy Howard, Sebastian Ruder, "Universal Language Model Fine-tuning for Text Classification", ACL, 2018,
    section 3.3. There are 19 stages in MobileNetV2, 6 in ResNets and 14 in ViT-B. Stages are the children of the first
    module that has several with parameters. A child is replaced by its own children if it holds more than three fifths
    of these parameters and has no fewer children than there are stages. The blocks of a transformer together are such a
    child. The last turn trains all parameters, including those outside the stages. The trained parameters depend only
    on the samples seen, so an interrupted run continues as if it had not been interrupted.

    Args:
        samples_per_stage: Samples after which one more stage is trained.
        optimizer: Optimiser and its settings; it must work element by element.
    """

    def __init__(
        self,
        samples_per_stage: PositiveInt = 10,
        optimizer: OptimizerCallable = lambda p: torch.optim.Adam(p, lr=1e-4),
    ) -> None:
        super().__init__(optimizer)
        self.samples_per_stage = samples_per_stage
        self.samples_seen = 0

    def adapt(self, inputs: Tensor, labels: Tensor) -> None:
        """Perform one step of the head and the stages whose turn has come."""
        turns = self.samples_seen // self.samples_per_stage
        if turns:
            stages = _stages(self.backbone)[::-1]
            trained = stages[:turns] if turns < len(stages) else [self.backbone]
            self.train_only([parameter for stage in trained for parameter in stage.parameters()])
            super().adapt(inputs, labels)
        else:
            self.adapt_head(self.optimizer, inputs, labels)
        self.samples_seen += labels.shape[1]


def _stages(module: nn.Module) -> list[nn.Module]:
    """Return the stages of a network in the order of their definition, which mostly is that of their calls."""
    parts = _parts(module)
    if len(parts) == 1:
        return _stages(parts[0])
    for index, part in enumerate(parts):
        if len(_parts(part)) >= len(parts) and _size(part) > MOST * sum(map(_size, parts)):
            return [*parts[:index], *_stages(part), *parts[index + 1 :]]
    return parts or [module]


def _parts(module: nn.Module) -> list[nn.Module]:
    return [child for child in module.children() if _size(child)]


def _size(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())

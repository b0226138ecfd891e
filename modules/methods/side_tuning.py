"""Discriminant analysis on the frozen backbone, corrected by a fine-tuned copy."""

from dataclasses import replace

import torch
from jsonargparse.typing import PositiveFloat
from lightning.pytorch.cli import OptimizerCallable
from torch import Tensor, nn

from headstart.modules.method import MethodStart, run_backbone
from headstart.modules.methods.computed_once import ComputedOnce
from headstart.modules.methods.fine_tuning import FineTuning
from headstart.modules.methods.streaming_lda import StreamingLDA
from headstart.modules.networks.trainable_backbone import folded


class SideTuning(FineTuning):
    """Add the logits of a fine-tuned network to the scores of discriminant analysis on the frozen one.

    Source: Jeffrey O. Zhang, Alexander Sax, Amir Zamir, Leonidas Guibas, Jitendra Malik, "Side-Tuning: A Baseline for
    Network Adaptation via Additive Side Networks", ECCV, 2020, section 3. A base network does not change, and a side
    network is trained to correct it. Here their logits are added. The base is `headstart.modules.StreamingLDA` on the
    features of the pre-trained backbone. Its scores are scaled to log-likelihoods, `m'Lx - m'Lm / 2` with L the
    inverse covariance. The side is a copy of the backbone with a head of zeros, so at the start the base alone
    predicts. In each step, the side is trained on a batch before the base is. On samples of its own training, the base
    would be too certain to leave an error to the side.

    The frozen backbone is the one that all methods start from, and is not copied. Its features of the validation
    samples are computed once.

    Args:
        shrinkage: Weight of the prior covariance of discriminant analysis, in samples.
        optimizer: Optimiser of the side and its settings; it must work element by element.
    """

    def __init__(
        self,
        shrinkage: PositiveFloat = 1.0,
        optimizer: OptimizerCallable = lambda p: torch.optim.Adam(p, lr=1e-4),
    ) -> None:
        super().__init__(optimizer)
        self.shrinkage = shrinkage

    def begin(self, start: MethodStart) -> None:
        """Copy the backbone, and start from a head of zeros.

        Raises:
            UserError: The inputs are frozen features instead of photos.
        """
        super().begin(start)
        for parameter in (self.weight, self.bias):
            nn.init.zeros_(parameter)
        self.base = StreamingLDA(self.shrinkage)
        self.base.begin(replace(start, backbone=None))
        self.samples_seen = 0
        self.computed_once = ComputedOnce()

    def adapt(self, inputs: Tensor, labels: Tensor) -> None:
        """Train the side for one step, then update the base."""
        super().adapt(inputs, labels)
        # The sums of the base would lose samples if autocast rounded them.
        with torch.autocast(inputs.device.type, enabled=False):
            self.base.adapt(self._frozen_features(inputs), labels)
        self.samples_seen += labels.shape[1]

    def loss(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Cross-entropy, with a score of 0 for a class without a sample; arguments as in the base class."""
        return super().loss(logits.masked_fill(logits == -torch.inf, 0.0), labels)

    def forward(self, inputs: Tensor) -> Tensor:
        """Add the log-likelihoods of the base and the logits of the side."""
        with torch.no_grad(), torch.autocast(inputs.device.type, enabled=False):
            scores = self.base(self._frozen_features(inputs))
        logits: Tensor = (self.shrinkage + self.samples_seen) * scores + super().forward(inputs)
        return logits

    def _frozen_features(self, inputs: Tensor) -> Tensor:
        """Return the features of the backbone that all methods start from; arguments as for `forward`."""
        backbone = self.start.backbone
        assert backbone is not None

        def compute() -> Tensor:
            with folded(backbone):
                return run_backbone(backbone, inputs, self.start.sample_dims)

        return self.computed_once.of(inputs, compute)

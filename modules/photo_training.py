"""Training on labelled photos, of a source model, or of a source on a target."""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import torch
from jsonargparse.typing import ClosedUnitInterval
from lightning.pytorch import LightningModule
from lightning.pytorch.cli import OptimizerCallable
from torch import Tensor, nn
from torch.nn import functional
from torch.optim.lr_scheduler import CosineAnnealingLR, LRScheduler, OneCycleLR
from torchmetrics import Metric
from torchmetrics.classification import MulticlassAccuracy, MulticlassJaccardIndex
from torchvision.tv_tensors import Image, Mask

from headstart.modules.networks.preprocessing import NO_CLASS
from headstart.output.errors import UserError

ACCURACY, MEAN_IOU = "accuracy", "mean IoU"
# A label of no photo.
NOTHING = -100
# A shorter cycle cannot rise and fall.
SHORTEST_CYCLE = 3


class PhotoTraining(LightningModule):
    """Trains a network on labelled photos by the cross-entropy, and measures its accuracy on others.

    Where every pixel has a class, logits are interpolated to the size of the label map. The measure is the mean IoU
    over the classes that occur, from the counts of all pixels of all photos. It is the measure of Pascal VOC, M.
    Everingham et al., "The Pascal Visual Object Classes Challenge: A Retrospective", IJCV 2015, section 4.3.

    All random numbers of an epoch follow from the seed and the epoch's number.

    Args:
        optimizer: Optimiser and its settings; its learning rate is the highest of the schedule.
        schedule: `one_cycle` rises to that learning rate and falls to nothing, batch by batch (L. N. Smith and
            N. Topin, "Super-convergence: very fast training of neural networks using large learning rates", 2019, as
            torch's `OneCycleLR`), `cosine` falls alone, `constant` does neither.
        warm_up: Share of the batches in which `one_cycle` rises.
        label_smoothing: Share of the label that is spread over all classes.
        augmentation: Modules that change training photos, batch by batch, from uint8 `[samples, 3, height, width]` to
            the same. Examples are `headstart.modules.augmentation.Shift` and the transforms of
            `torchvision.transforms.v2`, which sample once for a batch. Label maps move along with the photos.
    """

    def __init__(
        self,
        optimizer: OptimizerCallable = lambda p: torch.optim.AdamW(p, lr=0.004, weight_decay=0.05),
        schedule: Literal["one_cycle", "cosine", "constant"] = "one_cycle",
        warm_up: ClosedUnitInterval = 0.2,
        label_smoothing: ClosedUnitInterval = 0.0,
        augmentation: Sequence[nn.Module] = (),
    ) -> None:
        super().__init__()
        self.make_optimizer = optimizer
        self.schedule = schedule
        self.warm_up = warm_up
        self.label_smoothing = label_smoothing
        self.augmentation = nn.Sequential(*augmentation)

    def begin(
        self, network: nn.Module, normalize: nn.Module | None, classes: int, seed: int, of_pixels: bool = False
    ) -> None:
        """Set the network that is trained.

        Args:
            network: From the outputs of `normalize` to logits, `[samples, classes]`.
            normalize: Module that turns photos into inputs of the network, and is not trained. None where the inputs
                are features, which are not augmented.
            classes: Number of classes.
            seed: Seed of all random numbers of the training.
            of_pixels: Whether every pixel has a class: logits then are `[samples, height, width, classes]`.
        """
        # Lightning leaves a network in the mode that it has.
        self.network = network.train()
        self.normalize = normalize
        self.seed = seed
        self.classes = classes
        self.measure: Metric
        if of_pixels:
            self.measured, self.ignored = MEAN_IOU, NO_CLASS
            self.measure = MulticlassJaccardIndex(classes, ignore_index=NO_CLASS)
        else:
            self.measured, self.ignored = ACCURACY, NOTHING
            self.measure = MulticlassAccuracy(classes, average="micro")

    def forward(self, inputs: Tensor) -> Tensor:
        """Return logits, `[samples, classes]`, of photos, uint8 `[samples, 3, height, width]`, or of features."""
        if self.normalize is not None:
            with torch.no_grad():
                inputs = self.normalize(inputs)
            if inputs.ndim == 4:
                inputs = inputs.contiguous(memory_format=torch.channels_last)
        logits: object = self.network(inputs)
        if not isinstance(logits, Tensor):
            raise UserError(
                f"data.backbone.name: the network returns a {type(logits).__name__} in training, but one "
                "tensor of logits is needed; leave its auxiliary outputs out (model_args), or give another network"
            )
        return logits

    def on_train_epoch_start(self) -> None:
        """Seed the generator of the epoch."""
        torch.manual_seed(epoch_seed(self.seed, self.current_epoch))

    def training_step(self, batch: tuple[Tensor, Tensor], batch_idx: int) -> Tensor:
        """Compute the loss of one batch.

        Raises:
            UserError: It is not finite.
        """
        inputs, labels = batch if self.normalize is None else self._augment(*batch)
        logits, labels = self._compared(inputs, labels)
        loss = functional.cross_entropy(logits, labels, ignore_index=self.ignored, label_smoothing=self.label_smoothing)
        if not loss.isfinite() and (labels == self.ignored).all():
            # The mean over no pixel: a batch in which none has a class has no effect.
            loss = 0 * logits.sum()
        if not loss.isfinite():
            raise UserError(
                f"model.optimizer: the loss is {loss.item()} in epoch {self.current_epoch + 1}, batch {batch_idx + 1}; "
                "give a lower learning rate"
            )
        self.log("loss", loss)
        return loss

    def on_validation_epoch_start(self) -> None:
        """Begin to collect the classes that are predicted."""
        self._predicted = torch.zeros(self.classes, dtype=torch.bool, device=self.device)

    def validation_step(self, batch: tuple[Tensor, Tensor], batch_idx: int) -> None:
        """Count the correct predictions of one batch."""
        logits, labels = self._compared(*batch)
        self.measure.update(logits, labels)
        self.log(self.measured, self.measure)
        self._predicted[logits.argmax(1)[labels != self.ignored]] = True

    @property
    def only_class(self) -> int | None:
        """Index of the class that the last validation predicted throughout; None where it predicted several."""
        predicted: list[int] = self._predicted.nonzero()[:, 0].tolist()
        return predicted[0] if len(predicted) == 1 else None

    def _augment(self, photos: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        if labels.ndim == 1:
            return self.augmentation(photos), labels
        both: tuple[Tensor, Tensor] = self.augmentation((Image(photos), Mask(labels)))
        return both[0].as_subclass(Tensor), both[1].as_subclass(Tensor)

    def _compared(self, inputs: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        """Return logits, the classes along the second axis, and labels of the same pixels."""
        logits = self(inputs)
        if labels.ndim == 1:
            return logits, labels
        return functional.interpolate(logits.movedim(-1, 1), labels.shape[1:], mode="bilinear"), labels.long()

    def configure_optimizers(self) -> Any:  # noqa: ANN401 - one of Lightning's many forms
        """Create the optimiser of all trained parameters, and its schedule."""
        optimizer = self.make_optimizer(
            [parameter for parameter in self.network.parameters() if parameter.requires_grad]
        )
        schedule = self._schedule(optimizer, int(self.trainer.estimated_stepping_batches))
        if schedule is None:
            return optimizer
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}

    def _schedule(self, optimizer: torch.optim.Optimizer, steps: int) -> LRScheduler | None:
        if self.schedule == "constant" or steps < SHORTEST_CYCLE:
            return None
        if self.schedule == "cosine":
            return CosineAnnealingLR(optimizer, steps)
        rising = min(max(2, round(self.warm_up * steps)), steps - 1)
        peaks = [group["lr"] for group in optimizer.param_groups]
        try:
            return OneCycleLR(optimizer, peaks, steps, pct_start=rising / steps)
        except ValueError as error:
            # The schedule changes the momentum, too.
            raise UserError(
                f"model.schedule: one_cycle does not suit {type(optimizer).__name__} ({error}); give cosine, or "
                "another optimiser"
            ) from error


def epoch_seed(seed: int, epoch: int) -> int:
    """Return the seed of one epoch's random numbers, except the order of its samples."""
    return int(np.random.default_rng((seed, epoch, 5)).integers(2**62))

"""LightningModules such as users have: each uses one more of Lightning's hooks, layers and logs."""

from typing import Any

import torch
from lightning.pytorch import Callback, LightningModule
from lightning.pytorch.callbacks import BaseFinetuning
from torch import Tensor, nn
from torch.nn import functional
from torchmetrics.classification import MulticlassAccuracy

from headstart.tests.material.lightning_modules import Probe


class TrainedNorm(Probe):
    def __init__(self, backbone: nn.Module, classes: int) -> None:
        super().__init__(backbone, classes)
        self.before = nn.BatchNorm1d(self.head.in_features)  # type: ignore[assignment]


class FrozenLater(TrainedNorm):
    def on_train_epoch_start(self) -> None:
        self.before.eval()


class Dropped(Probe):
    def __init__(self, backbone: nn.Module, classes: int) -> None:
        super().__init__(backbone, classes)
        self.before = nn.Dropout(0.5)  # type: ignore[assignment]


class Draws(Probe):
    def training_step(self, batch: Any, batch_idx: int) -> Any:
        noise = torch.randn(batch[0].shape, generator=None)
        return super().training_step((batch[0] + noise, batch[1]), batch_idx)


class ReadsMetrics(Probe):
    def training_step(self, batch: Any, batch_idx: int) -> Any:
        before = self.trainer.callback_metrics.get("loss", torch.ones(()))
        return before.clamp(0.1, 2) * super().training_step(batch, batch_idx)


class LowersTheRateInside(Probe):
    def training_step(self, batch: Any, batch_idx: int) -> Any:
        wrapped: Any = self.optimizers()
        wrapped.optimizer.param_groups[0]["lr"] *= 0.8
        return super().training_step(batch, batch_idx)


class Augments(Probe):
    def on_after_batch_transfer(self, batch: Any, dataloader_idx: int) -> Any:
        inputs, labels = batch
        return (inputs.flip(1) if self.trainer.training else inputs), labels


class ConfiguresModel(Probe):
    def configure_model(self) -> None:
        if isinstance(self.head, nn.Linear):
            self.head = nn.Sequential(nn.Tanh(), nn.Linear(self.head.in_features, self.head.out_features))  # type: ignore[assignment]


class DecaysWeights(Callback):
    def on_train_batch_end(self, trainer: Any, pl_module: Any, *_: Any) -> None:
        pl_module.head.weight.data *= 0.9


class BringsCallbacks(Probe):
    def configure_callbacks(self) -> Any:
        return [DecaysWeights()]


class SilentTrain(Probe):
    def train(self, mode: bool = True) -> Any:
        super().train(mode)


class Fades(LightningModule):
    def forward(self, inputs: Tensor) -> Tensor:
        return inputs / (1 + self.trainer.global_step)


class Nested(Probe):
    """Logs where it predicts, and has an inner module that reads the trainer."""

    def __init__(self, backbone: nn.Module, classes: int) -> None:
        super().__init__(backbone, classes)
        self.before = Fades()  # type: ignore[assignment]

    def forward(self, inputs: Tensor) -> Tensor:
        self.log("greatest", inputs.max())
        return super().forward(inputs)


class SkipsSteps(Probe):
    def training_step(self, batch: Any, batch_idx: int) -> Any:
        return None if batch_idx % 3 == 1 else super().training_step(batch, batch_idx)


class LogsMetrics(Probe):
    def __init__(self, backbone: nn.Module, classes: int) -> None:
        super().__init__(backbone, classes)
        self.accuracy = MulticlassAccuracy(classes)

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        self.accuracy(self(batch[0]), batch[1])
        self.log("accuracy", self.accuracy, on_step=True, on_epoch=True)
        return {"loss": super().training_step(batch, batch_idx), "extra": batch_idx}


class Stops(Probe):
    def training_step(self, batch: Any, batch_idx: int) -> Any:
        self.trainer.should_stop = batch_idx == 6
        return super().training_step(batch, batch_idx)


class LeavesTheRest(Probe):
    def on_train_batch_start(self, batch: Any, batch_idx: int) -> Any:
        return -1 if batch_idx == 6 else None


class Validates(Probe):
    """Lowers its rate where its own validation says so."""

    def on_validation_epoch_start(self) -> None:
        self.right = 0.0

    def validation_step(self, batch: Any, batch_idx: int) -> None:
        self.right += float((self(batch[0]).argmax(1) == batch[1]).sum())

    def on_validation_epoch_end(self) -> None:
        self.log("right", self.right)
        self.trainer.optimizers[0].param_groups[0]["lr"] = 1 / (1 + self.right)


class HasHooks(Probe):
    def on_fit_start(self) -> None:
        self.head.bias.data += 0.5

    def on_train_start(self) -> None:
        self.head.bias.data *= 2

    def on_train_end(self) -> None:
        self.head.weight.data += 1


class CentresOnItsFirstBatch(Probe):
    """Whoever predicts with it before the first batch changes what it learns."""

    def __init__(self, backbone: nn.Module, classes: int, lr: float = 0.3) -> None:
        super().__init__(backbone, classes, lr)
        self.mean: Tensor | None = None

    def forward(self, inputs: Tensor) -> Tensor:
        self.mean = inputs.mean(0) if self.mean is None else self.mean
        return super().forward(inputs - self.mean)


class UsesItsLogger(Probe):
    """Calls what only some loggers have."""

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        logger: Any = self.logger
        logger.experiment.add_scalar("batch", batch_idx)
        logger.log_image("inputs", [batch[0]])
        return super().training_step(batch, batch_idx)


class ClearsItsValidation(Probe):
    """Overwrites its validation batch after its own prediction."""

    def validation_step(self, batch: Any, batch_idx: int) -> None:
        self.log("val_loss", functional.cross_entropy(self(batch[0]), batch[1]))
        batch[0].zero_()


class LogsADict(Probe):
    def training_step(self, batch: Any, batch_idx: int) -> Any:
        loss = super().training_step(batch, batch_idx)
        self.log_dict({"double": 2 * loss, "half": loss / 2}, on_step=True, on_epoch=True, prog_bar=True)
        return loss


class KeepsTrainLosses(Probe):
    """Sums the outputs of its steps at the end of the epoch."""

    def on_train_epoch_start(self) -> None:
        self.losses: list[Tensor] = []

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        loss = super().training_step(batch, batch_idx)
        self.losses.append(loss.detach())
        return loss

    def on_train_epoch_end(self) -> None:
        self.head.bias.data += torch.stack(self.losses).mean()


class ClipsItself(Probe):
    def configure_gradient_clipping(self, optimizer: Any, gradient_clip_val: Any = None, *_: Any, **__: Any) -> None:
        self.clip_gradients(optimizer, gradient_clip_val=0.1, gradient_clip_algorithm="norm")


class ZeroesToNothing(Probe):
    def optimizer_zero_grad(self, epoch: int, batch_idx: int, optimizer: Any) -> None:
        optimizer.zero_grad(set_to_none=False)


class NoisesGradients(Probe):
    def on_before_optimizer_step(self, optimizer: Any) -> None:
        for weights in self.parameters():
            assert weights.grad is not None
            weights.grad += 0.01 * torch.randn_like(weights)


class Thaws(BaseFinetuning):
    """Freezes the bias for all of the one epoch."""

    def freeze_before_training(self, pl_module: Any) -> None:
        pl_module.head.bias.requires_grad = False

    def finetune_function(self, pl_module: Any, epoch: int, optimizer: Any) -> None: ...

"""LightningModules such as users have: each uses one more feature of Lightning's documentation."""

from typing import Any

import torch
from lightning.pytorch import Callback, LightningModule
from lightning.pytorch.callbacks import BaseFinetuning
from torch import Tensor, nn
from torch.nn import functional
from torch.optim import SGD, Optimizer
from torch.optim import lr_scheduler as schedules
from torchmetrics.classification import MulticlassAccuracy


class Probe(LightningModule):
    """A head on a backbone that is trained with it.

    Args:
        backbone: The backbone.
        classes: Number of classes.
        lr: Learning rate.
    """

    def __init__(self, backbone: nn.Module, classes: int, lr: float = 0.3) -> None:
        super().__init__()
        self.save_hyperparameters(ignore="backbone")
        self.backbone, self.before = backbone, nn.Identity()
        width: Any = backbone.width
        self.head = nn.Linear(width, classes)

    def forward(self, inputs: Tensor) -> Tensor:
        logits: Tensor = self.head(self.before(self.backbone(inputs)))
        return logits

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        loss = functional.cross_entropy(self(batch[0]), batch[1])
        self.log("loss", loss)
        return loss

    def configure_optimizers(self) -> Any:
        return SGD(self.parameters(), lr=self.hparams["lr"], momentum=0.9)


class StepSchedule(Probe):
    def configure_optimizers(self) -> Any:
        optimizer = super().configure_optimizers()
        schedule = {"scheduler": schedules.ExponentialLR(optimizer, 0.7), "interval": "step", "frequency": 2}
        return [optimizer], [schedule]


class OneCycle(Probe):
    def configure_optimizers(self) -> Any:
        optimizer = super().configure_optimizers()
        steps = int(self.trainer.estimated_stepping_batches)
        schedule = schedules.OneCycleLR(optimizer, max_lr=1.0, total_steps=steps)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}


class Plateau(Probe):
    monitor = "loss"

    def configure_optimizers(self) -> Any:
        optimizer = super().configure_optimizers()
        schedule = schedules.ReduceLROnPlateau(optimizer, factor=0.3, patience=0)
        options = {"scheduler": schedule, "monitor": self.monitor, "interval": "step"}
        return {"optimizer": optimizer, "lr_scheduler": options}


class ValidationPlateau(Plateau):
    monitor = "val_loss"

    def validation_step(self, batch: Any, batch_idx: int) -> None:
        self.log("val_loss", functional.cross_entropy(self(batch[0]), batch[1]))


class OwnSchedulerStep(StepSchedule):
    def lr_scheduler_step(self, scheduler: Any, metric: Any) -> None:
        if self.global_step % 3:
            scheduler.step()


class Manual(Probe):
    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.automatic_optimization = False

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        optimizer: Any = self.optimizers()
        self.manual_backward(super().training_step(batch, batch_idx))
        # Gradients of two batches.
        if batch_idx % 2:
            optimizer.step()
            optimizer.zero_grad()


class TwoOptimizers(Manual):
    def training_step(self, batch: Any, batch_idx: int) -> Any:
        optimizers: Any = self.optimizers()
        for optimizer in optimizers:
            self.toggle_optimizer(optimizer)
            optimizer.zero_grad()
            self.manual_backward(Probe.training_step(self, batch, batch_idx))
            optimizer.step()
            self.untoggle_optimizer(optimizer)

    def configure_optimizers(self) -> Any:
        return [SGD([self.head.weight], lr=0.1), torch.optim.Adam([self.head.bias], lr=0.1)]


class Sharpness(Optimizer):
    """SAM: the gradient of the worst weights around."""

    def __init__(self, parameters: Any) -> None:
        super().__init__(parameters, {})
        self.inner = SGD(self.param_groups, lr=0.3)

    def step(self, closure: Any = None) -> Any:
        loss = closure()
        parameters = self.param_groups[0]["params"]
        steps = [0.05 * each.grad for each in parameters]
        with torch.no_grad():
            for each, step in zip(parameters, steps, strict=True):
                each.add_(step)
        with torch.enable_grad():
            closure()
        with torch.no_grad():
            for each, step in zip(parameters, steps, strict=True):
                each.sub_(step)
        self.inner.step()
        return loss


class Sam(Probe):
    def configure_optimizers(self) -> Any:
        return Sharpness(self.parameters())


class Lbfgs(Probe):
    def configure_optimizers(self) -> Any:
        return torch.optim.LBFGS(self.parameters(), lr=0.5, max_iter=3)


class WarmsUp(Probe):
    def optimizer_step(self, epoch: int, batch_idx: int, optimizer: Any, optimizer_closure: Any = None) -> None:
        optimizer.step(closure=optimizer_closure)
        for group in optimizer.param_groups:
            group["lr"] = min(1.0, (self.trainer.global_step + 1) / 5)


class DoublesBackward(Probe):
    def backward(self, loss: Tensor, *_: Any, **__: Any) -> None:
        (2 * loss).backward()

    def on_after_backward(self) -> None:
        self.head.bias.grad = None


class WeightsAveraged(Probe):
    """Evaluates an exponential mean of its weights."""

    def on_fit_start(self) -> None:
        self.mean = [each.detach().clone() for each in self.parameters()]

    def on_train_batch_end(self, *_: Any) -> None:
        for mean, each in zip(self.mean, self.parameters(), strict=True):
            mean.lerp_(each.detach(), 0.2)

    def exchange(self) -> None:
        for mean, each in zip(self.mean, self.parameters(), strict=True):
            kept = each.detach().clone()
            each.data.copy_(mean)
            mean.copy_(kept)

    def on_validation_start(self) -> None:
        self.exchange()

    def on_validation_end(self) -> None:
        self.exchange()


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


class ManualSchedule(Manual):
    """Steps its own schedule."""

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        super().training_step(batch, batch_idx)
        schedule: Any = self.lr_schedulers()
        schedule.step()

    def configure_optimizers(self) -> Any:
        optimizer = super().configure_optimizers()
        return [optimizer], [schedules.CosineAnnealingLR(optimizer, 8)]


class ChainedSchedules(Probe):
    def configure_optimizers(self) -> Any:
        optimizer = super().configure_optimizers()
        parts = [schedules.LinearLR(optimizer, 0.1, total_iters=3), schedules.ExponentialLR(optimizer, 0.8)]
        return [optimizer], [{"scheduler": schedules.SequentialLR(optimizer, parts, [3]), "interval": "step"}]


class Thaws(BaseFinetuning):
    """Freezes the bias for all of the one epoch."""

    def freeze_before_training(self, pl_module: Any) -> None:
        pl_module.head.bias.requires_grad = False

    def finetune_function(self, pl_module: Any, epoch: int, optimizer: Any) -> None: ...


MODULES: list[type[Probe]] = [
    each for each in list(vars().values()) if isinstance(each, type) and issubclass(each, Probe)
]

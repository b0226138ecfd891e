"""LightningModules such as users have: each uses one more of Lightning's ways with optimisers and schedules."""

from typing import Any

import torch
from lightning.pytorch import LightningModule
from torch import Tensor, nn
from torch.nn import functional
from torch.optim import SGD, Optimizer
from torch.optim import lr_scheduler as schedules


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

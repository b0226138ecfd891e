"""What the tasks that train one model have in common: the trainer's options, and what of them decides the result."""

from __future__ import annotations

from typing import Any

from lightning.pytorch import Trainer

from callbacks.dashboard import DashboardLogger
from cli.task_cli import require_protocol
from output.errors import UserError

DEFAULTS: dict[str, Any] = {
    "accelerator": "auto",
    "devices": 1,
    "deterministic": "warn",
    "num_sanity_val_steps": 0,
    "enable_checkpointing": False,
    "enable_model_summary": False,
    "enable_autolog_hparams": False,
    "logger": False,
}
ALL = "every epoch feeds all photos; max_epochs and the data set's own options choose how much is trained"
PROTOCOL_OPTIONS: dict[str, tuple[tuple[Any, ...], str]] = {
    "max_steps": ((-1,), "trainer.max_epochs chooses how long is trained"),
    "min_epochs": ((None,), "trainer.max_epochs chooses how long is trained"),
    "min_steps": ((None,), "trainer.max_epochs chooses how long is trained"),
    "fast_dev_run": ((False,), ALL),
    "overfit_batches": ((0.0, 0), ALL),
    "limit_train_batches": ((None, 1.0), ALL),
    "limit_val_batches": ((None, 1.0), ALL),
    "val_check_interval": ((None, 1.0), "the accuracy is measured after an epoch"),
    "check_val_every_n_epoch": ((1,), "the accuracy is measured after every epoch"),
    "reload_dataloaders_every_n_epochs": ((0,), ALL),
    "num_sanity_val_steps": ((0,), "the accuracy is measured after an epoch"),
    "strategy": (("auto",), "one model is trained on one device"),
    "plugins": ((None,), "a plugin may change the arithmetic of what is trained"),
    "barebones": ((False,), "leave it at False"),
    "enable_checkpointing": ((False,), "training keeps a checkpoint of its own, and goes on from it"),
}
PRECISIONS = ("32-true", "bf16-mixed")
# What decides how is trained.
DECIDING = ("max_epochs", "precision", "gradient_clip_val", "gradient_clip_algorithm", "accumulate_grad_batches")


def require_training(trainer: Trainer, options: Any) -> None:  # noqa: ANN401 - a namespace of options
    """Refuse options of the trainer by which not all epochs would be trained on all photos.

    Args:
        trainer: The trainer.
        options: Its options as given.

    Raises:
        UserError: One of them is such.
    """
    if not isinstance(options["max_epochs"], int) or options["max_epochs"] < 1:
        raise UserError(f"trainer.max_epochs: {options['max_epochs']} given; say how many epochs, 1 or more")
    if trainer.precision not in PRECISIONS:
        raise UserError(f"trainer.precision: {trainer.precision} given; take {' or '.join(PRECISIONS)}")
    if any(isinstance(each, DashboardLogger) for each in trainer.loggers):
        raise UserError("trainer.logger: DashboardLogger mirrors comparisons; give false, or a logger of Lightning's")
    require_protocol(trainer, options, PROTOCOL_OPTIONS, "one model")


def deciding(trainer: Trainer, options: Any) -> dict[str, Any]:  # noqa: ANN401 - a namespace of options
    """Give what of the trainer's options decides the result, as JSON values.

    Args:
        trainer: The trainer.
        options: Its options as given.
    """
    chosen = {name: options[name] for name in DECIDING}
    return {**chosen, "precision": trainer.precision, "device": trainer.strategy.root_device.type}

"""Which of the trainer's options and callbacks a task allows; all others would change what is measured."""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any

from lightning.pytorch import Callback, Trainer
from lightning.pytorch import callbacks as lightning_callbacks

from headstart.callbacks.own_module_training import TUNERS, ModuleLog
from headstart.output.errors import UserError

# Options that say where a run is computed and how it is shown; every other option keeps its default.
ALLOWED = {
    "accelerator",
    "benchmark",
    "callbacks",
    "default_root_dir",
    "detect_anomaly",
    "deterministic",
    "devices",
    "enable_autolog_hparams",
    "enable_model_summary",
    "enable_progress_bar",
    "gradient_clip_algorithm",
    "inference_mode",
    "limit_predict_batches",
    "limit_test_batches",
    "log_every_n_steps",
    "logger",
    "max_time",
    "model_registry",
    "num_nodes",
    "precision",
    "profiler",
    "sync_batchnorm",
    "use_distributed_sampler",
}
# Options that change what LightningModules of the user's own learn; the suite's methods run with their defaults.
TRAINING = frozenset(
    {"accumulate_grad_batches", "callbacks", "gradient_clip_algorithm", "gradient_clip_val", "precision"}
)
# Other values that mean the same as the default.
EQUIVALENT: dict[str, tuple[Any, ...]] = {
    "gradient_clip_val": (0, 0.0),
    "limit_train_batches": (1.0,),
    "limit_val_batches": (1.0,),
    "min_epochs": (0, 1),
    "overfit_batches": (0,),
    "val_check_interval": (1.0,),
}
# Lightning's callbacks that observe training and do not change it.
OBSERVERS = (
    lightning_callbacks.BasePredictionWriter,
    lightning_callbacks.DeviceStatsMonitor,
    lightning_callbacks.LambdaCallback,
    lightning_callbacks.LearningRateMonitor,
    lightning_callbacks.OnExceptionCheckpoint,
    lightning_callbacks.RichModelSummary,
    lightning_callbacks.RichProgressBar,
    lightning_callbacks.ThroughputMonitor,
    lightning_callbacks.Timer,
    lightning_callbacks.TQDMProgressBar,
)


def require_allowed(options: dict[str, Any], defaults: dict[str, Any], chosen: frozenset[str]) -> None:
    """Raise an error for options that would change what is measured.

    Args:
        options: The trainer's options.
        defaults: Their values in the task.
        chosen: Options that the task allows besides `ALLOWED`.

    Raises:
        UserError: An option has another value than its default.
    """
    for name, value in options.items():
        # True equals 1 in Python, and 1.0 of the batches is all of them where 1 is one of them.
        values = (defaults[name], *EQUIVALENT.get(name, ()))
        is_default = any(type(value) is type(same) and value == same for same in values)
        if name not in ALLOWED | chosen and not is_default:
            raise UserError(f"trainer.{name}: {value} would change the protocol; leave it at {defaults[name]}")


def callbacks_in(options: Any) -> list[Any]:  # noqa: ANN401 - a mapping, or a namespace
    """Return the callbacks among a trainer's options, of which there may be one, several or none."""
    callbacks = options.get("callbacks") or []
    return callbacks if isinstance(callbacks, list) else [callbacks]


def own_trainer(options: Mapping[str, Any], callbacks: Sequence[Callback]) -> Trainer:
    """Build the trainer of a LightningModule for one ordering.

    Args:
        options: The options of the run's trainer, of which it gets copies.
        callbacks: The suite's callbacks, after those of the options.

    Raises:
        UserError: A callback of the options would train on samples ahead of the stream.
    """
    copied = deepcopy({name: value for name, value in options.items() if name != "logger"})
    callbacks_of_options = callbacks_in(copied)
    for callback in callbacks_of_options:
        if isinstance(callback, TUNERS):
            raise UserError(f"trainer.callbacks: {type(callback).__name__} would change the protocol; leave it out")
    if (batches := copied.get("accumulate_grad_batches", 1)) < 1:
        raise UserError(f"trainer.accumulate_grad_batches: expected a whole number from 1, not {batches}")
    silent = {"enable_progress_bar": False, "enable_model_summary": False, "max_time": None, "logger": ModuleLog()}
    return Trainer(**{**copied, **silent, "callbacks": [*callbacks_of_options, *callbacks]})


def require_observers(trainer: Trainer) -> None:
    """Raise an error for devices and callbacks that would change what is measured.

    Raises:
        UserError: The trainer runs in several processes, or a callback of Lightning's changes the training.
    """
    observing = {kind for each in OBSERVERS for kind in each.__mro__}
    for callback in trainer.callbacks:  # type: ignore[attr-defined]
        kinds = [kind for kind in type(callback).__mro__ if kind.__module__.startswith("lightning.pytorch.callbacks.")]
        if not observing.issuperset(kinds):
            raise UserError(f"trainer.callbacks: {type(callback).__name__} would change the protocol; leave it out")
    if trainer.world_size != 1:
        raise UserError(f"trainer.devices: {trainer.world_size} processes requested; a run has one device")

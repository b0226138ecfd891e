"""A LightningModule of the user's own as a method."""

import math
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import replace
from functools import partial
from inspect import isclass, signature
from typing import Any

import numpy as np
import torch
from lightning.fabric.utilities.exceptions import MisconfigurationException
from lightning.pytorch import LightningModule

# There is no public function that reads all forms of what `configure_optimizers` may return.
from lightning.pytorch.core.optimizer import _configure_optimizers, _configure_schedulers_automatic_opt
from lightning.pytorch.utilities.types import LRSchedulerConfig
from torch import Tensor, nn
from torch.optim import Optimizer
from torchmetrics import Metric

from headstart.modules.global_generators import GlobalGenerators
from headstart.modules.method import Method, Start
from headstart.modules.method_contract import HOOKS
from headstart.modules.networks.trainable_backbone import folded
from headstart.modules.stream import Stream
from headstart.output.errors import UserError, reason_of

NEEDED = ("training_step", "forward", "configure_optimizers")
UNUSED = ("validation", "test", "predict")
OTHER_HOOKS = (
    "backward",
    "clip_gradients",
    "optimizer_zero_grad",
    "prepare_data",
    "setup",
    "teardown",
    "train_dataloader",
    "transfer_batch_to_device",
)
# torch's message where batch norm gets one value of each channel.
NO_STATISTICS = "Expected more than 1 value per channel"


class OwnLightningModule(Method):
    """Train a LightningModule as Lightning would: one for each ordering, and one step of its optimiser per batch.

    It is built from a backbone and the number of classes. It may train the backbone, which is the identity on frozen
    features and has the number of its features as `width`. Its `training_step((inputs, labels), batch_idx)` returns the
    loss, for inputs `[batch, ...]` and labels `[batch]`. Its `forward(inputs)` returns logits `[samples, classes]`, in
    evaluation mode. Its `configure_optimizers` returns one optimiser in any of Lightning's forms, with or without
    schedulers. Schedulers of both intervals count batches, since the stream is passed once. Values that it logs go to
    the loggers with the method's name, except those that `forward` logs where it predicts. `device` and `trainer` are
    the comparison's, with these exceptions: `optimizers()`, `lr_schedulers()` and the numbers of steps (`global_step`,
    `trainer.num_training_batches`, `trainer.estimated_stepping_batches`). These are those of the whole stream. Since
    schedules may depend on the number of steps, stored traces serve one sample limit alone.

    The comparison evaluates it by `forward`, and ignores its steps and hooks for validation, testing and prediction.
    Other hooks, manual optimisation and schedulers that wait for a validation metric would have no effect, so they
    raise an error.

    Args:
        module: The class, or a function that returns a module, and its further arguments.
    """

    def __init__(self, module: Callable[[nn.Module, int], LightningModule]) -> None:
        super().__init__()
        self.make_module = module

    def begin(self, start: Start) -> None:
        """Build a module for every ordering; its random numbers follow from the seed and the ordering's number.

        Raises:
            UserError: It cannot be built, is no LightningModule, or defines a hook that is never called.
        """
        # The method itself needs no copy of the backbone.
        super().begin(replace(start, backbone=None))
        self.start = start
        self.batches = 0
        seeds = [np.random.SeedSequence((start.seed, number)).generate_state(1) for number in start.numbers]
        self.generators = [GlobalGenerators(int(seed[0]), start.device) for seed in seeds]
        self.own = nn.ModuleList(map(self._build, self.generators))

    def _build(self, generators: GlobalGenerators) -> LightningModule:
        backbone = nn.Identity() if self.start.backbone is None else deepcopy(self.start.backbone)
        backbone.width = self.start.features  # type: ignore[assignment]
        with generators.in_use():
            module: LightningModule = _build_module(self.make_module, backbone, self.start.classes)
        _require_usable(module)
        return module.eval()

    def build_optimizers(self) -> list[Optimizer]:
        """Create the optimiser of every module.

        Raises:
            UserError: It returns none or several, or one that cannot take steps here.
        """
        self.stepped: list[Optimizer] = []
        self.schedules: list[list[LRSchedulerConfig]] = []
        for module, generators in zip(self.own, self.generators, strict=True):
            assert isinstance(module, LightningModule)
            module.trainer = self._trainer_of([])
            with generators.in_use():
                optimizer, schedules = _read_optimizers(module)
            self.stepped.append(optimizer)
            self.schedules.append(schedules)
        return self.stepped

    def adapt(self, inputs: Tensor, labels: Tensor) -> None:
        """Perform one step of every module.

        Raises:
            UserError: A module returns no loss, or logits of another number of classes, or its batch norm has one
                sample.
        """
        if not self.batches:
            self._require_classes(inputs[:, :1])

        logged: dict[str, list[Tensor]] = defaultdict(list)
        for index, (generators, *batch) in enumerate(zip(self.generators, inputs, labels, strict=True)):
            optimizer = self.stepped[index]
            with generators.in_use(), self._attached(index, logged) as module:
                loss = _loss_of(module, tuple(batch), self.batches)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            for schedule in self.schedules[index]:
                if (self.batches + 1) % schedule.frequency == 0:
                    schedule.scheduler.step()  # type: ignore[call-arg]

        for name, values in logged.items():
            self.log(name, torch.stack(values))
        self.batches += 1

    def forward(self, inputs: Tensor) -> Tensor:
        """Stack the logits of the modules."""
        sample_dims = 1 if self.start.backbone is None else self.start.sample_dims
        parts = inputs if inputs.dim() > sample_dims + 1 else [inputs] * len(self.own)
        return torch.stack([self._predict(index, part) for index, part in enumerate(parts)])

    def _predict(self, index: int, inputs: Tensor) -> Tensor:
        with self._attached(index) as module:
            logits: Tensor = module(inputs)
        return logits

    def _trainer_of(self, schedules: list[LRSchedulerConfig]) -> Any:  # noqa: ANN401 - it stands in for a trainer
        return _TrainerOfOne(self._trainer, self.start.max_samples, self.batches, schedules)

    @contextmanager
    def _attached(self, index: int, logged: dict[str, list[Tensor]] | None = None) -> Iterator[LightningModule]:
        """Attach a module to a trainer that seems to train this very module, as Lightning's own functions need it.

        Args:
            index: Index of the ordering.
            logged: Collects the values that a module logs in training mode; None for evaluation mode.
        """
        module, optimizer = self.own[index], self.stepped[index]
        assert isinstance(module, LightningModule)

        def log(name: str, value: Any, *_: Any, **__: Any) -> None:  # noqa: ANN401
            if logged is not None:
                value = value.compute() if isinstance(value, Metric) else value
                logged[name].append(torch.as_tensor(value, device=self.device).detach().float())

        before = module._trainer
        module.trainer = self._trainer_of(self.schedules[index])
        module.log = log  # type: ignore[method-assign]
        module.optimizers = lambda *_, **__: optimizer  # type: ignore[method-assign, assignment]
        module.train(logged is not None)
        try:
            yield module
        finally:
            module.eval()
            del module.log, module.optimizers
            module._trainer = before

    def _require_classes(self, inputs: Tensor) -> None:
        for index, (module, sample) in enumerate(zip(self.own, inputs, strict=True)):
            with folded(module):
                logits = self._predict(index, sample)
            result = list(logits.shape) if isinstance(logits, Tensor) else type(logits).__name__
            if result != [1, self.start.classes]:
                raise UserError(
                    f"module: forward of {type(module).__name__} returns {result} for one sample; it must return "
                    f"logits {[1, self.start.classes]}, one for each class"
                )


class _TrainerOfOne:
    """The comparison's trainer, as if it trained one module alone on the whole stream.

    Args:
        trainer: The comparison's trainer.
        max_samples: Samples of the whole stream.
        global_step: Steps that the module has taken.
        schedules: Its schedules.
    """

    def __init__(self, trainer: Any, max_samples: int, global_step: int, schedules: list[LRSchedulerConfig]) -> None:  # noqa: ANN401
        self.trainer = trainer
        self.max_samples = max_samples
        self.global_step = global_step
        self.lr_scheduler_configs = schedules

    @property
    def num_training_batches(self) -> int:
        stream: Stream = self.trainer.datamodule
        return math.ceil(self.max_samples / stream.batch_size)

    estimated_stepping_batches = num_training_batches

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        return getattr(self.trainer, name)


def _build_module(make: Callable[[nn.Module, int], LightningModule], backbone: nn.Module, classes: int) -> Any:  # noqa: ANN401 - of the user's code
    """Build a module; raise a UserError if the user's code needs other arguments, or fails."""
    function: Callable[..., object] = make
    if isinstance(make, partial):
        # The parser binds a class to a function of its own.
        kinds = [value for value in make.args if isclass(value) and issubclass(value, LightningModule)]
        function = partial(kinds[0], **make.keywords) if kinds else make
    name = getattr(getattr(function, "func", function), "__name__", type(function).__name__)

    try:
        signature(function).bind(backbone, classes)
    except (TypeError, ValueError) as error:
        raise UserError(
            f"module: {name} must take the backbone and the number of classes, in this order, and need nothing else "
            f"({error})"
        ) from error

    try:
        return make(backbone, classes)
    except (UserError, MemoryError, torch.OutOfMemoryError):
        raise
    except Exception as error:  # code of the user's own
        raise UserError(
            f"module: {name} failed with a backbone and {classes} classes: {type(error).__name__}: {reason_of(error)}"
        ) from error


def _require_usable(module: object) -> None:
    """Check that a module is trained by `training_step` alone, and defines no hook that is never called."""
    kind = type(module)
    if not isinstance(module, LightningModule):
        raise UserError(f"module: returns a {kind.__name__}; it must return a lightning.pytorch.LightningModule")

    if not module.automatic_optimization:
        raise UserError(
            f"module: {kind.__name__} sets automatic_optimization to False; only automatic optimisation is "
            "supported, otherwise write a headstart.modules.Method"
        )

    # Lightning's own versions of these do nothing, or raise an error.
    missing = [name for name in NEEDED if getattr(kind, name) is getattr(LightningModule, name)]
    if missing:
        raise UserError(f"module: {kind.__name__} does not define {' and '.join(missing)}")

    allowed = [name for name in HOOKS if name in NEEDED or any(part in name for part in UNUSED)]
    for name in sorted({*HOOKS, *OTHER_HOOKS} - {*allowed}):
        if getattr(kind, name) is not getattr(LightningModule, name):
            raise UserError(
                f"module: {kind.__name__} defines {name}, which is never called; do it in training_step, or write a "
                "headstart.modules.Method"
            )


def _read_optimizers(module: LightningModule) -> tuple[Optimizer, list[LRSchedulerConfig]]:
    name = type(module).__name__
    configured = module.configure_optimizers()
    try:
        optimizers, schedulers, monitor = _configure_optimizers(configured)  # type: ignore[arg-type]
        schedules = _configure_schedulers_automatic_opt(schedulers, monitor)
    except MisconfigurationException as error:
        reason = " ".join(str(error).split())
        raise UserError(f"module: Lightning rejects the result of configure_optimizers of {name}: {reason}") from error

    if len(optimizers) != 1 or isinstance(optimizers[0], torch.optim.LBFGS):
        names = ", ".join(type(optimizer).__name__ for optimizer in optimizers) or "none"
        raise UserError(
            f"module: configure_optimizers of {name} returns {names}; it must return one optimiser, which steps "
            "without computing the loss again"
        )

    if any(schedule.reduce_on_plateau for schedule in schedules):
        raise UserError(
            f"module: configure_optimizers of {name} returns a ReduceLROnPlateau, which waits for a validation "
            "metric; use a scheduler that counts steps"
        )
    return optimizers[0], schedules


def _loss_of(module: LightningModule, batch: tuple[Tensor, ...], number: int) -> Tensor:
    try:
        result = module.training_step(batch, number)
    except ValueError as error:
        if len(batch[1]) > 1 or NO_STATISTICS not in str(error):
            raise
        raise UserError(
            f"data.batch_size: leaves a batch of one sample, of which batch norm in {type(module).__name__} has no "
            "statistics; give 2 or more, and a data.max_samples that leaves no sample over"
        ) from error

    loss = result.get("loss") if isinstance(result, dict) else result
    if not isinstance(loss, Tensor):
        raise UserError(
            f"module: training_step of {type(module).__name__} returns a {type(result).__name__}; it must return the "
            "loss: a tensor, or a dictionary with the key 'loss'"
        )
    return loss

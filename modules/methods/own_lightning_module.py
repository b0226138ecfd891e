"""A LightningModule of the user's own as a method."""

from __future__ import annotations

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

# There is no public function that reads all forms of what `configure_optimizers` may give.
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
# What torch says of batch norm that is given one value of each channel.
NO_STATISTICS = "Expected more than 1 value per channel"


class OwnLightningModule(Method):
    """Train a LightningModule as Lightning would: one for each ordering, and one step of its optimiser per batch.

    It is made from a backbone that it may train (the identity on frozen features), whose `width` is the number of
    features that it gives, and the number of classes. Its `training_step((inputs, labels), batch_idx)` gives the loss,
    inputs being `[batch, ...]` and labels `[batch]`; its `forward(inputs)` gives logits `[samples, classes]`, in
    evaluation mode; its `configure_optimizers` gives one optimiser, with schedulers if need be, in any of Lightning's
    forms. Schedulers of both intervals count batches, since the stream is passed once. What it logs goes to the loggers
    with the method's name, but for what `forward` logs where it predicts. `device` and `trainer` are the comparison's,
    but the numbers of steps (`global_step`, `trainer.num_training_batches`, `trainer.estimated_stepping_batches`),
    which are those of the whole stream, `optimizers()` and `lr_schedulers()`. Since schedules may ask for the number of
    steps, stored traces serve one sample limit alone.

    What it defines for validation, testing and prediction is not used: the comparison evaluates it by `forward`. Other
    hooks, manual optimisation, and a scheduler that waits for a validation metric are refused, because they would do
    nothing without a word.

    Args:
        module: The class, or a function that gives a module, and its further arguments.
    """

    def __init__(self, module: Callable[[nn.Module, int], LightningModule]) -> None:
        super().__init__()
        self.make_module = module

    def begin(self, start: Start) -> None:
        """Make a module for every ordering; what it draws follows from the seed and the ordering's number.

        Raises:
            UserError: It cannot be made, is none, or defines what is never called.
        """
        # Each module has the only copy of its backbone.
        super().begin(replace(start, backbone=None))
        self.start = start
        self.batches = 0
        seeds = [np.random.SeedSequence((start.seed, number)).generate_state(1) for number in start.numbers]
        self.generators = [GlobalGenerators(int(seed[0]), start.device) for seed in seeds]
        self.own = nn.ModuleList(map(self._make, self.generators))

    def _make(self, generators: GlobalGenerators) -> LightningModule:
        backbone = nn.Identity() if self.start.backbone is None else deepcopy(self.start.backbone)
        backbone.width = self.start.features  # type: ignore[assignment]
        with generators.in_use():
            module = _call(self.make_module, backbone, self.start.classes)
        _require_usable(module)
        return module.eval()

    def build_optimizers(self) -> list[Optimizer]:
        """Ask every module for its optimiser.

        Raises:
            UserError: It gives none or several, or what cannot be stepped here.
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
        """Let every module take one step.

        Raises:
            UserError: A module gives no loss, or logits of another number of classes, or its batch norm has one sample.
        """
        if not self.batches:
            self._require_classes(inputs[:, :1])
        logged: dict[str, list[Tensor]] = defaultdict(list)
        for place, (generators, *batch) in enumerate(zip(self.generators, inputs, labels, strict=True)):
            optimizer = self.stepped[place]
            with generators.in_use(), self._in_training(place, logged) as module:
                loss = _loss_of(module, tuple(batch), self.batches)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            for schedule in self.schedules[place]:
                if (self.batches + 1) % schedule.frequency == 0:
                    schedule.scheduler.step()  # type: ignore[call-arg]
        for name, values in logged.items():
            self.log(name, torch.stack(values))
        self.batches += 1

    def forward(self, inputs: Tensor) -> Tensor:
        """Stack the logits of the modules."""
        sample_dims = 1 if self.start.backbone is None else self.start.sample_dims
        each = inputs if inputs.dim() > sample_dims + 1 else [inputs] * len(self.own)
        return torch.stack([self._predict(place, part) for place, part in enumerate(each)])

    def _predict(self, place: int, inputs: Tensor) -> Tensor:
        with self._attached(place, log=lambda *_, **__: None) as module:
            logits: Tensor = module(inputs)
        return logits

    def _trainer_of(self, schedules: list[LRSchedulerConfig]) -> Any:  # noqa: ANN401 - it is not quite a trainer
        return _TrainerOfOne(self._trainer, self.start.max_samples, self.batches, schedules)

    @contextmanager
    def _attached(self, place: int, log: Callable[..., None]) -> Iterator[LightningModule]:
        """Let a module run as if a trainer ran this very module, which is what Lightning's own functions need."""
        module, optimizer = self.own[place], self.stepped[place]
        assert isinstance(module, LightningModule)
        before = module._trainer
        module.trainer = self._trainer_of(self.schedules[place])
        module.log = log  # type: ignore[method-assign]
        module.optimizers = lambda *_, **__: optimizer  # type: ignore[method-assign, assignment]
        try:
            yield module
        finally:
            del module.log, module.optimizers
            module._trainer = before

    @contextmanager
    def _in_training(self, place: int, logged: dict[str, list[Tensor]]) -> Iterator[LightningModule]:
        """Put a module into training mode, and note what it logs."""

        def log(name: str, value: Any, *_: Any, **__: Any) -> None:  # noqa: ANN401
            value = value.compute() if isinstance(value, Metric) else value
            logged[name].append(torch.as_tensor(value, device=self.device).detach().float())

        with self._attached(place, log) as module:
            module.train()
            try:
                yield module
            finally:
                module.eval()

    def _require_classes(self, inputs: Tensor) -> None:
        for place, (module, one) in enumerate(zip(self.own, inputs, strict=True)):
            with folded(module):
                logits = self._predict(place, one)
            found = list(logits.shape) if isinstance(logits, Tensor) else type(logits).__name__
            if found != [1, self.start.classes]:
                raise UserError(
                    f"module: forward of {type(module).__name__} gives {found} for one sample; it must give logits "
                    f"{[1, self.start.classes]}, one for each class"
                )


class _TrainerOfOne:
    """The comparison's trainer, as it would be of a module that is trained alone, on the whole stream at once.

    So a run that goes on, of which only the rest of the stream is fed, counts its steps as an unbroken one does.

    Args:
        trainer: The comparison's.
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

    @property
    def estimated_stepping_batches(self) -> int:
        return self.num_training_batches

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        return getattr(self.trainer, name)


def _call(make: Callable[[nn.Module, int], LightningModule], backbone: nn.Module, classes: int) -> LightningModule:
    """Make a module; a UserError where that takes other arguments, or fails."""
    made = _without_parser(make)
    name = getattr(getattr(made, "func", made), "__name__", type(made).__name__)
    try:
        signature(made).bind(backbone, classes)
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


def _without_parser(make: Callable[..., LightningModule]) -> Callable[..., LightningModule]:
    """Give the class with its further arguments that the parser has bound to a function of its own; others as is."""
    given = make.args if isinstance(make, partial) else ()
    kinds = [each for each in given if isclass(each) and issubclass(each, LightningModule)]
    return partial(kinds[0], **make.keywords) if kinds else make  # type: ignore[attr-defined]


def _require_usable(module: object) -> None:
    """Check that a module is one that is trained as Lightning trains it, by nothing that is not called here."""
    kind = type(module)
    if not isinstance(module, LightningModule):
        raise UserError(f"module: gives a {kind.__name__}; it must give a lightning.pytorch.LightningModule")
    if not module.automatic_optimization:
        raise UserError(
            f"module: {kind.__name__} sets automatic_optimization to False; only what Lightning itself would optimise "
            "takes part, else write a headstart.modules.Method"
        )
    missing = [name for name in NEEDED if getattr(kind, name) is getattr(LightningModule, name)]
    if missing:
        raise UserError(f"module: {kind.__name__} does not define {' and '.join(missing)}")
    used_elsewhere = [name for name in HOOKS if name in NEEDED or any(part in name for part in UNUSED)]
    for name in sorted({*HOOKS, *OTHER_HOOKS} - {*used_elsewhere}):
        if getattr(kind, name) is not getattr(LightningModule, name):
            raise UserError(
                f"module: {kind.__name__} defines {name}, which is never called; do it in training_step, or write a "
                "headstart.modules.Method"
            )


def _read_optimizers(module: LightningModule) -> tuple[Optimizer, list[LRSchedulerConfig]]:
    name = type(module).__name__
    given = module.configure_optimizers()
    try:
        optimizers, schedulers, monitor = _configure_optimizers(given)  # type: ignore[arg-type]
        schedules = _configure_schedulers_automatic_opt(schedulers, monitor)
    except MisconfigurationException as error:
        reason = " ".join(str(error).split())
        raise UserError(f"module: configure_optimizers of {name} gives what Lightning refuses: {reason}") from error
    if len(optimizers) != 1 or isinstance(optimizers[0], torch.optim.LBFGS):
        found = ", ".join(type(each).__name__ for each in optimizers) or "none"
        raise UserError(
            f"module: configure_optimizers of {name} gives {found}; it must give one optimiser, which steps without "
            "computing the loss again"
        )
    if any(schedule.reduce_on_plateau for schedule in schedules):
        raise UserError(
            f"module: configure_optimizers of {name} gives a ReduceLROnPlateau, which waits for a validation metric; "
            "take a scheduler that counts steps"
        )
    return optimizers[0], schedules


def _loss_of(module: LightningModule, batch: tuple[Tensor, ...], number: int) -> Tensor:
    try:
        given = module.training_step(batch, number)
    except ValueError as error:
        if len(batch[1]) > 1 or NO_STATISTICS not in str(error):
            raise
        raise UserError(
            f"data.batch_size: leaves a batch of one sample, of which batch norm in {type(module).__name__} has no "
            "statistics; give 2 or more, and a data.max_samples that leaves no sample over"
        ) from error
    loss = given.get("loss") if isinstance(given, dict) else given
    if not isinstance(loss, Tensor):
        raise UserError(
            f"module: training_step of {type(module).__name__} gives a {type(given).__name__}; it must give the loss, "
            "a tensor or a dictionary in which it is called 'loss'"
        )
    return loss

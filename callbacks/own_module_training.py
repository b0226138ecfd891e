"""LightningModules of the user's own are trained by Lightning: one `Trainer.fit` for each module and ordering."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MethodType
from typing import Any

import numpy as np
import torch
from lightning.fabric.utilities.exceptions import MisconfigurationException
from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.callbacks import BatchSizeFinder, Checkpoint, LearningRateFinder, Timer
from lightning.pytorch.loggers.logger import DummyLogger
from lightning.pytorch.utilities.model_helpers import is_overridden
from torch import Tensor
from torch.utils.data import DataLoader

from headstart.callbacks.comparison_run import ComparisonRun
from headstart.callbacks.sample_efficiency import SampleEfficiency
from headstart.callbacks.training import continue_timers, raising_signals
from headstart.datamodules.sample_stream import SampleStream
from headstart.modules.arithmetic import set_float32_arithmetic
from headstart.modules.comparison import Comparison
from headstart.modules.global_generators import GlobalGenerators
from headstart.modules.memory_errors import explain_memory_errors
from headstart.modules.method_contract import count_predictions, prefix_method_errors, require_logits
from headstart.modules.networks.trainable_backbone import folded
from headstart.modules.own_module import generators_of
from headstart.output.errors import UserError

# Callbacks of Lightning that train ahead on samples of later batches, or change the size of a batch.
TUNERS = (BatchSizeFinder, LearningRateFinder)


def train_module(
    trainer: Trainer, comparison: Comparison, stream: SampleStream, run: ComparisonRun, method: int, ordering: int
) -> None:
    """Train a module on one ordering, and store its trace.

    Args:
        trainer: The comparison's trainer, whose time limit holds for all modules together.
        comparison: The methods.
        stream: The data, set up.
        run: The run, whose traces are open.
        method: Index of the module among the methods.
        ordering: Index of the ordering.

    Raises:
        UserError: The module cannot be built, trained or evaluated.
        KeyboardInterrupt: The run was interrupted.
        Terminated: It was terminated.
    """
    criterion, name = run.criterion, comparison.names[method]
    traces = criterion.traces
    # As in the comparison, an ordering ends when all of its methods have met the criterion.
    minimum = 0 if criterion.stops else int(traces.lengths[:, ordering].max())
    trace = np.zeros_like(traces.missing)
    trace[method, ordering] = True
    traces.begin(trace)

    stream.feed([stream.orderings[ordering]])
    start, timers = stream.start(), [each for each in trainer.callbacks if isinstance(each, Timer)]  # type: ignore[attr-defined]
    evaluations = ModuleEvaluations(name, comparison, criterion, stream, minimum, logs=not ordering)
    set_float32_arithmetic()
    memory = explain_memory_errors(f"data.batch_size: a batch of {name}", "lower data.batch_size")
    with prefix_method_errors(name), memory, generators_of(start).in_use(), _restored_dtype():
        module = comparison.lightning_modules[name].build(start)
        if not is_overridden("validation_step", module):
            module.validation_step = MethodType(_no_step, module)  # type: ignore[method-assign]
        continue_timers(timers)
        own_trainer = run.own_trainer([evaluations, *timers])
        # Those of the user count for one ordering.
        every = [each for each in own_trainer.callbacks if isinstance(each, Timer)]  # type: ignore[attr-defined]
        try:
            with raising_signals(own_trainer):
                own_trainer.fit(module, batches_of(stream), evaluations.loader())
        except MisconfigurationException as error:
            raise UserError(" ".join(str(error).split())) from error

        if not evaluations.are_over and any((each.time_remaining() or 0) < 0 for each in every):
            criterion.cut_off_because = "an option of the trainer stopped it early"
            return
        evaluations.repeat_last()
    traces.finish()
    criterion.look_up()


@contextmanager
def _restored_dtype() -> Iterator[None]:
    """Restore torch's default type after the code of a module, which may set another."""
    before = torch.get_default_dtype()
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def batches_of(stream: SampleStream) -> DataLoader[Any]:
    """Return a loader of the batches of the one ordering that a stream feeds: inputs and labels, without an axis of it.

    Args:
        stream: The data.
    """
    every = stream.train_dataloader()

    def of_one(batch: Any) -> tuple[Tensor, Tensor]:  # noqa: ANN401 - what the stream's own function takes
        inputs, labels, _ = every.collate_fn(batch)
        return inputs[0], labels[0]

    return DataLoader(every.dataset, batch_size=None, collate_fn=of_one)


class ModuleEvaluations(Callback):
    """Counts a module's correct predictions in Lightning's validation loop, and ends training when it is time.

    Counting neither draws from the generators that training draws from nor changes a mode, so that a module without
    `validation_step` learns as if it were not evaluated.

    Args:
        name: Name of the module among the methods.
        comparison: The methods.
        criterion: The criterion, which follows the traces.
        stream: The data, which feeds one ordering.
        least: Number of evaluations before which training does not end.
        logs: Whether what the module logs goes to the loggers of the run; that of the first ordering does.
    """

    def __init__(
        self,
        name: str,
        comparison: Comparison,
        criterion: SampleEfficiency,
        stream: SampleStream,
        minimum: int,
        logs: bool,
    ) -> None:
        self.name, self.criterion, self.minimum, self.logs = name, criterion, minimum, logs
        self.chunks = list(stream.val_dataloader().dataset[0])
        self.class_weights = comparison.class_weights
        self.classes = stream.start().classes
        self.generators = GlobalGenerators(0, stream.start().device)
        self.batches = self.made = self.streak = 0
        self.has_met = False
        self.counts: Tensor | None = None

    def loader(self) -> DataLoader[Any]:
        """Return a loader of copies of the validation set's chunks, which draws from a generator of its own."""
        chunks: Any = self.chunks
        return DataLoader(chunks, batch_size=None, collate_fn=_copy, generator=torch.Generator())

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Refuse callbacks from the module's own `configure_callbacks` that the options may not have, either."""
        for callback in trainer.callbacks:  # type: ignore[attr-defined]
            if isinstance(callback, (*TUNERS, Checkpoint)):
                name = type(callback).__name__
                raise UserError(f"configure_callbacks: {name} would change the protocol, or write files; leave it out")

    def on_train_batch_start(self, trainer: Trainer, pl_module: LightningModule, batch: object, batch_idx: int) -> None:
        """Count the batches."""
        self.batches = batch_idx + 1

    def on_validation_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Start the counts of one evaluation."""
        self.counts = torch.zeros(2, 1, dtype=torch.int64, device=pl_module.device)

    def on_validation_batch_start(
        self, trainer: Trainer, pl_module: LightningModule, batch: object, batch_idx: int, dataloader_idx: int = 0
    ) -> None:
        """Copy the inputs of one chunk as the module's hooks left them: its `validation_step` may change them."""
        self.inputs = _inputs_of(pl_module, batch).clone()

    def on_validation_batch_end(
        self,
        trainer: Trainer,
        pl_module: LightningModule,
        outputs: object,
        batch: object,
        batch_idx: int,
        dataloader_idx: int = 0,
    ) -> None:
        """Count the predictions of one chunk."""
        labels = self.chunks[batch_idx][1].to(pl_module.device)
        weights = None if self.class_weights is None else self.class_weights.to(pl_module.device)
        logits = self._predict(trainer, pl_module, self.inputs, len(labels))[None]
        assert self.counts is not None
        self.counts = self.counts + count_predictions(logits, labels, weights)

    def _predict(self, trainer: Trainer, module: LightningModule, inputs: Tensor, samples: int) -> Tensor:
        """Return logits `[samples, classes]`. As in the comparison, mixed precision is of training alone."""
        exact = torch.autocast(module.device.type, enabled=False)
        with trainer.precision_plugin.val_step_context(), exact, self.generators.in_use(), folded(module):
            logits = module(inputs)
        return require_logits(logits, (samples, self.classes))

    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Record the counts if the protocol has an evaluation now, and end training when it is time."""
        evaluation, rest = divmod(self.batches, self.criterion.evaluate_every)
        # Lightning makes another one when training is stopped.
        if rest or evaluation == self.made:
            return
        self._record()
        if self.logs:
            assert isinstance(trainer.logger, ModuleLog)
            logged: dict[str, Any] = {**trainer.logger.values, **trainer.callback_metrics}
            values = {f"{self.name}/{key}": float(value) for key, value in logged.items()}
            self.criterion.logged.setdefault(self.made - 1, {}).update(values)
        if self.are_over:
            trainer.should_stop = True

    @property
    def are_over(self) -> bool:
        """Return whether all evaluations of the ordering are made."""
        grid = self.criterion.traces.grid
        has_ended = self.has_met and self.made >= self.minimum and not grid.to_limit
        return has_ended or self.made == len(grid.samples_seen)

    def _record(self) -> None:
        assert self.counts is not None
        traces, counts = self.criterion.traces, self.counts.numpy(force=True)
        traces.add(self.made, traces.running, counts[0], counts[1])
        self.made += 1
        self.streak = self.streak + 1 if counts[0, 0] >= traces.grid.required else 0
        self.has_met |= self.streak >= traces.grid.consecutive

    def repeat_last(self) -> None:
        """Repeat the last evaluation to the end of the ordering if the module has stopped its own training.

        Raises:
            UserError: There is none.
        """
        if self.counts is None:
            raise UserError("training ended before its first evaluation")
        while not self.are_over:
            self._record()

    def on_exception(self, trainer: Trainer, pl_module: LightningModule, exception: BaseException) -> None:
        """Record why the run was cut off."""
        self.criterion.cut_off(exception)


class ModuleLog(DummyLogger):
    """Keeps the last values that a module, or a callback such as LearningRateMonitor, has logged; ignores all else."""

    name, version = "module", "0"

    def __init__(self) -> None:
        super().__init__()
        self.values: dict[str, float] = {}

    def log_metrics(self, metrics: Mapping[str, float], step: int | None = None) -> None:
        """Keep values by their names."""
        self.values.update(metrics)


def _copy(chunk: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    """Return a copy of inputs and labels, which all modules share."""
    return chunk[0].clone(), chunk[1].clone()


def _inputs_of(module: LightningModule, batch: object) -> Tensor:
    inputs = batch[0] if isinstance(batch, list | tuple) else None
    if not isinstance(inputs, Tensor):
        raise UserError(
            f"a hook of {type(module).__name__} makes the batch a {type(batch).__name__}; evaluations need "
            "(inputs, labels)"
        )
    return inputs


def _no_step(module: LightningModule, batch: object, batch_idx: int) -> None:
    """Do nothing: the evaluation is counted beside the validation step of a module that has none."""

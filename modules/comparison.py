"""The comparison: one baseline and any number of custom methods, fed the same batches."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Protocol

import numpy as np
import torch
from lightning.pytorch import LightningModule
from numpy.typing import NDArray
from torch import Tensor, nn

from headstart.modules.arithmetic import set_float32_arithmetic
from headstart.modules.lazy_evaluation import Chooser, Chunks, LazyEvaluation
from headstart.modules.memory_errors import explain_memory_errors
from headstart.modules.method import Method, MethodStart
from headstart.modules.method_contract import (
    BASELINE,
    count_predictions,
    option_of,
    prefix_method_errors,
    require_finite,
    require_logits,
    require_method,
    require_name,
    weights_are_finite,
)
from headstart.modules.method_state import MethodState
from headstart.modules.networks.trainable_backbone import folded
from headstart.modules.own_module import MakeModule, OwnModule
from headstart.modules.shared_tensors import SharedTensors
from headstart.output.errors import UserError

# Estimated bytes that the states of all methods may take at once, and where training samples are too many for memory.
MEMORY, SCARCE_MEMORY = 4 * 2**30, 2**29
# Tensors of the size of a head that a method holds: weights, gradients, two moments, and buffers of steps and products.
HEADS = 10
# The remedies where memory does not suffice.
LOWER = "train fewer stages (data.trainable_from), or take a smaller crop or network"


class Stream(Protocol):
    """The part of a data module that a comparison uses."""

    batch_size: int
    max_samples: int
    orderings: Sequence[int]

    def start(self) -> MethodStart:
        """Return the start of every method."""

    def held(self) -> Mapping[str, Tensor]:
        """Return the other tensors of the stream and of the evaluation, by their names in messages."""

    def feed(self, numbers: Sequence[int]) -> None:
        """Choose the orderings that are fed."""


class Comparison(LightningModule):
    """Feed one stream of samples to a baseline and to custom methods, and count their correct predictions.

    After each validation pass `counted` returns the numbers of correct predictions.
    LightningModules are compared as well, but are trained by trainers of their own and not fed here.

    Args:
        baseline: The method that all others are compared with, a Method or a class of LightningModules.
        methods: The custom methods, likewise, by the name under which they appear in the results.

    Attributes:
        names: Names of the methods, the baseline first.
        lightning_modules: The LightningModules, by name.
        is_lightning_module: Whether a method is a LightningModule, `[methods]`.
        fed: The methods that are fed, by name, with the positions of their orderings among those that are fed.
        selected: Which orderings each method is fed, `[methods, orderings]`; all by default.
        chooser: Requests the evaluations that are made; by default, every one is.
        samples_seen: Samples that each ordering has fed so far.
        samples_validated: Validation samples of the present evaluation.
    """

    def __init__(self, baseline: Method | MakeModule, methods: dict[str, Method | MakeModule] | None = None) -> None:
        super().__init__()
        self.automatic_optimization = False

        custom = methods or {}
        for name in custom:
            require_name(name)
        self.methods, self.lightning_modules = nn.ModuleDict(), dict[str, OwnModule]()
        for name, method in {BASELINE: baseline, **custom}.items():
            if isinstance(method, Method):
                require_method(name, method)
                self.methods[name] = method
            else:
                with prefix_method_errors(name):
                    self.lightning_modules[name] = OwnModule(method)

        self.names = [BASELINE, *custom]
        self.is_lightning_module = np.array([name in self.lightning_modules for name in self.names])
        self._states = {name: MethodState(method) for name, method in self.methods.items()}  # type: ignore[arg-type]
        self.active_orderings: dict[str, Tensor | slice] = {}
        self.selected: NDArray[np.bool_] | None = None
        self.class_weights: Tensor | None
        self.register_buffer("class_weights", None, persistent=False)
        self.chooser: Chooser | None = None
        self._shared: SharedTensors | None = None
        self.samples_seen = self.samples_validated = 0

    def __iter__(self) -> Iterator[Method | type[LightningModule]]:
        """Iterate over the methods and the classes of LightningModules, the baseline first."""
        modules = self.lightning_modules
        return (modules[name].kind if name in modules else self._states[name].method for name in self.names)

    def orderings_at_once(self, start: MethodStart, methods: int) -> int:
        """Return how many orderings are fed side by side, so that the states of methods take a few gigabytes.

        The estimate is generous. It assumes that every method holds several heads, and a row of features for each
        sample or as many rows as there are features. The logits of one sample need less memory than these heads.

        Args:
            start: What the methods start from.
            methods: Number of methods.

        Returns:
            At least 1; 1 where each has a backbone of its own, or evaluations of its own.
        """
        if start.backbone is not None or self.chooser is not None:
            return 1
        # Where there is no matrix of all samples, methods copy those that they keep.
        is_copied = start.samples is None
        rows = start.max_samples if is_copied else min(start.max_samples, start.features)
        values = HEADS * (start.features + 1) * start.classes + rows * start.features
        is_scarce = is_copied and torch.device(start.device).type == "cpu"
        return max(1, (SCARCE_MEMORY if is_scarce else MEMORY) // (4 * values * methods))

    def weigh(self, class_weights: NDArray[np.int64]) -> None:
        """Set the weight of a correct prediction of each class, `[classes]`; by default, 1."""
        self.class_weights = torch.from_numpy(class_weights)

    def setup(self, stage: str) -> None:
        """Begin every method that is fed, from the same start."""
        self.stream: Stream = self.trainer.datamodule  # type: ignore[attr-defined]
        numbers = np.array(self.stream.orderings)
        is_selected = np.ones((len(self.names), len(numbers)), dtype=bool) if self.selected is None else self.selected
        is_fed = is_selected.any(0)
        self.stream.feed(numbers[is_fed].tolist())
        start = self.stream.start()

        # The checksums are those from before the first pass, so that later passes also find its changes.
        self._shared = self._shared or SharedTensors(start, self.stream.held())
        self.samples_seen, self.classes = 0, start.classes

        self.active_orderings = {}
        for name, state in self._states.items():
            # Methods that are not fed keep nothing of an earlier pass.
            state.reset(start)
            of_method = is_selected[self.names.index(name)]
            if of_method.any():
                self._begin(name, replace(start, ordering_numbers=numbers[of_method].tolist()))
                positions = np.flatnonzero(of_method[is_fed])
                self.active_orderings[name] = (
                    slice(None) if of_method[is_fed].all() else torch.from_numpy(positions).to(start.device)
                )
        self._lazy = {name: self._lazily(name, self.chooser) for name in self.active_orderings if self.chooser}

        self._columns = np.flatnonzero(is_fed)
        # As of `count_predictions`, `[2, methods, orderings that are fed]`.
        self.counts = torch.zeros(2, len(self.names), len(self._columns), dtype=torch.int64)

    def _begin(self, name: str, start: MethodStart) -> None:
        state = self._states[name]
        state.method.trainer = self.trainer
        with self._turn(name, f"the beginning of {type(state.method).__name__}"):
            state.method.begin(start)

    def _lazily(self, name: str, chooser: Chooser) -> LazyEvaluation:
        return LazyEvaluation(self.names.index(name), self._states[name], chooser, partial(self._count, name))

    def configure_optimizers(self) -> list[torch.optim.Optimizer]:
        """Collect the methods' optimisers, so that the trainer knows them."""
        for name in self.active_orderings:
            with self._turn(name, "its optimisers"):
                self._states[name].optimizers = self._states[name].method.build_optimizers()
        return [optimizer for name in self.active_orderings for optimizer in self._states[name].optimizers]

    def on_train_start(self) -> None:
        """Remember the states of the global generators."""
        self._fingerprints = {name: self._states[name].generators.fingerprint() for name in self.active_orderings}

    def drawing(self) -> list[str]:
        """Return the names of methods that have sampled from a global generator for several orderings in this pass."""
        if len(self._columns) == 1:
            return []
        generators = {name: self._states[name].generators for name in self._fingerprints}
        return [name for name, own in generators.items() if own.fingerprint() != self._fingerprints[name]]

    def stop(self, method: int) -> None:
        """Stop feeding a method in this pass.

        Args:
            method: Its index among the methods.
        """
        self.active_orderings.pop(self.names[method], None)

    @contextmanager
    def _turn(self, name: str, work: str) -> Iterator[None]:
        """Run a method as if it were alone: with its own generators, and settled arithmetic.

        Args:
            name: The method.
            work: What the method does, for the message where memory does not suffice.

        Raises:
            UserError: It finds a mistake, or memory does not suffice.
        """
        set_float32_arithmetic()
        with prefix_method_errors(name), explain_memory_errors(work, LOWER), self._states[name].generators.in_use():
            yield

    def training_step(self, batch: tuple[Tensor, Tensor, Tensor], batch_idx: int) -> None:
        """Adapt every method on the same batch: inputs, labels and positions among the training samples."""
        for name, positions in self.active_orderings.items():
            # Every method gets its own: torch does not know of changes through NumPy or `.data`.
            self._adapt(name, [part[positions].clone() for part in batch])
        self.samples_seen += batch[1].shape[1]

    def _adapt(self, name: str, batch: list[Tensor]) -> None:
        method = self._states[name].method
        batch_of = f"data.batch_size: a batch of {tuple(batch[0].shape)} for {name}"
        with self._turn(name, "a batch"), explain_memory_errors(batch_of, f"lower data.batch_size, {LOWER}"):
            method.indices = batch[2]
            method.adapt(*batch[:2])

    def on_validation_model_zero_grad(self) -> None:
        """Leave gradients alone, which Lightning would clear: a method may gather them over several batches."""

    def on_validation_epoch_start(self) -> None:
        """Start the counts of one evaluation."""
        self.counts = torch.zeros_like(self.counts, device=self.device)
        self.samples_validated, self._finite = 0, dict[str, Tensor | None]()

    def validation_step(self, batch: Chunks, batch_idx: int) -> None:
        """Count the correct predictions of every method and ordering, or make the evaluations that are requested."""
        self.samples_validated += sum(len(labels) for _, labels in batch)
        for name, positions in self.active_orderings.items():
            method = self._states[name].method
            self._finite[name] = weights_are_finite(method)
            if self.chooser is None:
                self.counts[:, self.names.index(name), positions] += self._count(name, method, batch)
            elif self.chooser.now is not None:
                self._lazy[name].make(self.chooser.now, batch)

    def _count(self, name: str, method: Method, chunks: Chunks) -> Tensor:
        """Count the predictions of a method, or of a copy of it, that are correct, and those that are not finite."""
        counts = torch.zeros(2, 1, dtype=torch.int64, device=self.device)
        # Evaluations do not run in the precision of training.
        exact = torch.autocast(torch.device(self.device).type, enabled=False)
        with self._turn(name, "an evaluation"), folded(method), exact:
            for inputs, labels in chunks:
                inputs, labels = inputs.to(self.device), labels.to(self.device)
                with explain_memory_errors(f"an evaluation of {tuple(inputs.shape)}", LOWER):
                    logits = require_logits(method(inputs), (method.start.orderings, len(labels), self.classes))
                counts = counts + count_predictions(logits, labels, self.class_weights)
        return counts

    def shared_changes(self) -> str:
        """Return a message on changed tensors that all methods share, such as validation inputs; empty without any."""
        parts = self._shared.changed() if self._shared is not None else []
        who = option_of(self.names[0]) if len(self.names) == 1 else f"model: one of {', '.join(self.names)}"
        return f"{who} changes {' and '.join(parts)}, which all methods share; let it copy them first" if parts else ""

    def require_shared_unchanged(self) -> None:
        """Check that no method has changed tensors that all share.

        Raises:
            UserError: A method has changed one.
        """
        if reason := self.shared_changes():
            raise UserError(reason)

    def logged(self) -> dict[str, float]:
        """Return what the methods have logged last, by `METHOD/NAME`."""
        logged = {name: self._states[name].method.logged for name in self.active_orderings}
        return {f"{name}/{key}": float(value) for name, values in logged.items() for key, value in values.items()}

    def counted(self) -> NDArray[np.int64]:
        """Return the counts of an evaluation.

        Returns:
            Correct predictions, and predictions that are not finite, `[2, methods, orderings]`; 0 where a method is not
            fed an ordering.

        Raises:
            UserError: A network has diverged; further training would be useless.
        """
        for name, is_finite in self._finite.items():
            with prefix_method_errors(name):
                require_finite(self._states[name].method, is_finite, self.samples_seen)
        counts = np.zeros((2, len(self.names), len(self.stream.orderings)), dtype=np.int64)
        counts[..., self._columns] = self.counts.cpu().numpy()
        return counts

"""The comparison: one baseline and any number of custom methods, fed the same batches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from lightning.pytorch import LightningModule
from numpy.typing import NDArray
from torch import Tensor, nn

from headstart.modules.arithmetic import settle_arithmetic
from headstart.modules.checkpoint import put_back, state_of
from headstart.modules.global_generators import GlobalGenerators
from headstart.modules.memory_errors import explain_memory_errors
from headstart.modules.method import Method, Start
from headstart.modules.method_contract import (
    BASELINE,
    copy_attributes,
    option_of,
    prefix_method_errors,
    require_finite,
    require_logits,
    require_method,
    require_name,
    weights_are_finite,
)
from headstart.modules.networks.trainable_backbone import folded
from headstart.modules.past_states import PastStates
from headstart.modules.shared_tensors import SharedTensors
from headstart.modules.stream import Chooser, Chunks, Snapshot, Stream
from headstart.output.errors import UserError

# Bytes of the methods' states that are held at once, as they are estimated.
MEMORY = 4 * 2**30
# Tensors of the size of a head that a method holds: weights, gradients, two moments, and what steps and products take.
HEADS = 10
# What to do where memory does not suffice.
LOWER = "train fewer stages (data.trainable_from), or take a smaller crop or network"

# What a method may not do.
CHANGES_INPUTS = "changes its inputs or labels in place, which others share; copy them"


class Comparison(LightningModule):
    """Feed one stream of samples to a baseline and to custom methods, and count their correct predictions.

    After each validation pass `snapshot` gives the number of correct predictions and the samples fed so far.

    Args:
        baseline: The method that all others are compared with.
        methods: The custom methods, by the name under which they appear in the results.
    """

    def __init__(self, baseline: Method, methods: dict[str, Method] | None = None) -> None:
        super().__init__()
        self.automatic_optimization = False
        custom = methods or {}
        for name in custom:
            require_name(name)
        self.methods = nn.ModuleDict({BASELINE: baseline, **custom})
        for name, method in zip(self.names, self, strict=True):
            require_method(name, method)
        self._constructed = {name: copy_attributes(method, vars(method)) for name, method in self.methods.items()}
        self.chosen: NDArray[np.bool_] | None = None
        self.class_weights: Tensor | None
        self.register_buffer("class_weights", None, persistent=False)
        self._skipped, self._states = 0, dict[str, Any]()
        self._chooser: Chooser | None = None
        self._shared: SharedTensors | None = None
        # Methods that drew from a global generator while several orderings were fed side by side.
        self.drew: set[str] = set()
        self.samples_seen = self.samples_validated = 0

    @property
    def names(self) -> list[str]:
        """Names of the methods, the baseline first."""
        return list(self.methods)

    def __iter__(self) -> Iterator[Method]:
        """Iterate over the methods, the baseline first."""
        return iter(self.methods.values())  # type: ignore[arg-type]

    def choose(self, chosen: NDArray[np.bool_], samples_seen: int = 0, states: Mapping[str, Any] | None = None) -> None:
        """Choose what is fed; by default, everything from the beginning.

        Args:
            chosen: Which orderings each method is fed, `[methods, orderings]`.
            samples_seen: Samples that they have seen already.
            states: The states of the methods then, by their names, as `states` gave them.
        """
        self.chosen, self._skipped, self._states = chosen, samples_seen, dict(states or {})

    def evaluate_lazily(self, chooser: Chooser) -> None:
        """Make only the evaluations that are asked for; by default, every one.

        Args:
            chooser: What asks for them.
        """
        self._chooser = chooser

    def orderings_at_once(self, start: Start, methods: int) -> int:
        """Give how many orderings are to be fed side by side, so that the states of methods take a few gigabytes.

        It is a generous estimate: every method is taken to hold several heads and a row of features for each sample,
        or as many rows as there are features. The logits of one sample take less than these heads.

        Args:
            start: What the methods start from.
            methods: Number of methods.

        Returns:
            At least 1; 1 where each has a backbone of its own, or evaluations of its own.
        """
        if start.backbone is not None or self._chooser is not None:
            return 1
        rows = min(start.max_samples, start.features)
        values = HEADS * (start.features + 1) * start.classes + rows * start.features
        return max(1, MEMORY // (4 * values * methods))

    def weigh(self, class_weights: NDArray[np.int64]) -> None:
        """Say what a correct prediction counts; by default, 1.

        Args:
            class_weights: By its class, `[classes]`.
        """
        self.class_weights = torch.from_numpy(class_weights)

    def setup(self, stage: str) -> None:
        """Give every method that is fed the same start."""
        self.stream: Stream = self.trainer.datamodule  # type: ignore[attr-defined]
        numbers = np.array(self.stream.orderings)
        chosen = np.ones((len(self.names), len(numbers)), dtype=bool) if self.chosen is None else self.chosen
        fed = chosen.any(0)
        self.stream.feed(numbers[fed].tolist(), self._skipped)
        start = self.stream.start()
        # Of the first pass, so that later ones find what that one left.
        self._shared = self._shared or SharedTensors(start, self.stream.held())
        self._is_first_evaluation = True
        self.samples_seen, self.classes = self._skipped, start.classes
        self._generators = {name: GlobalGenerators(start.seed, start.device) for name in self.names}
        self._optimizers: dict[str, list[torch.optim.Optimizer]] = {}
        # The name of every method that is fed, its place among the methods, and the places of its orderings among those
        # that are fed; None for all of them.
        self.fed: list[tuple[str, int, Tensor | None]] = []
        for place, (name, method) in enumerate(zip(self.names, self, strict=True)):
            own = chosen[place, fed]
            if own.any():
                # What an earlier pass has left.
                vars(method).clear()
                vars(method).update(copy_attributes(method, self._constructed[name]))
                method.trainer = self.trainer
                with self._turn(name, f"the beginning of {type(method).__name__}", closely=True):
                    method.begin(replace(start, numbers=numbers[chosen[place]].tolist()))
                places = None if own.all() else torch.from_numpy(np.flatnonzero(own)).to(start.device)
                self.fed.append((name, place, places))
        self._past = {name: PastStates(self._method(name), self._constructed[name]) for name, *_ in self.fed}
        self._columns = np.flatnonzero(fed)
        # Of every method and ordering that is fed: predictions that are correct, and that are not finite.
        self.counts = torch.zeros(2, len(self.names), len(self._columns), dtype=torch.int64)

    def configure_optimizers(self) -> list[torch.optim.Optimizer]:
        """Collect the methods' optimisers, so that the trainer knows and saves them."""
        for name, *_ in self.fed:
            with self._turn(name, "its optimisers"):
                self._optimizers[name] = self._method(name).build_optimizers()
        return [optimizer for name, *_ in self.fed for optimizer in self._optimizers[name]]

    def on_train_start(self) -> None:
        """Put the methods into the states that they go on from."""
        for name, state in self._states.items():
            put_back(self._method(name), self._constructed[name], state["attributes"])
            self._optimizers[name], self._generators[name] = state["optimizers"], state["generators"]
            self._past[name].states = state["past"]
        if self._states:
            self.trainer.optimizers = [optimizer for name, *_ in self.fed for optimizer in self._optimizers[name]]
            self._states = {}
        self._places = {name: self._generators[name].place() for name, *_ in self.fed}

    def on_train_end(self) -> None:
        """Note who drew from a global generator: as much for several orderings as for one, or not."""
        if len(self._columns) > 1:
            self.drew |= {name for name, place in self._places.items() if self._generators[name].place() != place}

    def states(self) -> dict[str, Any]:
        """Give the state of every method that is fed, by its name; they are not copies."""
        found = {}
        for name, *_ in self.fed:
            own = self._constructed[name], self._optimizers[name], self._generators[name]
            found[name] = {**state_of(self._method(name), *own), "past": self._past[name].states}
        return found

    def stop(self, method: int) -> None:
        """Feed a method no more in this pass.

        Args:
            method: Its place among the methods.
        """
        self.fed = [each for each in self.fed if each[1] != method]

    def _method(self, name: str) -> Method:
        method = self.methods[name]
        assert isinstance(method, Method)
        return method

    @contextmanager
    def _turn(self, name: str, work: str, *given: Tensor, closely: bool = False) -> Iterator[None]:
        """Let a method run as if it were alone: with its own generators, and whatever others have set of arithmetic.

        Args:
            name: The method.
            work: What it does, for the message of memory that does not suffice.
            given: What it is given beside what all share.
            closely: Whether to note what the shared tensors hold behind it: that torch does not know of a change is
                rare, and looking takes time.

        Raises:
            UserError: It has changed what it was given, or what all share; it finds a mistake; memory does not suffice.
        """
        settle_arithmetic()
        shared = self._shared
        assert shared is not None
        before, versions = [tensor._version for tensor in given], shared.versions()
        with prefix_method_errors(name):
            with explain_memory_errors(work, LOWER), self._generators[name].in_use():
                yield
            if before != [tensor._version for tensor in given]:
                raise UserError(CHANGES_INPUTS)
        is_changed = versions != shared.versions()
        if closely or is_changed:
            shared.look(name)
        if is_changed:
            self.require_unspoilt()

    def training_step(self, batch: tuple[Tensor, Tensor, Tensor], batch_idx: int) -> None:
        """Let every method adapt on the same batch of inputs, labels and places among the training samples."""
        inputs, labels, places = batch
        for name, _, own in self.fed:
            method = self._method(name)
            # To each its own: torch does not know of what is changed through NumPy or `.data`.
            given = [each.clone() if own is None else each[own] for each in (inputs, labels, places)]
            batch_of = f"data.batch_size: a batch of {tuple(inputs.shape)} for {name}"
            turn = self._turn(name, "a batch", *given, closely=self.samples_seen == self._skipped)
            with turn, explain_memory_errors(batch_of, f"lower data.batch_size, {LOWER}"):
                method.places = given[2]
                method.adapt(*given[:2])
        self.samples_seen += labels.shape[1]

    def on_validation_model_zero_grad(self) -> None:
        """Leave gradients alone, which Lightning would clear: a method may gather them over several batches."""

    def on_validation_epoch_start(self) -> None:
        """Start the counts of one evaluation."""
        self.counts = torch.zeros_like(self.counts, device=self.device)
        self.samples_validated, self._finite = 0, dict[str, Tensor | None]()

    def validation_step(self, batch: Chunks, batch_idx: int) -> None:
        """Count the correct predictions of every method and ordering, or evaluate what is asked for."""
        self.samples_validated += sum(len(labels) for _, labels in batch)
        for name, place, places in self.fed:
            self._finite[name] = weights_are_finite(self._method(name))
            if self._chooser is None:
                self.counts[:, place, slice(None) if places is None else places] += self._count(name, batch)
            elif self._chooser.now is not None:
                self._evaluate_lazily(self._chooser, name, place, batch)
        self._is_first_evaluation = False

    def _evaluate_lazily(self, chooser: Chooser, name: str, place: int, chunks: Chunks) -> None:
        """Make the evaluations of a method that are asked for now, and keep its state where it may be asked for."""
        past = self._past[name]
        while (wanted := chooser.wanted(place)) is not None:
            before = past.footprint(), self._generators[name].place()
            with nullcontext() if wanted == chooser.now else past.at(wanted):
                counts = self._count(name, chunks).cpu().numpy()
            if (past.footprint(), self._generators[name].place()) != before:
                raise UserError(
                    f"criterion.evaluation: lazy leaves evaluations out, but {name} changes its state where it "
                    "predicts; give every"
                )
            past.is_compared = True
            chooser.take(place, wanted, *counts)
        needed = chooser.needed(place)
        past.retain(needed)
        if needed and needed[-1] not in past.states:
            past.keep(needed[-1], self._optimizers[name])

    def _count(self, name: str, chunks: Chunks) -> Tensor:
        """Count the predictions of a method that are correct, and those that are not finite, `[2, orderings]`."""
        counts: Tensor = torch.zeros(2, 1, dtype=torch.int64, device=self.device)
        # The precision of training is none of evaluations.
        exact = torch.autocast(torch.device(self.device).type, enabled=False)
        with self._turn(name, "an evaluation", closely=self._is_first_evaluation), folded(self._method(name)), exact:
            for inputs, labels in chunks:
                with explain_memory_errors(f"an evaluation of {tuple(inputs.shape)}", LOWER):
                    counts = counts + self._count_chunk(name, inputs.to(self.device), labels.to(self.device))
        return counts

    def _count_chunk(self, name: str, inputs: Tensor, labels: Tensor) -> Tensor:
        before = inputs._version, labels._version
        logits = self._method(name)(inputs)
        if before != (inputs._version, labels._version):
            raise UserError(CHANGES_INPUTS)
        require_logits(logits, (len(self._method(name).start.numbers), len(labels), self.classes))
        # A class without a sample may have -inf; the greatest is NaN where any is.
        greatest, predicted = logits.max(-1)
        finite = greatest.isfinite()
        right = (predicted == labels) & finite
        if self.class_weights is not None:
            right = right * self.class_weights[labels]
        return torch.stack([right.sum(-1), (~finite).sum(-1)])

    def spoilt(self) -> str:
        """Say who has changed what all methods share, such as the validation inputs; nothing where nobody has."""
        name, parts = self._shared.changed() if self._shared is not None else (None, [])
        who = f"{option_of(name)}:" if name else f"model: one of {', '.join(self.names)}"
        return f"{who} changes {' and '.join(parts)}, which all methods share; let it copy them first" if parts else ""

    def require_unspoilt(self) -> None:
        """Check that all methods still share what they began with.

        Raises:
            UserError: One has changed it.
        """
        if reason := self.spoilt():
            raise UserError(reason)

    def logged(self) -> dict[str, float]:
        """Give what the methods have logged last, by `METHOD/NAME`."""
        logged = {name: self._method(name).logged for name, *_ in self.fed}
        return {f"{name}/{key}": float(value) for name, values in logged.items() for key, value in values.items()}

    def snapshot(self) -> Snapshot:
        """Give what the callbacks read.

        Raises:
            UserError: A network has diverged, which would be trained and evaluated in vain.
        """
        for name, is_finite in self._finite.items():
            with prefix_method_errors(name):
                require_finite(self._method(name), is_finite, self.samples_seen)
        correct, not_finite = np.zeros((2, len(self.names), len(self.stream.orderings)), dtype=np.int64)
        correct[:, self._columns], not_finite[:, self._columns] = self.counts.cpu().numpy()
        return Snapshot(self.samples_seen, self.samples_validated, correct, not_finite)

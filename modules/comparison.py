"""The comparison: one baseline and any number of custom methods, fed the same batches."""

from __future__ import annotations

import inspect
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy, deepcopy
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import torch
from lightning.pytorch import LightningModule
from numpy.typing import NDArray
from torch import Tensor, nn

from modules.arithmetic import settle_arithmetic
from modules.checkpoint import FUNCTIONS, state_of
from modules.global_generators import GlobalGenerators
from modules.method import Method, Start
from modules.shared_tensors import SharedTensors
from output.errors import UserError

BASELINE = "baseline"
# Bytes of the methods' states that are held at once, as they are estimated.
MEMORY = 4 * 2**30
# Tensors of the size of a head that a method holds: weights, gradients, two moments, and what steps and products take.
HEADS = 10
# What Lightning would call of a module that is trained by itself.
HOOKS = [
    name
    for name, _ in inspect.getmembers(LightningModule, inspect.isfunction)
    if name.endswith("_step") or name.startswith(("on_", "configure_"))
]


class Stream(Protocol):
    """What a comparison is fed from, as far as it concerns the comparison."""

    max_samples: int
    orderings: Sequence[int]

    def start(self) -> Start:
        """Give what every method starts from."""

    def held(self) -> Mapping[str, Tensor]:
        """Give what is fed from or judged by, beside what the start holds."""

    def feed(self, numbers: Sequence[int], samples_seen: int) -> None:
        """Choose the orderings that are fed, and how many samples of each are left out."""


@dataclass(frozen=True)
class Snapshot:
    """A comparison as it stands after an evaluation.

    Attributes:
        samples_seen: Samples that each ordering has fed so far.
        samples_validated: Validation samples of the evaluation.
        correct: Counts of correct predictions, `[methods, orderings]`, 0 where a method is not fed an ordering.
        not_finite: Predictions that are not finite numbers, of which none is correct, `[methods, orderings]`.
    """

    samples_seen: int
    samples_validated: int
    correct: NDArray[np.int64]
    not_finite: NDArray[np.int64]


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
        if BASELINE in custom:
            raise UserError(f"model.methods: the name {BASELINE!r} is the baseline's own; give this method another")
        for name in custom:
            if "." in name or not name or hasattr(nn.ModuleDict, name):
                raise UserError(
                    f"model.methods: {name!r} cannot be a method's name; take letters, digits and underscores"
                )
        self.methods = nn.ModuleDict({BASELINE: baseline, **custom})
        for name, method in zip(self.names, self, strict=True):
            _require_no_hooks(name, method)
        self._constructed = {name: _copy(method, vars(method)) for name, method in self.methods.items()}
        self.chosen: NDArray[np.bool_] | None = None
        self.class_weights: Tensor | None
        self.register_buffer("class_weights", None, persistent=False)
        self._skipped, self._states = 0, dict[str, Any]()
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

    @staticmethod
    def orderings_at_once(start: Start, methods: int) -> int:
        """Give how many orderings are to be fed side by side, so that the states of methods take a few gigabytes.

        It is a generous estimate: every method is taken to hold several heads and a row of features for each sample,
        or as many rows as there are features. The logits of one sample take less than these heads.

        Args:
            start: What the methods start from.
            methods: Number of methods.

        Returns:
            At least 1.
        """
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
        self._is_first_step = self._is_first_evaluation = True
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
                vars(method).update(_copy(method, self._constructed[name]))
                method.trainer = self.trainer
                with self._turn(name, closely=True):
                    method.begin(replace(start, numbers=numbers[chosen[place]].tolist()))
                places = None if own.all() else torch.from_numpy(np.flatnonzero(own)).to(start.device)
                self.fed.append((name, place, places))
        self._columns = np.flatnonzero(fed)
        # Of every method and ordering that is fed: predictions that are correct, and that are not finite.
        self.counts = torch.zeros(2, len(self.names), len(self._columns), dtype=torch.int64)

    def configure_optimizers(self) -> list[torch.optim.Optimizer]:
        """Collect the methods' optimisers, so that the trainer knows and saves them."""
        for name, *_ in self.fed:
            with self._turn(name):
                self._optimizers[name] = self._method(name).build_optimizers()
        return [optimizer for name, *_ in self.fed for optimizer in self._optimizers[name]]

    def on_train_start(self) -> None:
        """Put the methods into the states that they go on from."""
        for name, state in self._states.items():
            vars(self._method(name)).update(state["attributes"])
            self._optimizers[name], self._generators[name] = state["optimizers"], state["generators"]
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
        return {
            name: state_of(self._method(name), self._constructed[name], self._optimizers[name], self._generators[name])
            for name, *_ in self.fed
        }

    def _method(self, name: str) -> Method:
        method = self.methods[name]
        assert isinstance(method, Method)
        return method

    @contextmanager
    def _turn(self, name: str, *given: Tensor, closely: bool = False) -> Iterator[None]:
        """Let a method run as if it were alone: with its own generators, and whatever others have set of arithmetic.

        Args:
            name: The method.
            given: What it is given beside what all share.
            closely: Whether to note what the shared tensors hold behind it: that torch does not know of a change is
                rare, and looking takes time.

        Raises:
            UserError: It has changed what it was given, or what all share.
        """
        settle_arithmetic()
        shared = self._shared
        assert shared is not None
        before, versions = [tensor._version for tensor in given], shared.versions()
        with self._generators[name].in_use():
            yield
        if before != [tensor._version for tensor in given]:
            raise UserError(f"{_option(name)}: changes its inputs or labels in place, which others share; copy them")
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
            with self._turn(name, *given, closely=self._is_first_step):
                method.places = given[2]
                method.adapt(*given[:2])
        self._is_first_step = False
        self.samples_seen += labels.shape[1]

    def on_validation_epoch_start(self) -> None:
        """Start the counts of one evaluation."""
        self.counts = torch.zeros_like(self.counts, device=self.device)
        self.samples_validated = 0

    def validation_step(self, batch: tuple[Tensor, Tensor], batch_idx: int) -> None:
        """Count the correct predictions of every method and ordering."""
        inputs, labels = batch
        correct, not_finite = self.counts
        self.samples_validated += len(labels)
        for name, place, places in self.fed:
            with self._turn(name, inputs, labels, closely=self._is_first_evaluation):
                logits = self._method(name)(inputs)
            orderings = self.counts.shape[-1] if places is None else len(places)
            self._require_logits(name, logits, (orderings, len(labels), self.classes))
            # A class without a sample may have -inf; the greatest is NaN where any is.
            greatest, predicted = logits.max(-1)
            finite = greatest.isfinite()
            chosen = slice(None) if places is None else places
            right = (predicted == labels) & finite
            if self.class_weights is not None:
                right = right * self.class_weights[labels]
            correct[place, chosen] += right.sum(-1)
            not_finite[place, chosen] += (~finite).sum(-1)
        self._is_first_evaluation = False

    def spoilt(self) -> str:
        """Say who has changed what all methods share, such as the validation inputs; nothing where nobody has."""
        found = self._shared.changed() if self._shared is not None else None
        if found is None:
            return ""
        name, parts = found
        who = f"{_option(name)}:" if name else f"model: one of {', '.join(self.names)}"
        return f"{who} changes {' and '.join(parts)}, which all methods share; let it copy them first"

    def require_unspoilt(self) -> None:
        """Check that all methods still share what they began with.

        Raises:
            UserError: One has changed it.
        """
        if reason := self.spoilt():
            raise UserError(reason)

    @staticmethod
    def _require_logits(name: str, logits: object, wanted: tuple[int, int, int]) -> None:
        if not isinstance(logits, Tensor) or logits.shape != wanted:
            found = list(logits.shape) if isinstance(logits, Tensor) else type(logits).__name__
            needed = f"logits [orderings, samples, classes], here {list(wanted)}"
            raise UserError(f"{_option(name)}: gives {found}; it must give {needed}")

    def logged(self) -> dict[str, float]:
        """Give what the methods have logged last, by `METHOD/NAME`."""
        logged = {name: self._method(name).logged for name, *_ in self.fed}
        return {f"{name}/{key}": float(value) for name, values in logged.items() for key, value in values.items()}

    def snapshot(self) -> Snapshot:
        """Give what the callbacks read."""
        correct, not_finite = np.zeros((2, len(self.names), len(self.stream.orderings)), dtype=np.int64)
        correct[:, self._columns], not_finite[:, self._columns] = self.counts.cpu().numpy()
        return Snapshot(self.samples_seen, self.samples_validated, correct, not_finite)


def _copy(method: nn.Module, attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Copy attributes with all that they hold; of what cannot be copied, the outermost container alone."""
    # Functions are known by their identity, which a copy of a partial one would lose.
    kept = [method, *(value for value in attributes.values() if isinstance(value, FUNCTIONS))]
    copies, memo = dict[str, Any](), {id(value): value for value in kept}
    for name, value in attributes.items():
        try:
            copies[name] = deepcopy(value, memo)
        # Whatever a class of the user's raises.
        except Exception:
            copies[name] = copy(value) if isinstance(value, dict | list | set | deque) else value
    return copies


def _require_no_hooks(name: str, method: Method) -> None:
    """Refuse a method that defines what is never called of it, or that would not be new in every pass."""
    if next(method.parameters(), None) is not None:
        raise UserError(
            f"{_option(name)}: {type(method).__name__} creates parameters in its constructor; create them in begin, "
            "which is called before each pass over the stream"
        )
    for hook in HOOKS:
        if getattr(type(method), hook) is not getattr(LightningModule, hook):
            raise UserError(
                f"{_option(name)}: {type(method).__name__} defines {hook}, which is never called; a method learns in "
                "adapt, predicts in forward, and creates its optimisers in build_optimizers"
            )


def _option(name: str) -> str:
    return "model.baseline" if name == BASELINE else f"model.methods.{name}"

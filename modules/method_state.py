"""The state of a method: copied, restored, and described for a checkpoint."""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy, deepcopy
from dataclasses import dataclass
from functools import partial
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.utils.weak import WeakTensorKeyDictionary

from headstart.modules.global_generators import GlobalGenerators
from headstart.modules.memory_errors import explain_memory_errors
from headstart.modules.method import Method, Start
from headstart.modules.networks.trainable_backbone import TrainableBackbone
from headstart.modules.provenance import source_digests
from headstart.modules.state_pickling import NOT_OWN, changes_digest, digest_of, held_by, storage_problem
from headstart.output.errors import UserError

FUNCTIONS = (FunctionType, BuiltinFunctionType, MethodType, partial, type)


@dataclass
class PastState:
    """A copy of a method, whose contents can be exchanged with those of the present.

    The modules of backbones stay, so that nothing is traced again, and so do their tensors, to which optimisers refer.

    Attributes:
        modules: The modules of the method's own backbones.
        attributes: Copies of the attributes of the method and of each of these modules.
        tensors: The parameters and buffers of the backbones, and a copy of each.
    """

    modules: list[nn.Module]
    attributes: list[dict[str, Any]]
    tensors: list[tuple[Tensor, Tensor]]


class MethodState:
    """Everything of a method that its batches change: its attributes, its optimisers and its global generators.

    It does not include functions from the constructor, the method's own functions, Lightning's own attributes, and weak
    dictionaries, which only save time.

    Args:
        method: The method, as its constructor left it.

    Attributes:
        method: The method.
        optimizers: Its optimisers.
        generators: Its states of the global generators.
        past: Copies of the method by the numbers of the evaluations after which they were made.
        compared: Number of evaluations around which the method was compared.
    """

    generators: GlobalGenerators

    def __init__(self, method: Method) -> None:
        self.method = method
        self.optimizers: list[Optimizer] = []
        self.past: dict[int, PastState] = {}
        self.compared = 0
        self._is_stable = True
        self._constructed = _copy_attributes(method, vars(method))
        self._copied_types: dict[str, type] = {}

    def reset(self, start: Start) -> None:
        """Restore what the constructor left, before the method begins.

        Args:
            start: What the method starts from.
        """
        vars(self.method).clear()
        vars(self.method).update(_copy_attributes(self.method, self._constructed))
        self.generators = GlobalGenerators(start.seed, start.device)
        self.optimizers, self.past, self.compared, self._copied_types = [], {}, 0, {}

    def attributes(self) -> dict[str, Any]:
        """Return the attributes of the method that are part of its state; they are not copies."""
        return {
            name: value
            for name, value in vars(self.method).items()
            if name not in NOT_OWN
            and not isinstance(value, WeakTensorKeyDictionary)
            and not (isinstance(value, MethodType) and value.__self__ is self.method)
            and not (isinstance(value, FUNCTIONS) and self._constructed.get(name) is value)
        }

    def describe(self) -> dict[str, Any]:
        """Return the state as it is stored in a checkpoint, with the digests of the source code of its modules."""
        held = self.held()
        return {**held, "sources": _sources(held["attributes"])}

    def held(self) -> dict[str, Any]:
        """Return the parts of the state, which are not copies."""
        return {
            "attributes": self.attributes(),
            "optimizers": list(self.optimizers),
            "generators": self.generators,
            "past": self.past,
        }

    def restore(self, stored: Mapping[str, Any]) -> None:
        """Restore a state.

        Args:
            stored: The state, as `describe` returned it.
        """
        _replace(self.method, self.attributes(), stored["attributes"])
        self.optimizers, self.generators, self.past = stored["optimizers"], stored["generators"], stored["past"]

    @contextmanager
    def replaced(self, other: dict[str, Any]) -> Iterator[None]:
        """Continue from another state within, and with the present one afterwards.

        Args:
            other: A state, as `held` returned it; afterwards as it has become.
        """
        present = self.held()
        self.restore(other)
        try:
            yield
        finally:
            other |= self.held()
            self.restore(present)

    def footprint(self) -> tuple[Any, ...]:
        """Return a value that differs once the method has changed.

        The contents of tensors, of which torch knows most changes, are covered at evaluations 0, 1, 2, 4, 8 and so on.
        """
        attributes = self.attributes()
        if self.compared == 0:
            # A class of the user's may be pickled differently each time.
            self._is_stable = changes_digest(attributes) == changes_digest(attributes)
        is_due = self.compared & (self.compared - 1) == 0

        tensors = (*self.method.parameters(), *self.method.buffers())
        versions = [(id(tensor), tensor._version) for tensor in tensors]
        identities = {name: id(value) for name, value in vars(self.method).items()}
        changes = changes_digest(attributes) if self._is_stable else ""
        digest = digest_of(attributes) if is_due else ""
        return versions, identities, self.generators.fingerprint(), changes, digest

    def keep(self, evaluation: int) -> None:
        """Copy the method as it is.

        Args:
            evaluation: Number of the evaluation after which the copy is made.

        Raises:
            UserError: The method holds something that cannot be copied, or memory does not suffice.
        """
        attributes = self.attributes()
        types = {name: type(value) for name, value in attributes.items()}
        if types != self._copied_types:
            # Functions are not copied: one that refers to a copied object would still refer to the present one.
            if problem := storage_problem({"attributes": attributes}):
                raise self._copy_error(problem)
            self._copied_types = types

        subject = f"criterion.evaluation: a copy of {type(self.method).__name__}, of up to ten,"
        try:
            # A tensor that is made in inference mode could not be restored.
            with (
                explain_memory_errors(subject, "give every, or a smaller network"),
                torch.inference_mode(False),
                torch.no_grad(),
            ):
                self.past[evaluation] = self._copy()
        except UserError:
            raise
        except Exception as error:  # a class of the user's may raise any error
            raise self._copy_error(f"{type(error).__name__}: {error}") from error

    def _copy_error(self, reason: str) -> UserError:
        return UserError(
            f"criterion.evaluation: lazy needs copies of {type(self.method).__name__}, of which something cannot "
            f"be copied ({reason}); give every"
        )

    def _copy(self) -> PastState:
        own = [module for module in self.method.modules() if module is not self.method.start.backbone]
        backbones = nn.ModuleList(module for module in own if isinstance(module, TrainableBackbone))
        modules, tensors = list(backbones.modules())[1:], [*backbones.parameters(), *backbones.buffers()]

        weak = [
            value for module in own for value in vars(module).values() if isinstance(value, WeakTensorKeyDictionary)
        ]
        shared = [*vars(self.method.start).values(), *self.optimizers, *weak, *modules, *tensors, self.method]
        held = [self.attributes(), *map(held_by, modules)]
        copies = deepcopy(held, {id(value): value for value in shared})
        return PastState(modules, copies, [(tensor, tensor.detach().clone()) for tensor in tensors])

    def retain(self, evaluations: Sequence[int]) -> None:
        """Drop all other copies.

        Args:
            evaluations: The evaluations whose copies may still be needed.
        """
        self.past = {number: state for number, state in self.past.items() if number in evaluations}

    @contextmanager
    def at(self, evaluation: int) -> Iterator[None]:
        """Restore an earlier state of the method within.

        Args:
            evaluation: Number of an evaluation of which a copy is kept.
        """
        past = self.past[evaluation]
        self._exchange(past)
        try:
            yield
        finally:
            self._exchange(past)

    @torch.inference_mode(False)
    def _exchange(self, past: PastState) -> None:
        """Exchange the contents of a copy with those of the method."""
        modules = [self.method, *past.modules]
        present = [self.attributes(), *map(held_by, past.modules)]
        for module, now, then in zip(modules, present, past.attributes, strict=True):
            _replace(module, now, then)
        past.attributes = present
        for live, other in past.tensors:
            live.data, other.data = other.data, live.data


def is_current(stored: Mapping[str, Any]) -> bool:
    """Whether a stored state is of the source code as it is now.

    Args:
        stored: The state, as `MethodState.describe` returned it.
    """
    return bool(stored["sources"] == _sources(stored["attributes"]))


def _sources(attributes: Mapping[str, Any]) -> dict[str, str]:
    children = [child for child in attributes["_modules"].values() if child is not None]
    return source_digests({type(module) for child in children for module in child.modules()})


def _replace(module: nn.Module, present: Mapping[str, Any], other: Mapping[str, Any]) -> None:
    for name in present:
        del vars(module)[name]
    vars(module).update(other)


def _copy_attributes(method: nn.Module, attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Copy attributes deeply; where one cannot be copied, copy only its outermost container."""
    # Functions are known by their identity, which a copy of a partial one would lose.
    same = [method, *(value for value in attributes.values() if isinstance(value, FUNCTIONS))]
    copies, memo = dict[str, Any](), {id(value): value for value in same}
    for name, value in attributes.items():
        try:
            copies[name] = deepcopy(value, memo)
        # A class of the user's may raise any error.
        except Exception:
            copies[name] = copy(value) if isinstance(value, dict | list | set | deque) else value
    return copies

"""Accuracies of fine-tuned sources, from runs of `headstart train` and from ledgers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from headstart.evaluation.stored_traces import is_ledger
from headstart.modules.networks.spec import WEIGHT_FILES
from headstart.output.errors import UserError, reason_of
from headstart.store.ledger import TOLD, parts_of
from headstart.store.ledger_reader import LedgerReader

TASK = "target_accuracy"
RESULTS = "results.json"
Trained = Literal["all", "head"]
# What must be the same for all sources of a target, and for all targets of a source; all else for all.
OF_A_TARGET = ("train_photos_sha256", "validation_photos_sha256", "unreadable")
OF_A_SOURCE = ("network", "preprocessing")
TITLES = {"all": "the whole network fine-tuned", "head": "the head alone trained"}


@dataclass(frozen=True)
class Accuracy:
    """How well one source did on one target, in some orderings.

    Attributes:
        where: The run's folder or the ledger.
        source: What the source is called.
        target: What the target is called.
        fed: What was fed, as JSON values.
        training: How was trained, as JSON values.
        orderings: Accuracies by the number of the ordering.
    """

    where: Path
    source: str
    target: str
    fed: Mapping[str, Any]
    training: Mapping[str, Any]
    orderings: Mapping[int, float]

    @property
    def trained(self) -> str:
        """What was trained: `all` or `head`."""
        return str(self.training["hyperparameters"]["trained"])

    @property
    def measure(self) -> str:
        """What it is: the accuracy, or what else was measured."""
        return str(self.fed.get("measure", "accuracy"))


def name_source(backbone: str, weights: str, registry: object) -> str:
    """Name a source by its entry in a registry, else by its weights.

    Args:
        backbone: The network's name.
        weights: The name of its weights, or their file.
        registry: The registry that it comes from, if any.
    """
    plain, path = backbone.removeprefix("timm/"), PurePath(weights)
    if registry is not None:
        return plain
    if path.suffix in WEIGHT_FILES:
        return path.stem
    return plain if path.name == "DEFAULT" else f"{plain}_{path}"


def task_of(folder: Path) -> str:
    """Tell of which task a run's folder is, or that it is a ledger, which has accuracies."""
    if is_ledger(folder):
        return TASK
    try:
        document = json.loads((folder / RESULTS).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return "comparison"
    return str(document.get("task", "comparison")) if isinstance(document, dict) else "comparison"


def read_accuracies(folders: Sequence[Path], trained: Trained | None) -> list[Accuracy]:
    """Read the accuracies that runs and ledgers hold.

    Args:
        folders: Their folders.
        trained: Which of them are taken; None where they are all of one kind.

    Raises:
        UserError: They are not, there is none, or a file is damaged.
        LedgerError: A ledger cannot be read.
    """
    found = [each for folder in folders for each in (_stored(folder) if is_ledger(folder) else [_read(folder)])]
    kinds = sorted({each.trained for each in found})
    if trained is None and len(kinds) > 1:
        raise UserError(f"trained: accuracies of {' and of '.join(kinds)} are given; choose by --trained")
    chosen = [each for each in found if trained in (None, each.trained)]
    if not chosen:
        there = f"; they are of {kinds[0]}" if kinds else ""
        raise UserError(f"runs: no accuracy{f' of {trained}' if trained else ''} is in what is given{there}")
    return chosen


def _read(folder: Path) -> Accuracy:
    try:
        document = json.loads((folder / RESULTS).read_text(encoding="utf-8"))
        protocol, made_from = document["protocol"], dict(document["made_from"])
        training, orderings = made_from.pop("training"), made_from.pop("orderings")
        by_ordering = dict(zip(orderings, document["accuracies"], strict=True))
        source = name_source(protocol["backbone"], protocol["weights"], protocol["registry"])
        accuracy = Accuracy(folder, source, protocol["dataset"], made_from, training, by_ordering)
        accuracy.trained  # noqa: B018 - that it is there
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(
            f"runs: {RESULTS} in {str(folder)!r} is damaged ({type(error).__name__}: {reason_of(error)}); "
            "run headstart train again"
        ) from error
    return accuracy


def _stored(folder: Path) -> Iterator[Accuracy]:
    with LedgerReader(folder) as ledger:
        for stream, document in ledger.streams(TASK).items():
            fed = {key: value for key, value in document.items() if key != TOLD}
            told, methods = document[TOLD], ledger.methods(stream)
            source = name_source(told["backbone"], told["weights"], told["registry"])
            traces = ledger.traces(stream)
            for method, training in methods.items():
                counts = {number: counts[0] for (its, number), counts in traces.items() if its == method}
                shares = {number: int(count) / parts_of(told) for number, count in counts.items()}
                yield Accuracy(folder, source, told["dataset"], fed, training, shares)


def pair_accuracies(found: Sequence[Accuracy], names: Mapping[str, str]) -> dict[tuple[str, str], NDArray[np.float64]]:
    """Group accuracies by source and target, after checking that they differ in nothing else.

    Args:
        found: The accuracies; what is in a run and in a ledger counts once.
        names: Other names for sources and targets.

    Returns:
        Those of the orderings, by source and target.

    Raises:
        UserError: They cannot be compared, or a name is none of theirs.
    """
    own = {name for each in found for name in (each.source, each.target)}
    unknown = sorted(set(names) - own)
    if unknown:
        raise UserError(f"names: {', '.join(unknown)} given, but the runs are of {', '.join(sorted(own))}")
    for each in found:
        _require_comparable(found[0], each)
    pairs: dict[tuple[str, str], dict[int, float]] = {}
    for each in found:
        pair = names.get(each.source, each.source), names.get(each.target, each.target)
        for ordering, value in each.orderings.items():
            if pairs.setdefault(pair, {}).setdefault(ordering, value) != value:
                raise UserError(
                    f"runs: {str(each.where)!r} holds ordering {ordering} of {pair[0]} on {pair[1]} again, and "
                    "differently; leave one out"
                )
    _require_one_content(found, names)
    return {pair: np.array([values[number] for number in sorted(values)]) for pair, values in pairs.items()}


def _require_comparable(first: Accuracy, other: Accuracy) -> None:
    beside = {*OF_A_SOURCE, *OF_A_TARGET}
    here, there = (
        {**{key: value for key, value in each.fed.items() if key not in beside}, **each.training}
        for each in (first, other)
    )
    _refuse(first, other, [key for key in {**here, **there} if here.get(key) != there.get(key)], "")


def _require_one_content(found: Sequence[Accuracy], names: Mapping[str, str]) -> None:
    """Check that what has one name is one source, or one target."""
    for kind, keys in (("source", OF_A_SOURCE), ("target", OF_A_TARGET)):
        firsts: dict[str, Accuracy] = {}
        for each in found:
            own = getattr(each, kind)
            first = firsts.setdefault(names.get(own, own), each)
            differing = [key for key in keys if first.fed.get(key) != each.fed.get(key)]
            _refuse(first, each, differing, f"; both are of the {kind} {names.get(own, own)}")


def _refuse(first: Accuracy, other: Accuracy, differing: Sequence[str], why: str) -> None:
    if differing:
        pair = f"{str(other.where)!r} differs from {str(first.where)!r}"
        raise UserError(
            f"runs: {pair} in {', '.join(differing)}{why or '; only sources, targets and orderings may differ'}"
        )

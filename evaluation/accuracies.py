"""Accuracies of fine-tuned sources, from runs of `headstart train` and from ledgers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from headstart.evaluation.stored_traces import is_ledger, open_ledger
from headstart.evaluation.transfer_results import TransferResult, name_source
from headstart.output.errors import UserError, reason_of
from headstart.store.ledger import TOLD, parts_of

TASK = "target_accuracy"
RESULTS = "results.json"
Trained = Literal["all", "head"]
# Settings that all sources of a target share, and settings that all targets of a source share.
OF_A_TARGET = ("train_photos_sha256", "validation_photos_sha256", "unreadable")
OF_A_SOURCE = ("network", "preprocessing")
TITLES = {"all": "the whole network fine-tuned", "head": "the head alone trained"}


def task_of(folder: Path) -> str:
    """Return the task of a run; a ledger counts as one of fine-tuning."""
    if is_ledger(folder):
        return TASK
    try:
        document = json.loads((folder / RESULTS).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return "comparison"
    return str(document.get("task", "comparison")) if isinstance(document, dict) else "comparison"


def read_accuracies(folders: Sequence[Path], trained: Trained | None) -> tuple[list[TransferResult], str]:
    """Read the accuracies that runs and ledgers hold.

    Args:
        folders: Their folders.
        trained: The kind to select; None where all are of one kind.

    Returns:
        The accuracies, and their title.

    Raises:
        UserError: There are several kinds, or none, or a file is damaged or cannot be read.
    """
    results = [each for folder in folders for each in (_read_ledger(folder) if is_ledger(folder) else [_read(folder)])]
    kinds = sorted({_trained(each) for each in results})
    if trained is None and len(kinds) > 1:
        raise UserError(f"trained: accuracies of {' and of '.join(kinds)} are given; choose by --trained")
    chosen = [each for each in results if trained in (None, _trained(each))]
    if not chosen:
        there = f"; they are of {kinds[0]}" if kinds else ""
        raise UserError(f"runs: no accuracy{f' of {trained}' if trained else ''} is in what is given{there}")
    return chosen, f"{chosen[0].common.get('measure', 'accuracy')}, {TITLES[_trained(chosen[0])]}"


def _trained(result: TransferResult) -> str:
    return str(result.common["hyperparameters"]["trained"])


def _result(
    folder: Path,
    names: Mapping[str, Any],
    fed: Mapping[str, Any],
    training: Mapping[str, Any],
    values: Mapping[int, float],
) -> TransferResult:
    common = {key: value for key, value in fed.items() if key not in {*OF_A_SOURCE, *OF_A_TARGET}}
    return TransferResult(
        folder,
        name_source(names["backbone"], names["weights"], names["registry"]),
        names["dataset"],
        values,
        common={**common, **training},
        of_source={key: fed.get(key) for key in OF_A_SOURCE},
        of_target={key: fed.get(key) for key in OF_A_TARGET},
        of_pair={},
    )


def _read(folder: Path) -> TransferResult:
    try:
        document = json.loads((folder / RESULTS).read_text(encoding="utf-8"))
        fed = dict(document["made_from"])
        training, orderings = fed.pop("training"), fed.pop("orderings")
        values = dict(zip(orderings, document["accuracies"], strict=True))
        result = _result(folder, document["protocol"], fed, training, values)
        _trained(result)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(
            f"runs: {RESULTS} in {str(folder)!r} is damaged ({type(error).__name__}: {reason_of(error)}); "
            "run headstart train again"
        ) from error
    return result


def _read_ledger(folder: Path) -> Iterator[TransferResult]:
    with open_ledger(folder) as ledger:
        for stream, fed in ledger.streams(TASK).items():
            names, traces = fed.pop(TOLD), ledger.traces(stream)
            for method, training in ledger.methods(stream).items():
                values = {
                    ordering: int(counts[0]) / parts_of(names)
                    for (key, ordering), counts in traces.items()
                    if key == method
                }
                yield _result(folder, names, fed, training, values)

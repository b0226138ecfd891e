"""Ledgers that are filled by hand."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headstart.store.ledger import Ledger
from headstart.store.ledger_file import Trace, TraceKey

STREAM: dict[str, Any] = {
    "batch_size": 1,
    "evaluate_every": 1,
    "validation_size": 100,
    "classes": ["cats", "dogs"],
    "weights_sha256": "0" * 64,
    "seed": 0,
    "feature_precision": "float32",
    "device": "cpu",
}
NAMES = {"backbone": "resnet18", "weights": "DEFAULT", "largest_class": 60}
INF = float("inf")


def reach(samples: Iterable[float], limit: int) -> NDArray[np.int64]:
    """Build traces that have 90 of 100 right from 9 evaluations before the samples to criterion on, and 50 before.

    Args:
        samples: Samples to criterion, 10 or more, infinite for never.
        limit: Where the traces end.
    """
    return np.where(np.arange(1, limit + 1) > np.array([*samples])[:, None] - 10, 90, 50)


def store(
    folder: Path,
    traces: Mapping[str, NDArray[np.int64]],
    orderings: Mapping[str, Sequence[int]] | None = None,
    kinds: Mapping[str, dict[str, Any]] | None = None,
    description: Mapping[str, Any] | None = None,
    dataset: str = "pets",
    **stream: Any,
) -> Path:
    """Store traces of one stream.

    Args:
        folder: Folder of the ledger.
        traces: Counts of each method, `[orderings, evaluations]`.
        orderings: Numbers of the orderings of methods whose do not begin at 0.
        kinds: What methods are, where that is not a class of their own.
        description: Names of data set, backbone and weights where they differ.
        dataset: Name of the data set, which its photos are known by, too.
        stream: What else the stream is.
    """
    with Ledger(folder) as ledger:
        names = {**NAMES, "dataset": dataset, **(description or {})}
        digest = ledger.record({**STREAM, "train_photos_sha256": dataset, **stream}, description=names)
        for name, counts in traces.items():
            kind = (kinds or {}).get(name, {"class": f"headstart.modules.{name.title()}", "hyperparameters": {}})
            method = ledger.record(kind, description={"name": name})
            numbers = (orderings or {}).get(name, range(len(counts)))
            rows = zip(numbers, counts, strict=True)
            ledger.write({TraceKey(digest, method, number): Trace(own) for number, own in rows})
    return folder

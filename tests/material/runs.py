"""Files of a run that the evaluation reads, written without running anything."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from headstart.metrics.sample_efficiency.curves import Curves, Measure
from headstart.store.json_digest import sealed

TRACES = np.array(
    [
        # One method per row, one ordering per column; eight evaluations of 100 validation samples.
        [[50, 80, 80, 80, 85, 85, 90, 90], [50, 60, 80, 80, 80, 80, 80, 85]],
        [[80, 80, 80, 90, 90, 90, 90, 90], [80, 79, 80, 80, 80, 90, 90, 90]],
    ]
)


def curves_of(correct: Any, methods: Sequence[str] = ("baseline", "mine"), **changes: Any) -> Curves:
    """Build curves of counts of 100 validation samples, one evaluation after each sample.

    Args:
        correct: The counts, `[methods, orderings, evaluations]`.
        methods: Names.
        changes: Attributes that are others.
    """
    _, orderings, evaluations = correct.shape
    own = {"methods": [*methods], "orderings": np.arange(orderings), "samples_seen": np.arange(1, evaluations + 1)}
    rule: dict[str, Any] = {"measure": "accuracy", "limit": evaluations, "threshold": 0.8, "consecutive": 3}
    return Curves(**{**own, **rule, "correct": correct, "validation_size": 100, "all_correct": 100, **changes})


def reaching(methods: list[str], samples: Any, limit: int) -> Curves:
    """Build traces of 16 validation samples, of which 8 are right until 10 evaluations in a row have 12.

    Args:
        methods: Names.
        samples: When, infinite for never, `[methods, orderings]`.
        limit: The sample limit.
    """
    seen = np.arange(1, max(limit, int(np.max(samples, initial=0, where=np.isfinite(samples)))) + 1)
    met = seen > np.array(samples, dtype=np.float64)[..., None] - 10
    orderings = np.arange(met.shape[1])
    return Curves(
        methods, orderings, seen, np.where(met, 12, 8), 16, 16, "accuracy", limit, threshold=0.75, consecutive=10
    )


def write_run(
    folder: Path,
    correct: Any = TRACES,
    first: int = 0,
    limit: int = 500,
    step: int = 1,
    rate: float = 0.1,
    complete: bool = True,
    threshold: float = 0.8,
    measure: Measure = "accuracy",
    methods: Sequence[str] = ("baseline", "mine"),
    keys: Mapping[str, Mapping[str, Any]] | None = None,
    **protocol: Any,
) -> Path:
    """Write the files of a run of traces; `keys` are those of its methods, where they are others."""
    folder.mkdir(parents=True)
    orderings, evaluations = correct.shape[1:]
    numbers, seen = np.arange(first, first + orderings), np.minimum(step * np.arange(1, evaluations + 1), limit)
    criterion: dict[str, Any] = {"measure": measure, "limit": limit, "threshold": threshold}
    curves = curves_of(correct, methods, orderings=numbers, samples_seen=seen, **criterion)
    stream = {
        "dataset": "pets",
        "backbone": "resnet50",
        "weights": "DEFAULT",
        "batch_size": step,
        "seed": 0,
        **protocol,
    }
    baseline = {"class_path": "headstart.modules.GradientDescent", "init_args": {"rate": rate}}
    mean = {"class_path": "headstart.modules.NearestClassMean"}
    described = {name: {"hyperparameters": {}, **(baseline if name == "baseline" else mean)} for name in methods}
    document = {
        "schema": 2,
        "complete": complete,
        "stopped_because": "it was interrupted",
        "methods": {name: {"key": key} for name, key in (keys or described).items()},
        "protocol": {
            "order": "shuffled",
            "max_samples": limit,
            **stream,
            "orderings": orderings,
            "first_ordering": first,
        },
    }
    seal(folder, document, curves, json.dumps({"methods": described}, ensure_ascii=False).encode())
    return folder


def write_runs(folder: Path, runs: Mapping[str, Mapping[str, Any]], **shared: Any) -> Path:
    """Write runs below a folder, by name, from what is shared and what each has of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, own in runs.items():
        write_run(folder / name, **{**shared, **own})
    return folder


def seal(
    folder: Path, document: Mapping[str, Any] | None = None, curves: Curves | None = None, config: bytes | None = None
) -> None:
    """Write the files of a run, or some of them anew, with digests that fit."""
    document = json.loads((folder / "results.json").read_text()) if document is None else document
    files = {
        "config.yaml": (folder / "config.yaml").read_bytes() if config is None else config,
        "curves.npz": (folder / "curves.npz").read_bytes() if curves is None else curves.content(),
    }
    for name, content in files.items():
        (folder / name).write_bytes(content)
    (folder / "results.json").write_text(json.dumps(sealed(document, files)))

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
    registry: str | None = None,
    measure: Measure = "accuracy",
    methods: Sequence[str] = ("baseline", "mine"),
    **protocol: Any,
) -> Path:
    folder.mkdir()
    orderings, evaluations = correct.shape[1:]
    curves = Curves(
        methods=list(methods),
        orderings=np.arange(first, first + orderings),
        samples_seen=np.minimum(step * np.arange(1, evaluations + 1), limit),
        correct=correct,
        validation_size=100,
        all_correct=100,
        measure=measure,
        limit=limit,
        threshold=threshold,
        consecutive=3,
    )
    fed = {"dataset": "pets", "backbone": "resnet50", "weights": "DEFAULT", "batch_size": step, "seed": 0, **protocol}
    baseline = {"class_path": "headstart.modules.GradientDescent", "init_args": {"rate": rate}}
    mean = {"class_path": "headstart.modules.NearestClassMean"}
    described = {name: {"hyperparameters": {}, **(baseline if name == "baseline" else mean)} for name in methods}
    document = {
        "schema": 2,
        "complete": complete,
        "stopped_because": "it was interrupted",
        "methods": {name: {"key": description} for name, description in described.items()},
        "protocol": {"order": "shuffled", "max_samples": limit, **fed, "orderings": orderings, "first_ordering": first},
    }
    config = {
        "model": {"baseline": baseline, "methods": dict.fromkeys(methods[1:], mean)},
        "data": {"init_args": {"backbone": {"name": fed["backbone"], "registry": registry}}},
    }
    seal(folder, document, curves, json.dumps(config, ensure_ascii=False).encode())
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

"""Score finished runs again: under another criterion, or several runs joined."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from jsonargparse.typing import ClosedUnitInterval, PositiveInt

from evaluation.runs import read_runs, require_different_orderings, require_same
from metrics.sample_efficiency.curves import Curves
from metrics.sample_efficiency.scores import score
from output.errors import UserError
from output.files import replacing
from output.tables import print_scores


def sample_efficiency(
    runs: str,
    threshold: ClosedUnitInterval | None = None,
    consecutive: PositiveInt | None = None,
    output: str | None = None,
) -> dict[str, Any]:
    """Score finished runs of train.py again, from their traces alone.

    Gives the table of another criterion without running again, and joins runs of the same comparison that fed
    different orderings, one per process.

    Args:
        runs: Folder of a run, or a pattern such as 'runs/fine_tuning-*' for several, which must differ in nothing but
            their orderings.
        threshold: Validation accuracy that counts as reached; by default the runs' own.
        consecutive: Evaluations in a row at which it must be reached; by default the runs' own.
        output: JSON file to write the scores to.

    Returns:
        The scores, as `output` holds them.
    """
    if output is not None and not Path(output).absolute().parent.is_dir():
        raise UserError(f"output: the folder of {output!r} does not exist; create it first")
    found = read_runs(runs)
    asked: dict[str, Any] = {} if threshold is None else {"threshold": float(threshold)}
    asked |= {} if consecutive is None else {"consecutive": int(consecutive)}
    traces = [replace(run.curves, **asked) for run in found]
    criteria = [{"threshold": curves.threshold, "consecutive": curves.consecutive} for curves in traces]
    settings = [
        {**run.settings, "methods": run.curves.methods, "model": run.model, **criterion}
        for run, criterion in zip(found, criteria, strict=True)
    ]
    require_same(found, settings, "only orderings may differ")
    require_different_orderings(found)
    met = [curves.samples_to_criterion() for curves in traces]
    samples, onset = (np.concatenate(part, axis=1) for part in zip(*met, strict=True))
    final = np.concatenate([curves.accuracy[..., -1] for curves in traces], axis=1)
    limit = min(_known_until(curves) for curves in traces)
    document = {
        "runs": [str(run.folder) for run in found],
        "complete": all(run.document["complete"] for run in found),
        "criterion": criteria[0],
        "protocol": {**found[0].protocol, "orderings": samples.shape[1]},
        "orderings": np.concatenate([curves.orderings for curves in traces]).tolist(),
        "restricted_at": limit,
        **score(traces[0].methods, samples, onset, final, limit),
    }
    print_scores(document)
    if output is not None:
        with replacing(Path(output)) as partial:
            partial.write_text(json.dumps(document, indent=1, allow_nan=False))
    return document


def _known_until(curves: Curves) -> int:
    """Give the samples up to which it is known whether each trace meets the criterion.

    A run stops early once all have met its own criterion; under a stricter one, a trace that has not met it by then
    is censored where it ends, not at the sample limit.
    """
    samples, _ = curves.samples_to_criterion()
    return curves.limit if np.isfinite(samples).all() else min(curves.limit, _end(curves))


def _end(curves: Curves) -> int:
    steps = np.diff(curves.samples_seen, prepend=0)
    # Less than one evaluation is left before the limit: nothing can be met in between.
    last = int(curves.samples_seen[-1])
    return curves.limit if last + int(steps[0]) > curves.limit else last

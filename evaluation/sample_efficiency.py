"""Score finished runs again: under another criterion, or several runs joined."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from jsonargparse.typing import ClosedUnitInterval, PositiveInt

from evaluation.runs import Run, read_runs, require_same
from metrics.sample_efficiency.curves import Curves
from metrics.sample_efficiency.scores import ACCURACY_AT, score
from output.errors import UserError
from output.files import output_file, write_text
from output.tables import print_scores

NOT_EVALUATED = -1
CRITERION = ("measure", "threshold", "consecutive")


def sample_efficiency(
    runs: str,
    threshold: ClosedUnitInterval | None = None,
    consecutive: PositiveInt | None = None,
    output: str | None = None,
    accuracy_at: list[PositiveInt] = ACCURACY_AT,
    overwrite: bool = False,
) -> dict[str, Any]:
    """Score finished runs of train.py again, from their traces alone.

    Gives the table of another criterion without running again, and joins runs of the same comparison that fed
    different orderings or methods.

    Args:
        runs: Folder of a run, or a pattern such as 'runs/fine_tuning-*' for several, which must differ in nothing but
            their orderings and methods.
        threshold: Validation accuracy that counts as reached; by default the runs' own.
        consecutive: Evaluations in a row at which it must be reached; by default the runs' own.
        output: JSON file to write the scores to.
        accuracy_at: Numbers of samples at which the accuracy is given.
        overwrite: Replace a file that holds something else.

    Returns:
        The scores, as `output` holds them.
    """
    path = None if output is None else output_file("output", output)
    found = read_runs(runs)
    asked: dict[str, Any] = {} if threshold is None else {"threshold": float(threshold)}
    asked |= {} if consecutive is None else {"consecutive": int(consecutive)}
    found = [replace(run, curves=replace(run.curves, **asked)) for run in found]
    criteria = [{key: getattr(run.curves, key) for key in CRITERION} for run in found]
    settings = [{**run.settings, **criterion} for run, criterion in zip(found, criteria, strict=True)]
    require_same(found, settings, "only methods and orderings may differ")
    _require_same_methods(found)
    curves = _join(found)
    curves = replace(curves, limit=_known_until(curves))
    document = {
        "runs": [str(run.folder) for run in found],
        "complete": all(run.document["complete"] for run in found),
        "criterion": criteria[0],
        "protocol": {**found[0].protocol, "orderings": len(curves.orderings)},
        "orderings": curves.orderings.tolist(),
        "restricted_at": curves.limit,
        **score(curves, accuracy_at),
    }
    if path is not None:
        write_text(path, json.dumps(document, indent=1, allow_nan=False), overwrite)
    print_scores(document)
    return document


def _require_same_methods(runs: Sequence[Run]) -> None:
    """Check that what has one name is one method, of one source."""
    first: dict[str, Run] = {}
    for run in runs:
        for name in run.curves.methods:
            before = first.setdefault(name, run)
            if run.describe(name) != before.describe(name):
                pair = f"{str(run.folder)!r} differs from {str(before.folder)!r}"
                raise UserError(f"runs: {pair} in the method {name}; give one of them another name")


def _join(runs: Sequence[Run]) -> Curves:
    """Put the traces of runs together, by method and ordering; a trace may come more than once."""
    methods = list(dict.fromkeys(name for run in runs for name in run.curves.methods))
    orderings = list(dict.fromkeys(number for run in runs for number in run.curves.orderings.tolist()))
    longest = max((run.curves for run in runs), key=lambda curves: len(curves.samples_seen))
    correct = np.full((len(methods), len(orderings), len(longest.samples_seen)), NOT_EVALUATED)
    row, column = ({one: place for place, one in enumerate(many)} for many in (methods, orderings))
    for run in runs:
        names, numbers, traces = run.curves.methods, run.curves.orderings.tolist(), run.curves.correct
        block = np.ix_([row[name] for name in names], [column[number] for number in numbers], range(traces.shape[-1]))
        there = correct[block]
        differing = (there != traces) & (there != NOT_EVALUATED) & (traces != NOT_EVALUATED)
        if differing.any():
            m, k, _ = np.argwhere(differing)[0].tolist()
            again = f"of the method {names[m]} in ordering {numbers[k]} again, and differently"
            raise UserError(f"runs: {str(run.folder)!r} holds the trace {again}; leave one out")
        correct[block] = np.maximum(there, traces)
    for name, first in zip(methods, correct[..., 0], strict=True):
        absent = np.array(orderings)[first == NOT_EVALUATED].tolist()
        if absent:
            raise UserError(f"runs: the method {name} is in no run of the orderings {absent}; add one")
    return replace(
        longest,
        methods=methods,
        orderings=np.array(orderings),
        correct=correct,
        limit=min(run.curves.limit for run in runs),
    )


def _known_until(curves: Curves) -> int:
    """Give the samples up to which it is known whether each trace meets the criterion.

    A trace ends once its companions have met the criterion of their run; under a stricter one, one that has not met it
    by then is censored where it ends, not at the sample limit.
    """
    censored = np.isinf(curves.samples_to_criterion()[0])
    if not censored.any():
        return curves.limit
    last = int(curves.ends[censored].min())
    # Less than one evaluation is left before the limit: nothing can be met in between.
    return curves.limit if last + int(curves.samples_seen[0]) > curves.limit else min(last, curves.limit)

"""Remarks on a run that are printed below its scores."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from headstart.callbacks.sample_efficiency import SampleEfficiency
from headstart.callbacks.traces import Grid, Traces
from headstart.metrics.sample_efficiency.curves import NOT_EVALUATED, SKIPPED


def remark_on_criterion(criterion: SampleEfficiency, grid: Grid, largest_class: int) -> list[str]:
    """Warn if predicting the largest class alone meets the criterion.

    Args:
        criterion: The criterion.
        grid: The evaluations of this validation set.
        largest_class: The count that predicting the largest class alone gives.
    """
    if largest_class < grid.required:
        return []
    reached = f"{largest_class / grid.all_correct:.0%} {criterion.measure.replace('_', ' ')}"
    balanced = "--criterion.measure=balanced_accuracy, or " * (criterion.measure == "accuracy")
    return [
        f"WARNING: to predict the largest class alone meets the threshold ({reached}), so that samples to "
        f"criterion say nothing; take {balanced}a higher --criterion.threshold."
    ]


def remark_on_traces(traces: Traces, methods: Sequence[str], drew: Collection[str]) -> list[str]:
    """Remark on stored and changed traces, and on methods that diverged or depend on traces beside them.

    Args:
        traces: The traces.
        methods: Names of the methods.
        drew: Methods that used a global generator while several orderings ran side by side.
    """
    remarks, reused = [], int((~traces.measured).sum())
    skipped = traces.correct == SKIPPED
    if skipped.any():
        made = 1 - skipped.sum() / (traces.correct != NOT_EVALUATED).sum()
        remarks.append(
            f"Evaluated lazily, {made:.0%} of the evaluations: no learning curves, no accuracies in between, no other "
            "criterion than this one."
        )
    if reused:
        remarks.append(f"{reused} of {traces.measured.size} traces were in the ledger, {traces.ledger.location}.")

    remarks += [
        f"WARNING: {name} drew from a global generator while several orderings ran side by side. Unless it drew "
        "the same for each, which dropout does not, its traces depend on which ran together; see docs/methods.md."
        for name in sorted(drew)
    ]
    for name, changed, diverged in zip(methods, traces.changed, traces.diverged != NOT_EVALUATED, strict=True):
        if changed.any():
            remarks.append(f"WARNING: {name} came out differently from its stored traces in {changed.sum()} orderings.")
        if diverged.any():
            remarks.append(f"WARNING: {name} gave predictions that are not finite in {diverged.sum()} orderings.")
    return remarks

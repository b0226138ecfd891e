"""What is said of a run besides its scores."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from headstart.callbacks.sample_efficiency import SampleEfficiency
from headstart.callbacks.traces import Grid, Traces
from headstart.metrics.sample_efficiency.curves import NOT_EVALUATED, SKIPPED


def remark_on_criterion(criterion: SampleEfficiency, grid: Grid, largest_class: int) -> list[str]:
    """Say where the criterion says nothing.

    Args:
        criterion: The criterion.
        grid: What it takes on this validation set.
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
    """Say what was stored, what came out differently, and which methods diverged or depend on what ran beside.

    Args:
        traces: The traces.
        methods: Names of the methods.
        drew: Those that drew from a global generator while several orderings ran side by side.
    """
    remarks, reused = [], int((~traces.measured).sum())
    left_out = traces.correct == SKIPPED
    if left_out.any():
        made = 1 - left_out.sum() / (traces.correct != NOT_EVALUATED).sum()
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

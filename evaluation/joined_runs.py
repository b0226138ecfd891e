"""Joined traces of several runs, and the samples up to which they are known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headstart.evaluation.runs import Run
from headstart.metrics.sample_efficiency.curves import NOT_EVALUATED, Curves
from headstart.output.errors import UserError


def provenances_of(runs: Sequence[Run]) -> dict[str, dict[str, Any]]:
    """Return the provenance of every method, by name; a UserError where two methods have one name."""
    first: dict[str, Run] = {}
    for run in runs:
        for name in run.curves.methods:
            before = first.setdefault(name, run)
            if run.describe(name) != before.describe(name):
                pair = f"{str(run.folder)!r} differs from {str(before.folder)!r}"
                raise UserError(f"runs: {pair} in the method {name}; give one of them another name")
    return {name: run.describe(name) for run in runs for name in run.curves.methods}


def join(runs: Sequence[Run], limit: int | None) -> Curves:
    """Join the traces of runs by method and ordering; a trace may come more than once.

    Args:
        runs: The runs.
        limit: The sample limit; None for that of the longest run.

    Raises:
        UserError: Two runs differ in a trace.
    """
    longest = max((run.curves for run in runs), key=lambda curves: len(curves.samples_seen))
    limit = limit or longest.limit
    if len(runs) == 1:
        return replace(longest, limit=limit)
    methods = list(dict.fromkeys(name for run in runs for name in run.curves.methods))
    orderings = list(dict.fromkeys(number for run in runs for number in run.curves.orderings.tolist()))
    correct = np.full((len(methods), len(orderings), len(longest.samples_seen)), NOT_EVALUATED)

    for run in runs:
        names, numbers, traces = run.curves.methods, run.curves.orderings.tolist(), run.curves.correct
        rows, columns = [methods.index(name) for name in names], [orderings.index(number) for number in numbers]
        block = np.ix_(rows, columns, range(traces.shape[-1]))
        before = correct[block]
        differing = (before != traces) & (before >= 0) & (traces >= 0)
        if differing.any():
            m, k, _ = np.argwhere(differing)[0].tolist()
            again = f"of the method {names[m]} in ordering {numbers[k]} again, and differently"
            raise UserError(f"runs: {str(run.folder)!r} holds the trace {again}; leave one out")

        # Evaluated counts take precedence over skipped ones, and these over missing ones.
        is_known = (before >= 0) | (traces == NOT_EVALUATED)
        correct[block] = np.where(is_known, before, traces)
    return replace(longest, methods=methods, orderings=np.array(orderings), correct=correct, limit=limit)


def in_common(curves: Curves) -> tuple[Curves, list[str]]:
    """Select the orderings that every method has, with a remark on the number of orderings of each method."""
    common = np.asarray(curves.present.all(axis=0))
    if common.all():
        return curves, []
    counts = ", ".join(f"{name} {count}" for name, count in zip(curves.methods, curves.present.sum(1), strict=True))
    if not common.any():
        raise UserError(
            f"methods: there is no ordering with a finished trace of each (orderings: {counts}); choose among them "
            "by --methods"
        )
    remark = f"Of {len(common)} orderings those {common.sum()} are taken that every method has ({counts})."
    return replace(curves, orderings=curves.orderings[common], correct=curves.correct[:, common]), [remark]


def limit_to_known(curves: Curves) -> Curves:
    """Lower the sample limit to the samples up to which it is known whether each trace meets the criterion.

    Raises:
        UserError: Skipped evaluations would decide about a trace.
    """
    if curves.is_open:
        raise UserError(
            f"threshold: evaluations that were left out would decide about {curves.threshold} at {curves.consecutive} "
            "evaluations; lazy evaluation knows its own criterion alone, so take that, or run headstart train with "
            "--criterion.evaluation=every"
        )
    samples, _ = curves.samples_to_criterion()
    return replace(curves, limit=known_until(curves, samples))


def known_until(curves: Curves, samples: NDArray[np.float64]) -> int:
    """Return the samples up to which it is known whether each trace meets a criterion.

    A trace ends once all traces of its run have met the run's criterion. A trace that has not met a stricter criterion
    by then is censored where it ends, not at the sample limit.

    Args:
        curves: The traces.
        samples: Samples to criterion, infinite where it is not met, `[methods, orderings]`.
    """
    censored = np.isinf(samples)
    if not censored.any():
        return curves.limit
    last = int(curves.ends[censored].min())
    # If fewer samples are left than one evaluation takes, the criterion cannot be met before the limit.
    return curves.limit if last + int(curves.samples_seen[0]) > curves.limit else min(last, curves.limit)

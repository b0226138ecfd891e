"""Traces of several runs put together, and what is known of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from headstart.evaluation.runs import Run
from headstart.metrics.sample_efficiency.curves import NOT_EVALUATED, Curves
from headstart.output.errors import UserError


def require_same_methods(runs: Sequence[Run]) -> None:
    """Check that what has one name is one method, of one source."""
    first: dict[str, Run] = {}
    for run in runs:
        for name in run.curves.methods:
            before = first.setdefault(name, run)
            if run.describe(name) != before.describe(name):
                pair = f"{str(run.folder)!r} differs from {str(before.folder)!r}"
                raise UserError(f"runs: {pair} in the method {name}; give one of them another name")


def join(runs: Sequence[Run], limit: int | None) -> Curves:
    """Put the traces of runs together, by method and ordering; a trace may come more than once."""
    if len(runs) == 1:
        return replace(runs[0].curves, limit=limit or runs[0].curves.limit)
    methods = list(dict.fromkeys(name for run in runs for name in run.curves.methods))
    orderings = list(dict.fromkeys(number for run in runs for number in run.curves.orderings.tolist()))
    longest = max((run.curves for run in runs), key=lambda curves: len(curves.samples_seen))
    correct = np.full((len(methods), len(orderings), len(longest.samples_seen)), NOT_EVALUATED)
    row, column = ({one: place for place, one in enumerate(many)} for many in (methods, orderings))
    for run in runs:
        names, numbers, traces = run.curves.methods, run.curves.orderings.tolist(), run.curves.correct
        block = np.ix_([row[name] for name in names], [column[number] for number in numbers], range(traces.shape[-1]))
        there = correct[block]
        differing = (there != traces) & (there >= 0) & (traces >= 0)
        if differing.any():
            m, k, _ = np.argwhere(differing)[0].tolist()
            again = f"of the method {names[m]} in ordering {numbers[k]} again, and differently"
            raise UserError(f"runs: {str(run.folder)!r} holds the trace {again}; leave one out")
        # What one has evaluated, then what one has left out.
        is_known = (there >= 0) | (traces == NOT_EVALUATED)
        correct[block] = np.where(is_known, there, traces)
    return replace(
        longest, methods=methods, orderings=np.array(orderings), correct=correct, limit=limit or longest.limit
    )


def in_common(curves: Curves) -> tuple[Curves, list[str]]:
    """Take the orderings that every method has, and say which methods lack others."""
    there = curves.correct[..., 0] != NOT_EVALUATED
    common = there.all(0)
    if common.all():
        return curves, []
    counts = ", ".join(f"{name} {count}" for name, count in zip(curves.methods, there.sum(1), strict=True))
    if not common.any():
        raise UserError(
            f"methods: there is no ordering with a finished trace of each (orderings: {counts}); choose among them "
            "by --methods"
        )
    remark = f"Of {len(common)} orderings those {common.sum()} are taken that every method has ({counts})."
    return replace(curves, orderings=curves.orderings[common], correct=curves.correct[:, common]), [remark]


def require_known(curves: Curves) -> None:
    """Check that a criterion can be read from traces, of which evaluations may have been left out.

    Raises:
        UserError: Of some trace it cannot.
    """
    if curves.is_open:
        raise UserError(
            f"threshold: evaluations that were left out would decide about {curves.threshold} at {curves.consecutive} "
            "evaluations; lazy evaluation knows its own criterion alone, so take that, or run headstart train with "
            "--criterion.evaluation=every"
        )


def known_until(curves: Curves, ends: NDArray[np.int64], samples: NDArray[np.float64]) -> int:
    """Give the samples up to which it is known whether each trace meets a criterion.

    A trace ends once its companions have met the criterion of their run; under a stricter one, one that has not met it
    by then is censored where it ends, not at the sample limit.

    Args:
        curves: The traces.
        ends: Where each ends, `curves.ends`.
        samples: When each meets the criterion, infinite where it does not, `[methods, orderings]`.
    """
    censored = np.isinf(samples)
    if not censored.any():
        return curves.limit
    last = int(ends[censored].min())
    # Less than one evaluation is left before the limit: nothing can be met in between.
    return curves.limit if last + int(curves.samples_seen[0]) > curves.limit else min(last, curves.limit)

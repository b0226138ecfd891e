"""Finished runs of headstart train, read from their folders and joined."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headstart.metrics.arrays import Floats
from headstart.metrics.sample_efficiency.curves import NOT_EVALUATED, Curves, is_open, required_correct
from headstart.metrics.sample_efficiency.result_warnings import method_warnings, photo_warnings
from headstart.output.errors import UserError, other_schema, reason_of
from headstart.output.version import COMPARISON_SCHEMA
from headstart.store.json_digest import read_file_of, read_sealed

FILES = ("results.json", "curves.npz", "config.yaml")
BASELINE = "baseline"
# Keys that may differ between runs that are joined.
ORDERINGS = ("orderings", "first_ordering")


@dataclass(frozen=True)
class Run:
    """A finished run.

    Attributes:
        folder: Its folder.
        document: The content of `results.json`.
        curves: Its traces.
        protocol: The protocol in the document, with the order of its stream.
    """

    folder: Path
    document: dict[str, Any]
    curves: Curves
    protocol: dict[str, Any]

    def describe(self, method: str) -> dict[str, Any]:
        """Return the key of a method."""
        method_key: dict[str, Any] = self.document["methods"][method]["key"]
        return method_key

    @property
    def is_ledger(self) -> bool:
        """Return whether the traces come from a ledger."""
        return bool(self.document.get("ledger"))

    @property
    def incomplete(self) -> str:
        """Where the run was cut off and why; empty if it is complete."""
        if self.document["complete"]:
            return ""
        seen, limit = self.curves.samples_seen[-1], self.protocol.get("max_samples", self.curves.limit)
        reason = self.document["stopped_because"]
        return f"{str(self.folder)!r} is incomplete, cut off at {seen} of {limit} samples ({reason})"

    @property
    def settings(self) -> dict[str, Any]:
        """The protocol without the numbers of the orderings."""
        return {key: value for key, value in self.protocol.items() if key not in ORDERINGS}


def is_run(folder: Path, names: Collection[str]) -> bool:
    """Return whether a folder of these names is that of a run: it has traces, or its results name their file."""
    results, traces, _ = FILES
    is_named = results in names and (folder / results).is_file()
    return traces in names or (is_named and f'"{traces}"'.encode() in (folder / results).read_bytes())


def read_run(folder: Path) -> Run:
    """Read the run in a folder.

    Raises:
        UserError: A file is missing or damaged, or has another schema.
    """
    missing = [name for name in FILES if not (folder / name).is_file()]
    if missing:
        files = " and no ".join(missing)
        raise UserError(f"runs: {str(folder)!r} has no {files}; name folders that headstart train wrote")

    try:
        document = read_sealed(folder / "results.json")
        if document.get("schema") != COMPARISON_SCHEMA:
            raise other_schema(f"runs: results.json in {str(folder)!r}", document.get("schema"), COMPARISON_SCHEMA)
        # Pages show the configuration, which must be that of the run.
        read_file_of(document, folder / "config.yaml")
        curves = Curves.load(BytesIO(read_file_of(document, folder / "curves.npz")))
        return Run(folder, document, curves, document["protocol"])
    except UserError:
        raise
    # What is as it was written has all that is looked up.
    except (ValueError, OSError) as error:
        raise UserError(
            f"runs: the files in {str(folder)!r} are damaged ({reason_of(error)}); run headstart train again"
        ) from error


def method_keys_of(runs: Sequence[Run]) -> dict[str, dict[str, Any]]:
    """Return the key of every method, by name; a UserError where two methods have one name."""
    first: dict[str, Run] = {}
    for run in runs:
        for name in run.curves.methods:
            before = first.setdefault(name, run)
            if run.describe(name) != before.describe(name):
                pair = f"{str(run.folder)!r} differs from {str(before.folder)!r}"
                raise UserError(f"runs: {pair} in the method {name}; give one of them another name")
    return {name: run.describe(name) for run in runs for name in run.curves.methods}


def warnings_of(runs: Sequence[Run], methods: Collection[str]) -> list[str]:
    """Return the warnings of the photos of runs, and of some methods.

    Args:
        runs: The runs.
        methods: Names of the methods.
    """
    warnings: list[str] = []
    for run in runs:
        warnings += [
            f"The trace of {trace} in the ledger is damaged, and left out." for trace in run.document.get("damaged", [])
        ]
        warnings += photo_warnings(run.protocol)
        for name in (name for name in run.curves.methods if name in methods):
            warnings += method_warnings(name, run.document.get("methods", {}).get(name, {}))
    return [*dict.fromkeys(warnings)]


def join(parts: Sequence[tuple[Path, Curves]], limit: int | None) -> Curves:
    """Join traces by method and ordering; a trace may come more than once.

    Args:
        parts: Folders, and the traces in them.
        limit: The sample limit; None for that of the longest traces.

    Raises:
        UserError: Two folders differ in a trace.
    """
    longest = max((curves for _, curves in parts), key=lambda curves: len(curves.samples_seen))
    limit = limit or longest.limit
    if len(parts) == 1:
        return replace(longest, limit=limit)
    methods = list(dict.fromkeys(name for _, curves in parts for name in curves.methods))
    orderings = list(dict.fromkeys(number for _, curves in parts for number in curves.orderings.tolist()))
    correct = np.full((len(methods), len(orderings), len(longest.samples_seen)), NOT_EVALUATED)

    for folder, curves in parts:
        names, numbers, traces = curves.methods, curves.orderings.tolist(), curves.correct
        rows, columns = [methods.index(name) for name in names], [orderings.index(number) for number in numbers]
        block = np.ix_(rows, columns, range(traces.shape[-1]))
        before = correct[block]
        differing = (before != traces) & (before >= 0) & (traces >= 0)
        if differing.any():
            m, k, _ = np.argwhere(differing)[0].tolist()
            again = f"of the method {names[m]} in ordering {numbers[k]} again, and differently"
            raise UserError(f"runs: {str(folder)!r} holds the trace {again}; leave one out")

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
    return curves.select_orderings(common), [remark]


def limit_to_known(curves: Curves) -> Curves:
    """Lower the sample limit to the samples up to which it is known whether each trace meets the criterion.

    Raises:
        UserError: Skipped evaluations would decide about a trace.
    """
    required = required_correct(curves.threshold, curves.all_correct)
    if is_open(curves.correct, curves.samples_seen, required, [curves.consecutive]).any():
        raise UserError(
            f"threshold: evaluations that were left out would decide about {curves.threshold} at {curves.consecutive} "
            "evaluations; lazy evaluation knows its own criterion alone, so take that, or run headstart train with "
            "--criterion.evaluation=every"
        )
    samples, _ = curves.samples_to_criterion()
    return replace(curves, limit=known_until(curves, samples, curves.ends))


def known_until(curves: Curves, samples: Floats, ends: NDArray[np.int64]) -> int:
    """Return the samples up to which it is known whether each trace meets a criterion.

    A trace ends once all traces of its run have met the run's criterion. A trace that has not met a stricter criterion
    by then is censored where it ends, not at the sample limit.

    Args:
        curves: The traces.
        samples: Samples to criterion, infinite where it is not met, `[methods, orderings]`.
        ends: Samples seen where each trace ends, `[methods, orderings]`.
    """
    censored = np.isinf(samples)
    if not censored.any():
        return curves.limit
    last = int(ends[censored].min())
    # If fewer samples are left than one evaluation takes, the criterion cannot be met before the limit.
    return curves.limit if last + int(curves.samples_seen[0]) > curves.limit else min(last, curves.limit)

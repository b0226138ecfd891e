"""`headstart sample-efficiency`: score finished runs again, joined, by another criterion, or from a ledger."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from jsonargparse.typing import PositiveInt

from headstart.evaluation.protocol_differences import find_method
from headstart.evaluation.runs import (
    Run,
    in_common,
    join,
    limit_to_known,
    method_keys_of,
    read_runs,
    require_same,
    warnings_of,
)
from headstart.evaluation.stored_traces import choose_stream, is_ledger, open_ledger, read_stream
from headstart.evaluation.trace_options import TraceOptions
from headstart.metrics.sample_efficiency.curves import Curves
from headstart.metrics.sample_efficiency.result_warnings import interval_warnings
from headstart.metrics.sample_efficiency.scores import ACCURACY_AT, score
from headstart.output.errors import UserError
from headstart.output.files import output_file, write_text
from headstart.output.printable import print_lines
from headstart.output.tables import print_scores


def sample_efficiency(
    runs: str | list[str],
    output: str | None = None,
    accuracy_at: list[PositiveInt] = ACCURACY_AT,
    overwrite: bool = False,
    **options: Any,
) -> dict[str, Any]:
    """Score finished runs of headstart train again, or all that a ledger holds, from the traces alone.

    Scores runs by another criterion without running again, and joins runs of the same comparison with different
    orderings or methods. From a ledger it reads all methods of one stream, in the orderings in which all their traces
    are finished. Methods have the names of the run that measured them first.

    Args:
        runs: Folder of a run, or a pattern such as 'runs/fine_tuning-*' for several. They may differ only in their
            orderings and methods. Or the folder of a ledger, or a list of these. A ledger beside runs adds its traces
            of the runs' stream.
        output: JSON file to write the scores to.
        accuracy_at: Numbers of samples at which the accuracy is reported.
        overwrite: Replace a file that holds something else.
        **options: Options of `TraceOptions`.

    Returns:
        The scores, as `output` holds them.
    """
    path = None if output is None else output_file("output", output)
    selection = TraceOptions(**options)
    joined, left_out = _read([runs] if isinstance(runs, str) else runs, selection)
    method_keys = method_keys_of(joined)

    curves = join(joined, min((run.curves.limit for run in joined if not run.is_ledger), default=None))
    curves = _select_methods(curves, method_keys, selection)
    remarks: list[str] = []
    if any(run.is_ledger for run in joined):
        curves, remarks = in_common(curves)
    else:
        _require_all_orderings(curves)
    curves = limit_to_known(curves)

    document = {
        "runs": [str(run.folder) for run in joined],
        "complete": all(run.document["complete"] for run in joined),
        "warnings": [
            *left_out,
            *(f"{run.incomplete}." for run in joined if run.incomplete),
            *warnings_of(joined, curves.methods),
            *interval_warnings(curves.methods, curves.samples_to_criterion()[0], curves.floor),
        ],
        "criterion": curves.criterion,
        "protocol": {**joined[0].protocol, "orderings": len(curves.orderings)},
        "orderings": curves.orderings.tolist(),
        "restricted_at": curves.limit,
        **score(curves, accuracy_at),
    }
    for name, scores in document["methods"].items():
        scores["key"] = method_keys[name]
    if path is not None:
        write_text(path, json.dumps(document, indent=1, allow_nan=False), overwrite)

    print_scores(document)
    print_lines(remarks)
    return document


def _read(paths: Sequence[str], selection: TraceOptions) -> tuple[list[Run], list[str]]:
    """Read runs, then the traces of their stream in ledgers; runs that are damaged or not finished are named."""
    ledgers = [Path(path) for path in paths if is_ledger(Path(path))]
    if selection.where and not ledgers:
        raise UserError("where: chooses a stream of a ledger, but no folder of one is given")
    runs, left_out = read_runs([path for path in paths if not is_ledger(Path(path))])
    runs = [replace(run, curves=replace(run.curves, **selection.criterion)) for run in runs]
    if runs:
        settings = [{**run.settings, **run.curves.criterion} for run in runs]
        require_same([run.folder for run in runs], settings, "only methods and orderings may differ")
    for folder in ledgers:
        runs.append(_read_ledger(folder, runs, selection))
    return runs, left_out


def _read_ledger(folder: Path, runs: Sequence[Run], selection: TraceOptions) -> Run:
    """Read a ledger's traces of the stream of the runs before, under their criterion and names."""
    stream, criterion = None, selection.criterion
    if runs:
        first = runs[0]
        criterion = {"threshold": first.curves.threshold, "consecutive": first.curves.consecutive}
        stream = first.protocol.get("stream_sha256")
        if stream is None:
            raise UserError(
                f"runs: {str(first.folder)!r} does not say which stream of a ledger it is of; give the same command of "
                "train.py again, or the run alone"
            )
    with open_ledger(folder) as ledger:
        streams = ledger.streams()
        digest = choose_stream(folder, streams, selection.where, stream)
        return read_stream(ledger, digest, streams[digest], runs, criterion)


def _select_methods(curves: Curves, method_keys: Mapping[str, Mapping[str, Any]], selection: TraceOptions) -> Curves:
    """Select the baseline, which comes first, and the other methods."""
    names = [find_method(curves.methods, method_keys, selection.baseline, "baseline")]
    if selection.methods is None:
        names += curves.methods
    else:
        names += [find_method(curves.methods, method_keys, name, "methods") for name in selection.methods]
    return curves.select(list(dict.fromkeys(names)))


def _require_all_orderings(curves: Curves) -> None:
    """Raise a UserError unless every method has every ordering."""
    for name, present in zip(curves.methods, curves.present, strict=True):
        if not present.all():
            absent = curves.orderings[~present].tolist()
            raise UserError(f"runs: the method {name} is in no run of the orderings {absent}; add one")

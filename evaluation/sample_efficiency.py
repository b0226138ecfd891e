"""Score finished runs again: under another criterion, several runs joined, or all that a ledger holds."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from jsonargparse.typing import ClosedUnitInterval, PositiveInt

from headstart.evaluation.joined_runs import in_common, join, known_until, require_known, require_same_methods
from headstart.evaluation.runs import Run, read_runs, require_same
from headstart.evaluation.stored_traces import BASELINE, find_method, is_ledger, read_stored
from headstart.metrics.sample_efficiency.curves import NOT_EVALUATED, Curves
from headstart.metrics.sample_efficiency.scores import ACCURACY_AT, score
from headstart.output.errors import UserError
from headstart.output.files import output_file, write_text
from headstart.output.printable import print_lines
from headstart.output.tables import print_scores
from headstart.store.json_digest import digest_of
from headstart.store.ledger import LedgerError

CRITERION = ("measure", "threshold", "consecutive")


def sample_efficiency(
    runs: str | list[str],
    threshold: ClosedUnitInterval | None = None,
    consecutive: PositiveInt | None = None,
    where: dict[str, Any] | None = None,
    baseline: str = BASELINE,
    methods: list[str] | None = None,
    output: str | None = None,
    accuracy_at: list[PositiveInt] = ACCURACY_AT,
    overwrite: bool = False,
) -> dict[str, Any]:
    """Score finished runs of headstart train again, or all that a ledger holds, from the traces alone.

    Gives the table of another criterion without running again, and joins runs of the same comparison that fed
    different orderings or methods. Of a ledger it takes all methods that were fed one stream, in the orderings in which
    the traces of all of them are finished; methods are called as in the run that measured them first.

    Args:
        runs: Folder of a run, or a pattern such as 'runs/fine_tuning-*' for several, which must differ in nothing but
            their orderings and methods; or the folder of a ledger; or a list of these: a ledger beside runs adds what
            it holds of the runs' stream.
        threshold: Validation accuracy that counts as reached; by default the runs' own, 0.8 of a ledger alone.
        consecutive: Evaluations in a row at which it must be reached; by default the runs' own, 10 of a ledger alone.
        where: Which of a ledger's streams, by what differs between them: --where.batch_size=8.
        baseline: The method that the others are compared with: its name, or its class where that is the only one of it.
        methods: Names or classes of the other methods; all by default.
        output: JSON file to write the scores to.
        accuracy_at: Numbers of samples at which the accuracy is given.
        overwrite: Replace a file that holds something else.

    Returns:
        The scores, as `output` holds them.
    """
    path = None if output is None else output_file("output", output)
    asked: dict[str, Any] = {} if threshold is None else {"threshold": float(threshold)}
    asked |= {} if consecutive is None else {"consecutive": int(consecutive)}
    given = [runs] if isinstance(runs, str) else runs
    ledgers = [Path(each) for each in given if is_ledger(Path(each))]
    if where and not ledgers:
        raise UserError("where: chooses a stream of a ledger, but no folder of one is given")
    found = read_runs([each for each in given if not is_ledger(Path(each))])
    found = [replace(run, curves=replace(run.curves, **asked)) for run in found]
    if found:
        settings = [{**run.settings, **_criterion(run)} for run in found]
        require_same(found, settings, "only methods and orderings may differ")
    limit = min((run.curves.limit for run in found), default=None)
    for ledger in ledgers:
        found.append(_read_ledger(ledger, found, where or {}, asked))
    require_same_methods(found)
    provenances = {name: run.describe(name) for run in found for name in run.curves.methods}
    curves = _choose_methods(join(found, limit), provenances, baseline, methods)
    curves, remarks = in_common(curves) if ledgers else (_require_whole(curves), [])
    require_known(curves)
    curves = replace(curves, limit=known_until(curves, curves.ends, curves.samples_to_criterion()[0]))
    document = {
        "runs": [str(run.folder) for run in found],
        "complete": all(run.document["complete"] for run in found),
        "criterion": _criterion(found[0]),
        "protocol": {**found[0].protocol, "orderings": len(curves.orderings)},
        "orderings": curves.orderings.tolist(),
        "restricted_at": curves.limit,
        **score(curves, accuracy_at),
    }
    for name, scores in document["methods"].items():
        scores["provenance"] = provenances[name]
    if path is not None:
        write_text(path, json.dumps(document, indent=1, allow_nan=False), overwrite)
    print_scores(document)
    unfinished = sum(run.document.get("unfinished", 0) for run in found)
    print_lines([*remarks, *[f"{unfinished} traces of the ledger are not finished, and left out."] * bool(unfinished)])
    return document


def _criterion(run: Run) -> dict[str, Any]:
    return {key: getattr(run.curves, key) for key in CRITERION}


def _read_ledger(folder: Path, before: Sequence[Run], where: Mapping[str, Any], asked: Mapping[str, Any]) -> Run:
    """Read a ledger's traces of the stream of what was read before, under its criterion and names."""
    stream, criterion = None, dict(asked)
    if before:
        first = before[0]
        criterion = {"threshold": first.curves.threshold, "consecutive": first.curves.consecutive}
        stream = first.protocol.get("stream_sha256")
        if stream is None:
            raise UserError(
                f"runs: {str(first.folder)!r} does not say which stream of a ledger it is of; give the same command of "
                "train.py again, or the run alone"
            )
    known = {digest_of(run.describe(name)): name for run in before for name in run.curves.methods}
    try:
        return read_stored(folder, where, stream, known, criterion)
    except LedgerError as error:
        raise UserError(f"runs: the ledger {error}; give another folder") from error


def _choose_methods(
    curves: Curves, provenances: Mapping[str, Mapping[str, Any]], baseline: str, methods: Sequence[str] | None
) -> Curves:
    """Put the baseline first, and take of the others those that are asked for."""
    first = find_method(curves.methods, provenances, baseline, "baseline")
    others = curves.methods
    if methods is not None:
        others = [find_method(curves.methods, provenances, name, "methods") for name in methods]
    names = list(dict.fromkeys([first, *others]))
    return replace(curves, methods=names, correct=curves.correct[[curves.methods.index(name) for name in names]])


def _require_whole(curves: Curves) -> Curves:
    """Check that every method has every ordering."""
    for name, first in zip(curves.methods, curves.correct[..., 0], strict=True):
        absent = curves.orderings[first == NOT_EVALUATED].tolist()
        if absent:
            raise UserError(f"runs: the method {name} is in no run of the orderings {absent}; add one")
    return curves

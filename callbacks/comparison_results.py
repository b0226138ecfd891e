"""The results of a comparison: its document, files and table, and what loggers show of it."""

import platform
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from lightning.pytorch import Trainer
from numpy.typing import NDArray

from headstart.callbacks.comparison_run import ComparisonRun
from headstart.callbacks.dashboard import DashboardLogger
from headstart.callbacks.run_folder import print_written
from headstart.metrics.sample_efficiency.curves import NOT_EVALUATED, SKIPPED, Curves
from headstart.metrics.sample_efficiency.result_warnings import (
    all_warnings,
    interval_warnings,
    largest_class_warning,
    last_evaluation_faults,
)
from headstart.metrics.sample_efficiency.scores import score
from headstart.output.printable import print_lines, say
from headstart.output.tables import print_scores

DRAWN = (
    "drew from a global generator while several orderings ran side by side. Unless it drew the same for each, which "
    "dropout does not, its traces depend on which ran together; see docs/methods.md."
)


def write_results(run: ComparisonRun, trainer: Trainer) -> None:
    """Write the files of a run, unless it was cut off and its folder holds complete results of the same.

    Args:
        run: The run, whose traces are measured or cut off.
        trainer: The trainer.
    """
    traces, criterion = run.traces, run.criterion
    measured, complete = np.all(traces.lengths > 0, axis=0), not traces.missing.any()
    cut_off = "an error ended the run" if criterion.ended_by_user_error else criterion.cut_off_because
    if not measured.any():
        say(f"INCOMPLETE: {cut_off}, before every method was measured. Nothing is written.")
        return
    if not (complete or run.overwrite) and run.before.get("complete"):
        say(f"INCOMPLETE: {cut_off}. The complete results in {run.folder.path} are kept.")
        return

    if complete:
        criterion.log_stored(trainer, int(traces.lengths.max()))
    curves = _curves(run, complete, measured)
    document = _document(run, trainer, complete, curves, traces.diverged[:, measured])
    paths = _write_files(run, curves, document)
    document = run.document = run.folder.document

    print_scores(document)
    print_lines([*_remarks_on_traces(run), *_remarks_on_code(run)])
    if not measured.all():
        say(f"Of {len(measured)} orderings, only {measured.sum()} are in the results. Repeat the command to continue.")
    print_written(f"Complete: {document['stopped_because']}" if complete else f"INCOMPLETE: {cut_off}", paths)
    # Loggers may keep what was printed.
    for logger in trainer.loggers:
        if isinstance(logger, DashboardLogger):
            logger.publish(document, curves, paths)


def _write_files(run: ComparisonRun, curves: Curves, document: dict[str, Any]) -> list[Path]:
    """Write the files of a run; without learning curves if it was evaluated lazily."""
    # matplotlib is slow to import.
    from headstart.callbacks.plots import plot_criterion_reached, plot_learning_curves
    from headstart.output.figures import setting_in_words, writers

    protocol = document["protocol"]
    setting = setting_in_words(f"{protocol['dataset']}, {protocol['backbone']} ({Path(protocol['weights']).name})")
    arguments = (curves, f"{setting}, batch size {protocol['batch_size']}", document["complete"])
    files: dict[str, Callable[[Path], object]] = {}
    if not curves.is_lazy:
        files |= writers("learning_curves", plot_learning_curves(*arguments), run.figure_formats)
    files |= writers("criterion_reached", plot_criterion_reached(*arguments), run.figure_formats)
    paths = run.folder.write(document, {"curves.npz": curves.content()}, files)

    # Earlier results may have left figures in other formats, or learning curves.
    for name in ("learning_curves", "criterion_reached"):
        for path in set(run.folder.path.glob(f"{name}.*")) - set(paths):
            path.unlink()
    return paths


def _curves(run: ComparisonRun, complete: bool, measured: NDArray[np.bool_]) -> Curves:
    """Return the traces of the orderings in which every method was measured, `[orderings]`."""
    traces, stream = run.traces, run.stream
    lengths, met = traces.lengths[:, measured], traces.met[:, measured]
    ends = traces.grid.samples_seen[lengths - 1]
    return Curves(
        methods=run.methods,
        orderings=np.array(stream.orderings)[measured],
        samples_seen=traces.grid.samples_seen[: lengths.max()],
        correct=np.moveaxis(traces.correct[: lengths.max(), :, measured], 0, -1),
        validation_size=len(stream.validation_labels),
        all_correct=traces.grid.all_correct,
        measure=run.criterion.measure,
        limit=stream.max_samples if complete else int(ends[~met].min(initial=stream.max_samples)),
        threshold=run.criterion.threshold,
        consecutive=run.criterion.consecutive,
    )


def _document(
    run: ComparisonRun, trainer: Trainer, complete: bool, curves: Curves, diverged_at: NDArray[np.int64]
) -> dict[str, Any]:
    """Return the content of results.json."""
    traces, criterion = run.traces, run.criterion
    scores = score(curves, run.accuracy_at)
    drew_at_once = [bool(drew.any()) for drew in traces.drew]
    details = zip(run.methods, run.keys, diverged_at, drew_at_once, curves.correct, strict=True)
    for name, key, diverged, drew, correct in details:
        at = [None if index == NOT_EVALUATED else int(traces.grid.samples_seen[index]) for index in diverged]
        scores["methods"][name] |= {"diverged_at": at, "key": key.describe()["method"]}
        if faults := [*[DRAWN] * drew, *last_evaluation_faults(correct)]:
            scores["methods"][name]["warnings"] = faults

    reason = criterion.cut_off_because
    if complete:
        met = traces.met.all() and not traces.grid.to_limit
        reason = "every method met the criterion in every ordering" if met else "the sample limit was reached"

    criteria = {
        "measure": criterion.measure,
        "threshold": criterion.threshold,
        "consecutive": criterion.consecutive,
        "evaluation": "lazy" if criterion.is_lazy else "every",
        "until": criterion.until,
        "required_correct": traces.grid.required,
        "all_correct": traces.grid.all_correct,
        "largest_class": run.largest_class,
    }
    stream = run.keys[0].describe()["stream"]
    protocol = {**run.stream.describe(), **stream, "stream_sha256": run.keys[0].trace(0).stream}

    times = {
        "computed_traces": int((traces.measured & ~traces.missing).sum()),
        "reused_traces": int(traces.reused.sum()),
    }

    warnings = [*largest_class_warning(criteria), *all_warnings({"protocol": protocol, **scores})]
    warnings += interval_warnings(curves.methods, curves.samples_to_criterion()[0], curves.floor)
    return {
        "complete": complete,
        "stopped_because": reason,
        "warnings": warnings,
        "criterion": criteria,
        "protocol": protocol,
        "evaluations": len(curves.samples_seen),
        "samples_seen": int(curves.samples_seen[-1]),
        "restricted_at": curves.limit,
        **scores,
        # Another file may hold the same weights.
        "weights_file_sha256": run.stream.spec.file_digest,
        "environment": _environment(run, trainer),
        "times": times,
    }


def _environment(run: ComparisonRun, trainer: Trainer) -> dict[str, Any]:
    """Describe the device, and what the stream knows of the machine."""
    device = trainer.strategy.root_device
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else platform.processor() or platform.machine()
    return {"device": f"{device.type} ({name})", **run.stream.environment()}


def _remarks_on_traces(run: ComparisonRun) -> list[str]:
    """Return what a reader of the results should know of lazy evaluation, and of the ledger."""
    traces, remarks = run.traces, []
    skipped = traces.correct == SKIPPED
    if skipped.any():
        made = 1 - skipped.sum() / (traces.correct != NOT_EVALUATED).sum()
        remarks.append(
            f"Evaluated lazily, {made:.0%} of the evaluations: no learning curves, no accuracies in between, no other "
            "criterion than this one."
        )
    if reused := int(traces.reused.sum()):
        remarks.append(f"{reused} of {traces.measured.size} traces were in the ledger, {traces.ledger.location}.")
    return remarks


def _remarks_on_code(run: ComparisonRun) -> list[str]:
    """Return whose traces are not stored, and why."""
    remarks, imported = [], ", ".join(run.traces.imported)
    for name, is_own, doubts in zip(run.methods, run.has_user_code, run.doubts, strict=True):
        if is_own and imported and not doubts:
            doubts = [f"{imported} first ran while they were measured; import it at the top of a file"]
        if doubts:
            remarks.append(f"Traces of {name} are not stored: {'; '.join(doubts)}.")
    return remarks

"""The results of a run of a comparison: its files, the loggers' copy of them, and the printed scores."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lightning
import numpy as np
import torch
from lightning.pytorch import Trainer
from numpy.typing import NDArray

from headstart.callbacks.comparison_run import ComparisonRun
from headstart.callbacks.dashboard import DashboardLogger
from headstart.callbacks.run_folder import environment, print_written
from headstart.metrics.sample_efficiency.curves import NOT_EVALUATED, SKIPPED, Curves
from headstart.metrics.sample_efficiency.scores import score
from headstart.output.printable import print_lines, say
from headstart.output.tables import print_scores

SCHEMA = 2


def write_results(run: ComparisonRun, trainer: Trainer) -> None:
    """Write the files of a run, unless it was cut off and its folder holds complete results of the same.

    Args:
        run: The run, whose traces are measured or cut off.
        trainer: The trainer.
    """
    traces, criterion = run.traces, run.criterion
    measured, complete = np.all(traces.lengths > 0, axis=0), not traces.missing.any()
    cut_off = "a mistake ended it" if criterion.is_mistaken else criterion.cut_off_because
    if not measured.any():
        say(f"INCOMPLETE: {cut_off}, before every method was measured. Nothing is written.")
        return
    if not (complete or run.overwrite) and run.before.get("complete"):
        say(f"INCOMPLETE: {cut_off}. The complete results in {run.folder.path} are kept.")
        return

    criterion.log_stored(trainer, int(traces.lengths.max()))
    curves = _curves(run, complete, measured)
    document = _document(run, trainer, complete, curves, traces.diverged[:, measured])
    paths = _write_files(run, curves, document)
    run.document = document
    for logger in trainer.loggers:
        if isinstance(logger, DashboardLogger):
            logger.publish(document, paths)

    print_scores(document)
    print_lines([*_remarks(run), *sorted(run.checkpoints.remarks)])
    if not measured.all():
        say(f"Of {len(measured)} orderings, only {measured.sum()} are in the results; the same command goes on.")
    print_written(f"Complete: {document['stopped_because']}" if complete else f"INCOMPLETE: {cut_off}", paths)


def _write_files(run: ComparisonRun, curves: Curves, document: dict[str, Any]) -> list[Path]:
    """Write the files of a run; without learning curves if it was evaluated lazily."""
    # matplotlib is slow to import.
    from headstart.callbacks.plots import plot_criterion_reached, plot_learning_curves
    from headstart.output.figures import writers

    protocol = document["protocol"]
    fed = f"{protocol['dataset']}: {protocol['backbone']} ({Path(protocol['weights']).name})"
    arguments = (curves, f"{fed}, batch size {protocol['batch_size']}", document["complete"])
    files: dict[str, Callable[[Path], object]] = {"curves.npz": curves.save}
    if not curves.is_lazy:
        files |= writers("learning_curves", plot_learning_curves(*arguments), run.figure_formats)
    files |= writers("criterion_reached", plot_criterion_reached(*arguments), run.figure_formats)
    paths = run.folder.write(document, files)

    if curves.is_lazy:
        # Earlier results may have left them.
        for path in run.folder.path.glob("learning_curves.*"):
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
    for method, origin, diverged in zip(run.methods, run.provenance, diverged_at, strict=True):
        at = [None if index == NOT_EVALUATED else int(traces.grid.samples_seen[index]) for index in diverged]
        scores["methods"][method] |= {"diverged_at": at, "provenance": origin}

    reason = criterion.cut_off_because
    if complete:
        met = traces.met.all()
        reason = "every method met the criterion in every ordering" if met else "the sample limit was reached"

    criteria = {
        "measure": criterion.measure,
        "threshold": criterion.threshold,
        "consecutive": criterion.consecutive,
        "evaluation": "lazy" if criterion.is_lazy else "every",
        "required_correct": traces.grid.required,
        "all_correct": traces.grid.all_correct,
        "largest_class": run.largest_class,
    }
    protocol = {**run.stream.protocol(), **({} if run.registry is None else {"registry_sha256": run.registry})}
    protocol |= {"evaluate_every": criterion.evaluate_every, "stream_sha256": run.stream_digest}

    times = {
        "seconds": round(time.perf_counter() - run.started, 3),
        "computed_traces": int(traces.measured.sum()),
        "reused_traces": int((~traces.measured).sum()),
    }

    return {
        "schema": SCHEMA,
        "complete": complete,
        "stopped_because": reason,
        "criterion": criteria,
        "protocol": protocol,
        "evaluations": len(curves.samples_seen),
        "samples_seen": int(curves.samples_seen[-1]),
        "restricted_at": curves.limit,
        **scores,
        "environment": _environment(run, trainer),
        "times": times,
    }


def _environment(run: ComparisonRun, trainer: Trainer) -> dict[str, Any]:
    device = trainer.strategy.root_device
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else platform.processor() or platform.machine()
    return {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "lightning": lightning.__version__,
        "device": f"{device.type} ({name})",
        **environment(),
        **run.stream.environment(),
    }


def _remarks(run: ComparisonRun) -> list[str]:
    """Return what a reader should know of the criterion, of stored and changed traces, and of what methods did."""
    traces, criterion = run.traces, run.criterion
    remarks = []
    if run.largest_class >= traces.grid.required:
        reached = f"{run.largest_class / traces.grid.all_correct:.0%} {criterion.measure.replace('_', ' ')}"
        balanced = "--criterion.measure=balanced_accuracy, or " * (criterion.measure == "accuracy")
        remarks.append(
            f"WARNING: to predict the largest class alone meets the threshold ({reached}), so that samples to "
            f"criterion say nothing; take {balanced}a higher --criterion.threshold."
        )

    skipped, reused = traces.correct == SKIPPED, int((~traces.measured).sum())
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
        for name in sorted(run.comparison.drew)
    ]
    for name, changed, diverged in zip(run.methods, traces.changed, traces.diverged != NOT_EVALUATED, strict=True):
        if changed.any():
            remarks.append(f"WARNING: {name} came out differently from its stored traces in {changed.sum()} orderings.")
        if diverged.any():
            remarks.append(f"WARNING: {name} gave predictions that are not finite in {diverged.sum()} orderings.")
    return remarks

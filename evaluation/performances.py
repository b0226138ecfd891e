"""`headstart performances`: the performances of source models on targets, from runs of headstart train."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from jsonargparse.typing import PositiveInt

from headstart.contract.tables.csv_tables import PERFORMANCE_COLUMNS, WARNING
from headstart.contract.tables.grouping import grouped
from headstart.evaluation.runs import BASELINE, Run, find_folders, read_run, warnings_of
from headstart.evaluation.transfer_results import (
    TASK,
    Trained,
    TransferResult,
    name_source,
    pair_results,
    pair_warnings,
    read_accuracies,
    rename,
    task_of,
)
from headstart.metrics.arrays import Floats
from headstart.metrics.sample_efficiency.scores import restricted
from headstart.output.errors import UserError
from headstart.output.files import output_file, write_text
from headstart.output.markup import csv_text
from headstart.output.printable import print_lines, say
from headstart.output.tables import format_number, print_table

Performance = Literal["accuracy", "samples_to_criterion"]

# Settings that all runs share, that all sources of a target share, and that all targets of a source share.
EVERYWHERE = (
    *("batch_size", "evaluate_every", "inputs", "feature_precision"),
    *("batch_norm", "dropout", "precision"),
)
OF_A_TARGET = ("classes", "train_size", "validation_size", "seed")
OF_A_SOURCE = ("weights_sha256", "model_args", "preprocessing", "trainable_from")


def performances(
    runs: str | list[str],
    performance: Performance = "accuracy",
    samples: PositiveInt | None = None,
    method: str = BASELINE,
    trained: Trained | None = None,
    names: dict[str, str] | None = None,
    output: str = "runs/performances.csv",
    overwrite: bool = False,
) -> dict[tuple[str, str], float]:
    """Tabulate the performances of source models on targets, from finished runs of headstart train.

    Writes and prints a table of source, target, performance and warning. It is for the option `performances` of
    transferability and target-selection, and a table for audit. Runs of the same source and target with different
    orderings are joined; the performance is the mean over orderings. Runs are comparisons, or fine-tuning to the end
    (the task target_accuracy).

    The name of a source is its entry in the registry if the run has one, else that of its weights. This is a file
    without folder and ending, the backbone alone for `DEFAULT`, or both, such as `resnet18_random`. The name of a
    target is that of its data set.

    Args:
        runs: Folder of a run, or a pattern such as 'runs/sources-*' for several; or a list of these.
        performance: `accuracy` is that on the validation set after `samples` samples. `samples_to_criterion` is the
            sample limit less the mean of min(samples to criterion, limit), so that more is better.
        samples: Number of samples of `accuracy`. The last evaluation up to there counts. By default as many as all runs
            have fed.
        method: Method of the runs, for comparisons.
        trained: For fine-tuning: `all` for the whole network, `tail` for the modules behind a freeze boundary, or the
            `head` alone. Needed if the runs differ in it.
        names: Other names for sources and targets, by their default names: '{resnet18_random: resnet18}'.
        output: CSV file to write.
        overwrite: Replace a file that holds something else.

    Returns:
        The performances, by source and target.
    """
    if samples is not None and performance != "accuracy":
        raise UserError(f"samples: {samples} given, which belong to --performance=accuracy and not to {performance}")
    path = output_file("output", output)

    folders, remarks = find_folders(runs), list[str]()
    if _are_accuracies(folders):
        if performance != "accuracy" or samples is not None or method != BASELINE:
            raise UserError("runs: they are of fine-tuning, which has no --performance, --samples or --method")
        results, title = read_accuracies(folders, trained)
    else:
        if trained is not None:
            raise UserError(f"trained: {trained} given, but the runs are comparisons; give those of fine-tuning")
        comparisons = [read_run(folder) for folder in folders]
        results, title = _read_comparisons(comparisons, performance, method, samples)
        remarks = _remarks(comparisons, performance, method)

    results = rename(results, names or {})
    pairs, warnings = pair_results(results), pair_warnings(results)
    table = {pair: float(values.mean()) for pair, values in pairs.items()}
    rows = [[*pair, value, " ".join(warnings[pair])] for pair, value in table.items()]
    write_text(path, csv_text((*PERFORMANCE_COLUMNS, WARNING), rows), overwrite)

    cells = [[*pair, format_number(table[pair]), str(len(values))] for pair, values in pairs.items()]
    print_table(
        f"Performance: {title}, mean over orderings", [["source", "target", "performance", "orderings"], *cells]
    )
    affected = grouped((warning, " on ".join(pair)) for pair, its in warnings.items() for warning in its)
    print_lines([*(f"WARNING: {', '.join(its)}: {warning}" for warning, its in affected.items()), *remarks])
    say(f"wrote {path}")
    return table


def _are_accuracies(folders: Sequence[Path]) -> bool:
    """Return whether runs are fine-tuning; a UserError where they differ in the task, or it has no performances."""
    tasks = {task_of(folder): folder for folder in reversed(folders)}
    for task, folder in tasks.items():
        if task not in (TASK, "comparison"):
            raise UserError(f"runs: {str(folder)!r} is of {task}, which has no performance; leave it out")
    if len(tasks) > 1:
        one, other = (repr(str(tasks[task])) for task in ("comparison", TASK))
        raise UserError(f"runs: {one} and {other} are a comparison and fine-tuning; give runs of one kind")
    return TASK in tasks


def _read_comparisons(
    runs: Sequence[Run], performance: Performance, method: str, samples: int | None
) -> tuple[list[TransferResult], str]:
    """Return the performances of comparisons, and their title."""
    for run in runs:
        if not run.document["complete"]:
            reason = run.document["stopped_because"]
            raise UserError(f"runs: {str(run.folder)!r} is incomplete ({reason}); leave it out, or run it to its end")
        if method not in run.curves.methods:
            methods = ", ".join(run.curves.methods)
            raise UserError(f"method: {method!r} is not in {str(run.folder)!r}, which has {methods}")

    at = min(int(run.curves.samples_seen[-1]) for run in runs) if samples is None else int(samples)
    title = f"accuracy of {method} after {at} samples"
    if performance == "samples_to_criterion":
        title = f"samples of {runs[0].curves.limit} that {method} left when it met the criterion"

    results = [
        TransferResult(
            run.folder,
            name_source(str(run.protocol["backbone"]), str(run.protocol["weights"]), _backbone(run).get("registry")),
            str(run.protocol["dataset"]),
            dict(zip(run.curves.orderings.tolist(), _values(run, performance, method, at), strict=True)),
            {
                "common": _common_settings(run, performance, method),
                "source": _settings(run, OF_A_SOURCE),
                "target": _settings(run, OF_A_TARGET),
                "pair": run.settings,
            },
            warnings=warnings_of([run], [method]),
        )
        for run in runs
    ]
    return results, title


def _common_settings(run: Run, performance: Performance, method: str) -> dict[str, Any]:
    keys = EVERYWHERE if performance == "accuracy" else (*EVERYWHERE, "max_samples")
    criterion = run.curves.criterion if performance == "samples_to_criterion" else {"measure": run.curves.measure}
    return {**_settings(run, keys), method: run.options(method), **criterion}


def _settings(run: Run, keys: Sequence[str]) -> dict[str, Any]:
    """Return values of the protocol; options of the backbone where the protocol has none."""
    return {key: run.protocol[key] if key in run.protocol else _backbone(run).get(key) for key in keys}


def _backbone(run: Run) -> dict[str, Any]:
    options: dict[str, Any] = run.config["data"]["init_args"]["backbone"]
    return options


def _values(run: Run, performance: Performance, method: str, at: int) -> Floats:
    """Return the performance of every ordering of a run, `[orderings]`."""
    curves, row = run.curves, run.curves.methods.index(method)
    if performance == "samples_to_criterion":
        return curves.limit - restricted(curves.samples_to_criterion()[0][row], curves.limit)

    seen = curves.samples_seen
    if not seen[0] <= at <= seen[-1]:
        ended = f"{str(run.folder)!r} was evaluated from {seen[0]} to {seen[-1]} samples, where it ended"
        raise UserError(f"samples: {at} given, but {ended}; choose a number in between")
    accuracy = curves.accuracy[row, :, int(np.searchsorted(seen, at, side="right")) - 1]
    if np.isnan(accuracy).any():
        raise UserError(
            f"performance: {method} was not evaluated at {at} samples in every ordering of {str(run.folder)!r}: "
            "lazily, or only until it met the criterion; take --performance=samples_to_criterion, fewer --samples, or "
            "run headstart train with --criterion.evaluation=every --criterion.stop_when_met=false"
        )
    return accuracy


def _remarks(runs: Sequence[Run], performance: Performance, method: str) -> list[str]:
    """Return a warning about orderings that did not meet the criterion."""
    if performance != "samples_to_criterion":
        return []
    met = [run.curves.samples_to_criterion()[0][run.curves.methods.index(method)] for run in runs]
    censored, limit = int(np.isinf(np.concatenate(met)).sum()), runs[0].curves.limit
    return [f"{censored} orderings did not meet the criterion by {limit} samples, and count as 0."] * bool(censored)

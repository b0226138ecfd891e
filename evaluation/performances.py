"""`headstart performances`: how well source models did on targets, from runs of headstart train."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from jsonargparse.typing import PositiveInt
from numpy.typing import NDArray

from headstart.evaluation.accuracies import (
    TASK,
    TITLES,
    Trained,
    name_source,
    pair_accuracies,
    read_accuracies,
    task_of,
)
from headstart.evaluation.runs import Run, find_folders, read_runs, require_different_orderings, require_same
from headstart.evaluation.tables import PERFORMANCE_COLUMNS
from headstart.metrics.sample_efficiency.scores import restricted
from headstart.output.errors import UserError
from headstart.output.files import output_file, write_text
from headstart.output.markup import csv_text
from headstart.output.printable import print_lines, say
from headstart.output.tables import format_number, print_table
from headstart.store.ledger import LedgerError

Performance = Literal["accuracy", "samples_to_criterion", "final"]
# Runs by source and target.
Pairs = Mapping[tuple[str, str], Sequence[Run]]
# Performances of the orderings by source and target.
Outcomes = Mapping[tuple[str, str], NDArray[np.float64]]

BASELINE = "baseline"
# What must be the same for all runs, for all sources of a target, and for all targets of a source.
EVERYWHERE = (
    *("batch_size", "evaluate_every", "inputs", "feature_precision"),
    *("batch_norm", "dropout", "views", "precision"),
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
    """Tabulate how well source models did on targets, from finished runs of headstart train.

    Writes and prints a table of source, target and performance, which the option `performances` of transferability
    and target-selection takes, and which so comes into the table that stability reads. Runs of the same source and
    target that fed different orderings are joined; the performance is the mean over orderings. Runs are comparisons, or
    fine-tuning to the end (the task target_accuracy), whose accuracies a ledger's folder gives as well.

    A source is called by the registry's entry where the run names one; else by its weights: a file without folder and
    ending, the backbone alone for `DEFAULT`, or both, such as `resnet18_random`. A target is called by its data set.

    Args:
        runs: Folder of a run, or a pattern such as 'runs/sources-*' for several; or a list of these.
        performance: `accuracy` on the validation set once so many samples were fed; `samples_to_criterion`, turned so
            that more is better, into the sample limit less the mean of min(samples to criterion, limit); or the
            `final` accuracy, after however many samples a run took.
        samples: Samples for `accuracy`, which is that of the last evaluation up to there; by default as many as all
            runs have fed.
        method: Method of the runs, of comparisons.
        trained: Of fine-tuning: `all` for the whole network, or the `head` alone; needed where there are runs of both.
        names: Other names for sources and targets, by those they would have: '{resnet18_random: resnet18}'.
        output: CSV file to write.
        overwrite: Replace a file that holds something else.

    Returns:
        The performances, by source and target.
    """
    if samples is not None and performance != "accuracy":
        raise UserError(f"samples: {samples} given, which belong to --performance=accuracy and not to {performance}")
    path = output_file("output", output)
    if _are_accuracies(folders := find_folders(runs)):
        if performance != "accuracy" or samples is not None or method != BASELINE:
            raise UserError("runs: they are of fine-tuning, which has no --performance, --samples or --method")
        return _tabulate_accuracies(folders, trained, names or {}, path, overwrite)
    if trained is not None:
        raise UserError(f"trained: {trained} given, but the runs are comparisons; give those of fine-tuning")
    found = read_runs([str(folder) for folder in folders])
    _require_usable(found, method)
    pairs = _pair(found, names or {})
    _require_comparable(pairs, performance, method)
    at = min(int(run.curves.samples_seen[-1]) for run in found) if samples is None else int(samples)
    outcomes = {
        pair: np.concatenate([_outcomes(run, performance, method, at) for run in joined])
        for pair, joined in pairs.items()
    }
    table = _write(outcomes, path, overwrite)
    titles = {
        "accuracy": f"accuracy of {method} after {at} samples",
        "samples_to_criterion": f"samples of {found[0].curves.limit} that {method} left when it met the criterion",
        "final": f"final accuracy of {method}",
    }
    _print(outcomes, titles[performance], _remarks(found, performance, method), path)
    return table


def _are_accuracies(folders: Sequence[Path]) -> bool:
    """Tell runs of fine-tuning from comparisons; a UserError where both are given, or something else."""
    tasks = {folder: task_of(folder) for folder in folders}
    for folder, task in tasks.items():
        if task not in (TASK, "comparison"):
            raise UserError(f"runs: {str(folder)!r} is of {task}, which gives no performance; leave it out")
    if len(set(tasks.values())) > 1:
        one, other = (next(str(folder) for folder in folders if tasks[folder] == task) for task in set(tasks.values()))
        raise UserError(f"runs: {one!r} and {other!r} are a comparison and fine-tuning; give runs of one kind")
    return TASK in tasks.values()


def _tabulate_accuracies(
    folders: Sequence[Path], trained: Trained | None, names: Mapping[str, str], path: Path, overwrite: bool
) -> dict[tuple[str, str], float]:
    try:
        found = read_accuracies(folders, trained)
    except LedgerError as error:
        raise UserError(f"runs: {error}") from error
    outcomes = pair_accuracies(found, names)
    table = _write(outcomes, path, overwrite)
    _print(outcomes, f"{found[0].measure}, {TITLES[found[0].trained]}", [], path)
    return table


def _write(outcomes: Outcomes, path: Path, overwrite: bool) -> dict[tuple[str, str], float]:
    table = {pair: float(values.mean()) for pair, values in outcomes.items()}
    write_text(path, csv_text(PERFORMANCE_COLUMNS, [[*pair, value] for pair, value in table.items()]), overwrite)
    return table


def _require_usable(runs: Sequence[Run], method: str) -> None:
    for run in runs:
        if not run.document["complete"]:
            reason = run.document["stopped_because"]
            raise UserError(f"runs: {str(run.folder)!r} is incomplete ({reason}); leave it out, or run it to its end")
        if method not in run.curves.methods:
            raise UserError(
                f"method: {method!r} is not in {str(run.folder)!r}, which has {', '.join(run.curves.methods)}"
            )


def _pair(runs: Sequence[Run], names: Mapping[str, str]) -> Pairs:
    """Group the runs by source and target."""
    pairs: dict[tuple[str, str], list[Run]] = {}
    own = [(_source(run), str(run.protocol["dataset"])) for run in runs]
    unknown = set(names) - {name for pair in own for name in pair}
    if unknown:
        there = ", ".join(dict.fromkeys(name for pair in own for name in pair))
        raise UserError(f"names: {', '.join(sorted(unknown))} given, but the runs are of {there}")
    for run, (source, target) in zip(runs, own, strict=True):
        pairs.setdefault((names.get(source, source), names.get(target, target)), []).append(run)
    return pairs


def _source(run: Run) -> str:
    """Name the source of a run."""
    return name_source(str(run.protocol["backbone"]), str(run.protocol["weights"]), run.backbone.get("registry"))


def _require_comparable(pairs: Pairs, performance: Performance, method: str) -> None:
    """Check that performances differ in nothing but source, target and orderings."""
    fixed = EVERYWHERE if performance == "accuracy" else (*EVERYWHERE, "max_samples")
    runs = [run for joined in pairs.values() for run in joined]
    settings = [_settings(run, fixed) for run in runs]
    for run, its in zip(runs, settings, strict=True):
        its[method] = run.model["baseline"] if method == BASELINE else run.model["methods"][method]
        its["measure"] = run.curves.measure
        if performance == "samples_to_criterion":
            its |= {"threshold": run.curves.threshold, "consecutive": run.curves.consecutive}
    require_same(runs, settings, "only sources, targets and orderings may differ")
    for place, what, keys in ((0, "source", OF_A_SOURCE), (1, "target", OF_A_TARGET)):
        for name in dict.fromkeys(pair[place] for pair in pairs):
            same = [run for pair, joined in pairs.items() if pair[place] == name for run in joined]
            require_same(same, [_settings(run, keys) for run in same], f"both are of the {what} {name}")
    for (source, target), joined in pairs.items():
        require_same(joined, [run.settings for run in joined], f"both are of {source} on {target}")
        require_different_orderings(joined)


def _settings(run: Run, keys: Sequence[str]) -> dict[str, Any]:
    """Give what was fed, or what of a backbone's options its weights do not tell."""
    return {key: run.protocol[key] if key in run.protocol else run.backbone.get(key) for key in keys}


def _outcomes(run: Run, performance: Performance, method: str, at: int) -> NDArray[np.float64]:
    """Give the performance of every ordering of a run, `[orderings]`."""
    curves, row = run.curves, run.curves.methods.index(method)
    if performance == "samples_to_criterion":
        return curves.limit - restricted(curves.samples_to_criterion()[0][row], curves.limit)
    seen = curves.samples_seen
    at = int(seen[-1]) if performance == "final" else at
    if not seen[0] <= at <= seen[-1]:
        ended = f"{str(run.folder)!r} was evaluated from {seen[0]} to {seen[-1]} samples, where it ended"
        raise UserError(f"samples: {at} given, but {ended}; choose a number in between")
    found = curves.accuracy[row, :, int(np.searchsorted(seen, at, side="right")) - 1]
    if np.isnan(found).any():
        raise UserError(
            f"performance: {method} was not evaluated at {at} samples in every ordering of {str(run.folder)!r}: "
            "lazily, or only until it met the criterion; take --performance=samples_to_criterion, fewer --samples, or "
            "run headstart train with --criterion.evaluation=every --criterion.stop_when_met=false"
        )
    return found


def _print(outcomes: Outcomes, title: str, remarks: Sequence[str], path: Path) -> None:
    rows = [["source", "target", "performance", "orderings"]]
    for pair, values in outcomes.items():
        rows.append([*pair, format_number(float(values.mean())), str(len(values))])
    print_table(f"Performance: {title}, mean over orderings", rows)
    print_lines(remarks)
    say(f"wrote {path}")


def _remarks(runs: Sequence[Run], performance: Performance, method: str) -> list[str]:
    """Say what the performances hide."""
    ends = sorted({int(run.curves.samples_seen[-1]) for run in runs})
    if performance == "final" and len(ends) > 1:
        why = "one ends as soon as all of its methods have met the criterion in all orderings"
        return [f"The runs ended after {ends[0]} to {ends[-1]} samples: {why}. --performance=accuracy does without."]
    if performance == "samples_to_criterion":
        met = [run.curves.samples_to_criterion()[0][run.curves.methods.index(method)] for run in runs]
        censored, limit = int(np.isinf(np.concatenate(met)).sum()), runs[0].curves.limit
        return [f"{censored} orderings did not meet the criterion by {limit} samples, and count as 0."] * bool(censored)
    return []

"""Thresholds of a sweep's targets, from the learning curve of a reference method."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from headstart.evaluation.runs import read_run
from headstart.output.errors import UserError
from headstart.output.shipped_files import find_file
from headstart.sweeps.sweep_file import Run, Sweep, name_run, read_mapping

CONFIG, THRESHOLD = "--config=", "--criterion.threshold="
# Thresholds are multiples of one over this number.
STEPS = 20
Configs = tuple[str, ...]


def reference_runs(content: Sweep) -> dict[Configs, Run]:
    """Return the reference runs of a sweep, by the configurations of their target.

    There is one for each target whose configurations state no threshold.

    Args:
        content: The sweep.
    """
    runs = {}
    for configs in dict.fromkeys(_configs(run) for run in content.runs if not _has_threshold(run)):
        options = (*configs, *content.reference)
        runs[configs] = Run(name_run([config.removeprefix(CONFIG) for config in configs], options), options)
    return runs


def choose_threshold(folder: Path) -> float:
    """Return the threshold that follows from a finished reference run.

    It lies halfway between the largest class's share of the validation photos and the reference method's mean accuracy
    at the sample limit, rounded to a multiple of 5 %.

    Args:
        folder: The run's folder.

    Raises:
        UserError: The run cannot be read, or the reference method learns too little.
    """
    run = read_run(folder)
    floor = run.document["criterion"]["largest_class"] / run.curves.all_correct
    reached = float(run.curves.accuracy_at(run.curves.limit)[0].mean())

    threshold: float = round((floor + reached) / 2 * STEPS) / STEPS
    if not floor < threshold < reached:
        raise UserError(
            f"reference: {str(folder)!r} reaches {reached:.1%}, where the largest class is {floor:.1%} of the photos; "
            "no multiple of 5 % lies between; give criterion.threshold in the target's configuration"
        )
    return threshold


def add_thresholds(content: Sweep, thresholds: Mapping[Configs, float]) -> Sweep:
    """Return a sweep whose runs have thresholds.

    Args:
        content: The sweep.
        thresholds: Thresholds by the configurations of the target.
    """
    runs = []
    for run in content.runs:
        threshold = None if _has_threshold(run) else thresholds.get(_configs(run))
        options = run.options if threshold is None else (*run.options, f"{THRESHOLD}{threshold:g}")
        runs.append(Run(run.name, options))
    return replace(content, runs=runs)


def _configs(run: Run) -> Configs:
    return tuple(option for option in run.options if option.startswith(CONFIG))


def _has_threshold(run: Run) -> bool:
    """Whether the options of a run, or the configurations that they name, state a threshold."""
    if any(option.startswith(THRESHOLD) for option in run.options):
        return True
    for config in _configs(run):
        criterion = read_mapping("config", find_file(config.removeprefix(CONFIG)), "name a file").get("criterion")
        if isinstance(criterion, dict) and "threshold" in criterion:
            return True
    return False

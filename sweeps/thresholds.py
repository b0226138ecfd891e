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

    There is one for each target whose configurations state the threshold `reference`.

    Args:
        content: The sweep.
    """
    runs = {}
    for configs in dict.fromkeys(_configs(run) for run in content.runs if _needs_threshold(run)):
        # Its own, which until=limit ignores, in place of `reference`.
        options = (*configs, f"{THRESHOLD}1", *content.reference)
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
        added = (f"{THRESHOLD}{thresholds[_configs(run)]:g}",) if _needs_threshold(run) else ()
        runs.append(replace(run, options=(*run.options, *added)))
    return replace(content, runs=runs)


def _configs(run: Run) -> Configs:
    return tuple(option for option in run.options if option.startswith(CONFIG))


def _needs_threshold(run: Run) -> bool:
    """Return whether the threshold of a run, in its options or in the configurations that they name, is `reference`."""
    stated = [option.removeprefix(THRESHOLD) for option in run.options if option.startswith(THRESHOLD)]
    for config in () if stated else _configs(run):
        criterion = read_mapping("config", find_file(config.removeprefix(CONFIG)), "name a file").get("criterion")
        stated += [criterion["threshold"]] if isinstance(criterion, dict) and "threshold" in criterion else []
    return stated[-1:] == ["reference"]

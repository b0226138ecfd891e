"""Runs and ledgers below folders, grouped into settings by all that must agree for their traces to be compared."""

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from glob import glob
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from headstart.evaluation.leaderboard.settings import STREAM, TUNED, Setting, name_settings, name_variants, pool_seeds
from headstart.evaluation.protocol_differences import find_method, flatten, select_where
from headstart.evaluation.runs import (
    BASELINE,
    Run,
    in_common,
    is_run,
    join,
    limit_to_known,
    method_keys_of,
    read_run,
    warnings_of,
)
from headstart.evaluation.spooled_curves import spool
from headstart.evaluation.stored_traces import is_ledger, open_ledger, read_stream
from headstart.evaluation.trace_options import LeaderboardOptions
from headstart.metrics.sample_efficiency.curves import Curves, required_correct
from headstart.metrics.sample_efficiency.result_warnings import PHOTOS
from headstart.output.errors import UserError
from headstart.store.json_digest import digest_of

LeftOut = list[dict[str, str]]


def read_settings(patterns: Sequence[str], options: LeaderboardOptions) -> tuple[list[Setting], LeftOut]:
    """Read runs and ledgers, and group their traces.

    Args:
        patterns: Folders of runs or ledgers, folders above them, or patterns of the shell.
        options: Options that select settings and methods.

    Returns:
        The settings; and those left out, each with its `setting`, or the folder of a run, and the `reason`.

    Raises:
        UserError: There are no runs, or no setting can be scored.
    """
    folders = _find_folders(patterns)
    ledgers, left_out, groups = [*filter(is_ledger, folders)], LeftOut(), dict[str, list[Run]]()
    for folder in (folder for folder in folders if folder not in ledgers):
        try:
            run = read_run(folder)
        except UserError as error:
            left_out.append({"setting": str(folder), "reason": str(error)})
        else:
            run = replace(run, curves=spool(replace(run.curves, **options.criterion)))
            groups.setdefault(digest_of(_identity(run)), []).append(run)

    # Ledgers come after all runs, whose methods keep their names.
    groups = name_variants(groups)
    for folder in ledgers:
        _add_ledger(groups, folder, options)

    protocols = {key: _protocol(runs[0]) for key, runs in groups.items()}
    selected = select_where(protocols, options.where)
    if left_out and not groups:
        raise UserError(left_out[0]["reason"])
    if not selected:
        raise UserError("where: no setting has these values" if options.where else "runs: there is no finished trace")

    settings, unscored = [], []
    for (key, protocol), name in zip(selected.items(), name_settings(list(selected.values())), strict=True):
        try:
            settings.append(_build(name, protocol, groups[key], options))
        except UserError as error:
            # Names may have line breaks.
            unscored.append({"setting": name, "reason": " ".join(str(error).split())})
    if not settings:
        raise UserError(unscored[0]["reason"])
    _require_named(settings, options)
    settings = pool_seeds(settings)
    names = name_settings([setting.protocol for setting in settings])
    settings = [replace(each, name=name) for each, name in zip(settings, names, strict=True)]
    return settings, [*left_out, *unscored]


def _find_folders(patterns: Sequence[str]) -> list[Path]:
    """Return the folders of runs and of ledgers that match patterns, or lie below a match; none lies within another.

    Other files and folders are ignored, because the shell may have expanded a pattern to them.
    """
    folders: dict[Path, None] = {}
    for pattern in patterns:
        matches = [pattern] if Path(pattern).exists() else sorted(glob(pattern))  # noqa: PTH207 - takes absolute ones
        if not matches:
            raise UserError(f"runs: there is no {pattern!r}; name folders that headstart train wrote")

        for path, inner, files in chain.from_iterable(map(os.walk, matches)):
            if is_ledger(Path(path)) or is_run(Path(path), files):
                inner.clear()
                folders[Path(path)] = None
            # Hidden folders belong to commands, such as the runs that a sweep is receiving.
            inner[:] = sorted(name for name in inner if not name.startswith("."))

    if not folders:
        names = ", ".join(map(repr, patterns))
        raise UserError(f"runs: there is no run and no ledger in {names}; name folders that headstart train wrote")
    return list(folders)


def _identity(run: Run) -> dict[str, Any]:
    """Return the values in which runs of one setting agree."""
    # Photos that are named describe a setting without deciding what its traces are.
    described = (STREAM, *PHOTOS)
    stream = run.protocol.get(STREAM) or {key: value for key, value in run.settings.items() if key not in described}
    return {"stream": stream, "max_samples": run.protocol.get("max_samples"), **run.curves.criterion}


def _add_ledger(groups: dict[str, list[Run]], folder: Path, options: LeaderboardOptions) -> None:
    """Add the streams of a ledger to the groups of runs of these, or else as groups of their own."""
    with open_ledger(folder) as ledger:
        for digest, stream in ledger.streams().items():
            same = [runs for runs in groups.values() if runs[0].protocol.get(STREAM) == digest]
            measured = [run for runs in same for run in runs]
            stored = read_stream(ledger, digest, stream, measured, options.criterion)
            stored = replace(stored, curves=spool(stored.curves))
            for runs in same:
                runs.append(replace(stored, curves=replace(stored.curves, **runs[0].curves.criterion)))
            if not same:
                groups[digest] = [stored]


def _protocol(run: Run) -> dict[str, Any]:
    largest = run.document.get("criterion", {}).get("largest_class")
    protocol = {**({"largest_class": largest} if largest else {}), **run.settings, **run.curves.criterion}
    return flatten({key: value for key, value in protocol.items() if key not in PHOTOS})


def _build(name: str, protocol: dict[str, Any], runs: list[Run], options: LeaderboardOptions) -> Setting:
    """Join the runs of a setting; those that were cut off on request alone."""
    cut_off = [run.incomplete for run in runs if run.incomplete]
    consequence = "and included" if options.incomplete else "and left out; --incomplete includes it"
    if not options.incomplete:
        runs = [run for run in runs if not run.incomplete]
        # A ledger has the traces that were finished of what was cut off.
        runs = [] if cut_off and all(run.is_ledger for run in runs) else runs
    if not runs:
        raise UserError(f"runs: {cut_off[0]}; --incomplete includes it")

    method_keys = method_keys_of(runs)
    measured = [run for run in runs if not run.is_ledger]
    # Incomplete runs end before their limit, which `limit_to_known` detects.
    limit = min((run.protocol.get("max_samples", run.curves.limit) for run in measured), default=None)
    curves = join([(run.folder, run.curves) for run in runs], limit)
    baseline = _find(curves.methods, method_keys, options.baseline)
    methods, lacking = curves.methods, []
    if options.methods is None:
        lacking = [each for each in _lacking(curves, measured) if each != baseline]
        methods = [method for method in methods if method not in lacking]
    else:
        named = [find_method(methods, method_keys, each, "methods") for each in options.methods]
        methods = [*dict.fromkeys([*([baseline] if baseline else []), *named])]

    # Orderings are sorted, so that results do not depend on the order of the runs.
    curves, order = curves.select(methods), np.argsort(curves.orderings)
    curves, remarks = in_common(curves.select_orderings(order))
    if lacking:
        remarks.append(
            f"Of the ledger alone, without all orderings of the runs, and left out: {', '.join(lacking)}. --methods "
            "has them nevertheless."
        )

    limited = limit_to_known(curves)
    if limited.limit < curves.limit:
        remarks.append(_describe_limit(limited, curves.limit))

    tuned = [each for each, data_sets in options.tuned.items() if protocol["dataset"] in data_sets]
    marked = {method: TUNED for each in tuned if (method := _find(methods, method_keys, each)) is not None}
    warnings = [f"{run}, {consequence}." for run in cut_off]
    warnings += warnings_of(runs, methods)
    if protocol.get("largest_class", 0) >= required_correct(limited.threshold, limited.all_correct):
        warnings.append("Always predicting the largest class meets the threshold, so the results mean nothing.")
    return Setting(name, protocol, limited, method_keys, baseline, runs, remarks, warnings, marked)


def _describe_limit(curves: Curves, whole: int) -> str:
    """Return the remark on a lowered limit; a UserError where no trace meets the criterion by then."""
    ends = "a trace that has not met the criterion ends there, its run stopped by another criterion or cut off"
    if not (curves.samples_to_criterion()[0] <= curves.limit).any():
        raise UserError(
            f"threshold: nothing is known of {curves.threshold} at {curves.consecutive} evaluations behind "
            f"{curves.limit} samples ({ends}), and no trace has met it by then; take a lower one, or run headstart "
            "train with it to the end"
        )
    return f"Restricted at {curves.limit} samples instead of {whole}: {ends}."


def _lacking(curves: Curves, runs: Sequence[Run]) -> list[str]:
    """Return the methods that are in no run and lack orderings that runs have."""
    measured = {name for run in runs for name in run.curves.methods}
    numbers = {number for run in runs for number in run.curves.orderings.tolist()}
    of_runs = [number in numbers for number in curves.orderings.tolist()]
    incomplete = np.flatnonzero(~curves.present[:, of_runs].all(axis=1))
    return [name for index in incomplete if (name := curves.methods[index]) not in measured]


def _find(names: Sequence[str], method_keys: Mapping[str, Mapping[str, Any]], query: str) -> str | None:
    """Return a method by its name or class; None where there is none, or several."""
    with suppress(UserError):
        return find_method(names, method_keys, query, "")
    return None


def _require_named(settings: Sequence[Setting], options: LeaderboardOptions) -> None:
    """Raise a UserError unless the baseline, and the methods and data sets of `tuned`, are in some setting."""
    methods = list(dict.fromkeys(name for setting in settings for name in setting.curves.methods))
    if options.baseline != BASELINE and all(setting.baseline is None for setting in settings):
        raise UserError(f"baseline: {options.baseline!r} is none, or several, of {', '.join(methods)} in every setting")
    data_sets = list(dict.fromkeys(str(setting.protocol["dataset"]) for setting in settings))
    for name, chosen_on in options.tuned.items():
        if not set(chosen_on).intersection(data_sets):
            named, existing = (", ".join(map(repr, names)) for names in (chosen_on, data_sets))
            raise UserError(f"tuned.{name}: {named} is none of the data sets {existing}")
        if name not in methods and not any(setting.tuned for setting in settings):
            raise UserError(f"tuned: {name!r} is none of {', '.join(methods)}")

"""The settings of a leaderboard: traces grouped by all that must agree for them to be compared."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from glob import escape, glob
from pathlib import Path
from typing import Any

import numpy as np

from headstart.evaluation.joined_runs import in_common, join, known_until, require_known, require_same_methods
from headstart.evaluation.leaderboard.variants import name_variants
from headstart.evaluation.runs import FILES, Run, read_runs
from headstart.evaluation.stored_traces import (
    BASELINE,
    choose_where,
    describe_stream,
    find_method,
    flatten,
    is_ledger,
    read_stream,
    show,
    telling_apart,
)
from headstart.metrics.sample_efficiency.curves import NOT_EVALUATED, Curves
from headstart.output.errors import UserError
from headstart.store.json_digest import digest_of
from headstart.store.ledger import LedgerError
from headstart.store.ledger_reader import LedgerReader

# A data set is its photos: folders of one name may hold others.
DATA_SET = ("dataset", "train_photos_sha256")
# What a user chooses besides data set and backbone, by the keys of the protocol.
CHOICES = (
    *("batch_size", "max_samples", "evaluate_every", "measure", "threshold", "consecutive", "seed", "inputs"),
    *("trainable_from", "batch_norm", "dropout", "views", "precision"),
    *("feature_precision", "trainer_precision", "tensor_float_32", "device", "torch", "torchvision", "pillow"),
)
# How the hyperparameters of methods that are marked were chosen.
TUNED = "on these validation photos"
# What tells of a setting without deciding what its traces are.
BESIDE = ("stream_sha256", "registry_sha256", "unreadable_photos", "duplicate_photos", "near_duplicate_photos")


@dataclass(frozen=True)
class Setting:
    """Traces that were fed one stream and are read by one criterion.

    Attributes:
        name: What no other setting is called.
        protocol: What was fed, and the criterion, by keys with dots.
        curves: The traces of all methods in the orderings that all have, in the order of their numbers.
        provenances: What each method is, by name.
        baseline: The method that the others are compared with; None where there is none.
        runs: Where the traces come from, ledgers among them.
        remarks: What a reader must know.
        tuned: How the hyperparameters of methods were chosen, by name.
    """

    name: str
    protocol: dict[str, Any]
    curves: Curves
    provenances: dict[str, dict[str, Any]]
    baseline: str | None
    runs: list[Run]
    remarks: list[str]
    tuned: dict[str, str] = field(default_factory=dict)

    @property
    def folders(self) -> list[str]:
        """The folders of the runs and ledgers."""
        return [*dict.fromkeys(str(run.folder) for run in self.runs)]


@dataclass(frozen=True)
class Asked:
    """Which settings and methods are asked for.

    Attributes:
        criterion: Threshold and streak length where they are to differ from the runs' own.
        where: Values of the protocol.
        baseline: Name or class of the baseline.
        methods: Names or classes of the other methods; None for all.
        tuned: Data sets on whose validation photos the hyperparameters of methods were chosen, by their names or
            classes.
        choose: Patterns of variants that become one row, by its name.
    """

    criterion: dict[str, Any] = field(default_factory=dict)
    where: dict[str, Any] = field(default_factory=dict)
    baseline: str = BASELINE
    methods: list[str] | None = None
    tuned: dict[str, list[str]] = field(default_factory=dict)
    choose: dict[str, str] = field(default_factory=dict)


def read_settings(patterns: Sequence[str], asked: Asked) -> tuple[list[Setting], list[dict[str, str]]]:
    """Read runs and ledgers, and group their traces.

    Args:
        patterns: Folders of runs or ledgers, folders above them, or patterns of the shell.
        asked: Which are asked for.

    Returns:
        The settings; and those left out, each with its `setting`, or the folder of a run, and the `reason`.

    Raises:
        UserError: Nothing is found, or no setting can be scored.
    """
    folders, ledgers = find_folders(patterns)
    runs, unread = _read(folders)
    groups: dict[str, list[Run]] = {}
    for found in runs:
        run = replace(found, curves=replace(found.curves, **asked.criterion))
        groups.setdefault(digest_of(_identity(run)), []).append(run)
    groups = name_variants(groups)
    for folder in ledgers:
        try:
            _add_stored(groups, folder, asked)
        except LedgerError as error:
            raise UserError(f"runs: the ledger {error}; give another folder") from error
    protocols = {key: _protocol(each) for key, each in groups.items()}
    chosen = choose_where(protocols, asked.where)
    if unread and not groups:
        raise UserError(unread[0]["reason"])
    if not chosen:
        raise UserError("where: no setting has these values" if asked.where else "runs: there is no finished trace")
    names = dict(zip(chosen, _name(list(chosen.values())), strict=True))
    settings, left_out = _build([(names[key], protocol, groups[key]) for key, protocol in chosen.items()], asked)
    return settings, [*unread, *left_out]


def _read(folders: Sequence[str]) -> tuple[list[Run], list[dict[str, str]]]:
    """Read runs; those that are not finished, or damaged, are left out with the reason."""
    runs: list[Run] = []
    left_out: list[dict[str, str]] = []
    for folder in folders:
        try:
            runs += read_runs(escape(folder))
        except UserError as error:
            left_out.append({"setting": folder, "reason": str(error)})
    return runs, left_out


def values_of(protocol: Mapping[str, Any], keys: Iterable[str]) -> tuple[str, ...]:
    """Give what a protocol says under some keys, as text."""
    return tuple(str(protocol.get(key)) for key in keys)


def differing_within(protocols: Sequence[Mapping[str, Any]], keys: Sequence[str]) -> list[str]:
    """Give other keys that tell apart protocols that agree in some, as few as do; digests of whole streams are none."""
    cells: dict[tuple[str, ...], list[Mapping[str, Any]]] = {}
    for protocol in protocols:
        cells.setdefault(values_of(protocol, keys), []).append(protocol)
    found = dict.fromkeys(key for cell in cells.values() if len(cell) > 1 for key in telling_apart(cell))
    return [key for key in found if key != BESIDE[0]]


def find_folders(patterns: Sequence[str]) -> tuple[list[str], list[Path]]:
    """Find the folders of runs, and those of ledgers, that are given or lie below what is given.

    What is there and holds neither is passed over: the shell may have given it for a pattern.
    """
    runs: dict[str, None] = {}
    ledgers: dict[Path, None] = {}
    for pattern in patterns:
        found = [pattern] if Path(pattern).exists() else sorted(glob(pattern))  # noqa: PTH207 - takes absolute ones
        there = [Path(path) for path in found]
        if not there:
            raise UserError(f"runs: there is no {pattern!r}; name folders that headstart train wrote")
        below = [folder for path in there for folder in _below(path)]
        ledgers |= dict.fromkeys(folder for folder in below if is_ledger(folder))
        runs |= dict.fromkeys(str(folder) for folder in below if not is_ledger(folder))
    if not runs and not ledgers:
        given = ", ".join(map(repr, patterns))
        raise UserError(f"runs: there is no run and no ledger in {given}; name folders that headstart train wrote")
    return list(runs), list(ledgers)


def _below(folder: Path) -> Iterator[Path]:
    """Give the runs and ledgers in a folder, in the order of their names; there are none within one of them."""
    for path, inner, files in os.walk(folder):
        if is_ledger(Path(path)) or FILES[1] in files:
            inner.clear()
            yield Path(path)
        # What begins with a dot is a command's own, such as what a sweep is just being sent.
        inner[:] = sorted(each for each in inner if not each.startswith("."))


def _identity(run: Run) -> dict[str, Any]:
    """Give what runs of one setting agree in."""
    fed = run.protocol.get("stream_sha256") or {key: run.settings[key] for key in run.settings if key not in BESIDE}
    return {"fed": fed, "max_samples": run.protocol.get("max_samples"), **_criterion(run)}


def _criterion(run: Run) -> dict[str, Any]:
    return {key: getattr(run.curves, key) for key in ("measure", "threshold", "consecutive")}


def _add_stored(groups: dict[str, list[Run]], folder: Path, asked: Asked) -> None:
    """Add what a ledger holds: to the groups of its stream, which are runs', or as a group of its own."""
    with LedgerReader(folder) as ledger:
        streams = ledger.streams()
        flat = {digest: describe_stream(fed) for digest, fed in streams.items()}
        with suppress(UserError):  # A key that only the runs' protocols have.
            flat = choose_where(flat, {k: v for k, v in asked.where.items() if k not in ("threshold", "consecutive")})
        for digest in flat:
            same = [each for each in groups.values() if each[0].protocol.get("stream_sha256") == digest]
            known = {
                digest_of(run.describe(name)): name for each in same for run in each for name in run.curves.methods
            }
            stored = read_stream(ledger, digest, streams[digest], known, asked.criterion)
            for each in same:
                each.append(replace(stored, curves=replace(stored.curves, **_criterion(each[0]))))
            if not same:
                groups[digest] = [stored]


def _protocol(runs: Sequence[Run]) -> dict[str, Any]:
    largest = runs[0].document.get("criterion", {}).get("largest_class")
    protocol = {**({"largest_class": largest} if largest else {}), **runs[0].settings, **_criterion(runs[0])}
    return flatten({key: value for key, value in protocol.items() if key not in BESIDE[1:]})


def _name(protocols: Sequence[Mapping[str, Any]]) -> list[str]:
    """Name settings by data set and backbone; those of one name also by what they differ in."""
    plain = [f"{each['dataset']}, {each['backbone']} ({Path(str(each['weights'])).name})" for each in protocols]
    names = list(plain)
    for name in dict.fromkeys(plain):
        same = [place for place, other in enumerate(plain) if other == name]
        keys = telling_apart([protocols[place] for place in same]) if len(same) > 1 else []
        for place in same:
            its = [f"{key.replace('_', ' ')} {show(protocols[place][key])}" for key in keys if key in protocols[place]]
            names[place] = ", ".join([name, *its])
    return names


def _build(
    groups: Sequence[tuple[str, dict[str, Any], list[Run]]], asked: Asked
) -> tuple[list[Setting], list[dict[str, str]]]:
    settings: list[Setting] = []
    left_out: list[dict[str, str]] = []
    for name, protocol, runs in groups:
        try:
            settings.append(_setting(name, protocol, runs, asked))
        except UserError as error:
            # Names may have line breaks.
            left_out.append({"setting": name, "reason": " ".join(str(error).split())})
    if not settings:
        raise UserError(left_out[0]["reason"])
    _require_found(settings, asked)
    return settings, left_out


def _require_found(settings: Sequence[Setting], asked: Asked) -> None:
    """Check that what is asked for by name is in a setting."""
    methods = list(dict.fromkeys(name for setting in settings for name in setting.curves.methods))
    if asked.baseline != BASELINE and all(setting.baseline is None for setting in settings):
        raise UserError(f"baseline: {asked.baseline!r} is none, or several, of {', '.join(methods)} in every setting")
    data_sets = list(dict.fromkeys(str(setting.protocol["dataset"]) for setting in settings))
    for name, chosen_on in asked.tuned.items():
        if not set(chosen_on).intersection(data_sets):
            asked_for, there = (", ".join(map(repr, names)) for names in (chosen_on, data_sets))
            raise UserError(f"tuned.{name}: {asked_for} is none of the data sets {there}")
        if not any(name == each or each in setting.tuned for setting in settings for each in setting.curves.methods):
            raise UserError(f"tuned: {name!r} is none of {', '.join(methods)}")


def _setting(name: str, protocol: dict[str, Any], runs: Sequence[Run], asked: Asked) -> Setting:
    """Put the runs of a setting together."""
    require_same_methods(runs)
    measured = [run for run in runs if "unfinished" not in run.document]
    # Of a ledger alone no limit is known. Incomplete runs end before theirs, which `known_until` sees.
    limits = [run.protocol.get("max_samples", run.curves.limit) for run in measured]
    curves = join(runs, min(limits, default=None))
    provenances = {each: run.describe(each) for run in runs for each in run.curves.methods}
    baseline, chosen = _choose(curves.methods, provenances, asked)
    lacking = _lacking(curves, measured) if asked.methods is None else []
    chosen = [each for each in chosen if each == baseline or each not in lacking]
    rows, order = [curves.methods.index(each) for each in chosen], np.argsort(curves.orderings)
    correct = curves.correct[np.array(rows)[:, None], order]
    curves = replace(curves, methods=chosen, orderings=curves.orderings[order], correct=correct)
    curves, remarks = in_common(curves)
    require_known(curves)
    if left_out := [each for each in lacking if each != baseline]:
        remarks.append(
            f"Of the ledger alone, without all orderings of the runs, and left out: {', '.join(left_out)}. --methods "
            "has them nevertheless."
        )
    unfinished = sum(run.document.get("unfinished", 0) for run in runs)
    remarks += [f"{unfinished} traces of the ledger are not finished, and left out."] * bool(unfinished)
    remarks += [f"{str(run.folder)!r} is incomplete." for run in runs if not run.document["complete"]]
    samples, _ = curves.samples_to_criterion()
    limit = known_until(curves, curves.ends, samples)
    if limit < curves.limit:
        ends = "a trace that has not met the criterion ends there, its run stopped by another criterion or cut off"
        if not (samples <= limit).any():
            raise UserError(
                f"threshold: nothing is known of {curves.threshold} at {curves.consecutive} evaluations behind {limit} "
                f"samples ({ends}), and no trace has met it by then; take a lower one, or run headstart train with it "
                "to the end"
            )
        remarks.append(f"Restricted at {limit} samples instead of {curves.limit}: {ends}.")
    tuned = [each for each, data_sets in asked.tuned.items() if protocol["dataset"] in data_sets]
    marked = {found: TUNED for each in tuned if (found := _find(chosen, provenances, each)) is not None}
    return Setting(name, protocol, replace(curves, limit=limit), provenances, baseline, [*runs], remarks, marked)


def _lacking(curves: Curves, runs: Sequence[Run]) -> list[str]:
    """Give the methods that are in no run and lack orderings that runs have."""
    measured = {name for run in runs for name in run.curves.methods}
    numbers = {number for run in runs for number in run.curves.orderings.tolist()}
    there = curves.correct[..., 0] != NOT_EVALUATED
    whole = there[:, [number in numbers for number in curves.orderings.tolist()]].all(1)
    return [name for name, every in zip(curves.methods, whole, strict=True) if not every and name not in measured]


def _find(there: Sequence[str], provenances: Mapping[str, Mapping[str, Any]], name: str) -> str | None:
    """Find a method by its name or class; None where there is none, or several."""
    with suppress(UserError):
        return find_method(there, provenances, name, "")
    return None


def _choose(
    there: Sequence[str], provenances: Mapping[str, Mapping[str, Any]], asked: Asked
) -> tuple[str | None, list[str]]:
    """Find the baseline, where there is one, and the methods that are asked for."""
    baseline = _find(there, provenances, asked.baseline)
    if asked.methods is None:
        return baseline, list(there)
    found = [find_method(there, provenances, name, "methods") for name in asked.methods]
    return baseline, [*dict.fromkeys([*([baseline] if baseline else []), *found])]

"""Variants of a method: their names, and what choosing the best of them means."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from headstart.contract.tables.grouping import grouped
from headstart.evaluation.leaderboard.settings import Setting
from headstart.evaluation.protocol_differences import distinguish_methods
from headstart.evaluation.runs import Run
from headstart.store.json_digest import digest_of

HYPERPARAMETERS, CODE = "hyperparameters", "code"


def name_variants(settings: Mapping[str, Sequence[Run]]) -> dict[str, list[Run]]:
    """Add hyperparameters to the names of methods where runs of one setting differ in these alone.

    A variant has the same name in all settings. Methods that also differ in their code keep their name: they are other
    versions, not variants.

    Args:
        settings: The runs of each setting.
    """
    kinds: dict[str, dict[str, Any]] = {}
    varied: dict[str, None] = {}
    for runs in settings.values():
        named = [(name, run.describe(name)) for run in runs for name in run.curves.methods]
        for name, same in grouped(named).items():
            variants = {digest_of(each[HYPERPARAMETERS]): each[HYPERPARAMETERS] for each in same}
            kinds.setdefault(name, {}).update(variants)
            if len(variants) > 1 and _are_alike_otherwise(same):
                varied[name] = None

    names = {name: distinguish_methods(name, kinds[name]) for name in varied}
    return {key: [_rename(run, names) if names else run for run in runs] for key, runs in settings.items()}


def _are_alike_otherwise(documents: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether documents agree in all but hyperparameters, and code that these name, such as an optimiser's."""
    modules = set.intersection(*(set(each.get(CODE) or {}) for each in documents))
    shared = [{module: (each.get(CODE) or {})[module] for module in sorted(modules)} for each in documents]
    others = [{**each, HYPERPARAMETERS: None, CODE: its} for each, its in zip(documents, shared, strict=True)]
    return all(each == others[0] for each in others)


def _rename(run: Run, names: Mapping[str, Mapping[str, str]]) -> Run:
    """Rename the methods of a run."""
    new = {
        name: names[name][digest_of(run.describe(name)[HYPERPARAMETERS])] if name in names else name
        for name in run.curves.methods
    }
    methods = {new.get(name, name): each for name, each in run.document.get("methods", {}).items()}
    return replace(
        run,
        curves=replace(run.curves, methods=list(new.values())),
        document={**run.document, "methods": methods},
    )


def remark_on_variants(settings: Sequence[Setting]) -> list[str]:
    """Return remarks on methods of one class: to take the best of them is to choose on these photos."""
    variants: dict[tuple[str, ...], None] = {}
    for setting in settings:
        named_keys = [(name, setting.method_keys[name]) for name in setting.curves.methods]
        same = grouped((its["class"], name) for name, its in named_keys if its.get("class"))
        variants |= dict.fromkeys(tuple(names) for names in same.values() if len(names) > 1)
    return [
        f"{', '.join(names)} are one class with different hyperparameters. Choosing the best of them on these "
        "validation photos is optimistic; choose on other data sets (docs/sweeps.md)."
        for names in variants
    ]

"""Variants of a method that runs call by one name, as a sweep over its hyperparameters does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from headstart.evaluation.runs import Run
from headstart.evaluation.stored_traces import name_apart
from headstart.store.json_digest import digest_of

HYPERPARAMETERS, DIGESTS = "hyperparameters", "digests"


def name_variants(settings: Mapping[str, Sequence[Run]]) -> dict[str, list[Run]]:
    """Name methods also by their hyperparameters where runs of one setting differ in these alone.

    A variant has the same name in all settings. What differs in its code as well stays what it is called: that is no
    variant, but another version.

    Args:
        settings: The runs of each setting.
    """
    kinds: dict[str, dict[str, Any]] = {}
    varied: dict[str, None] = {}
    for runs in settings.values():
        for name, documents in _methods(runs).items():
            its = {digest_of(each[HYPERPARAMETERS]): each[HYPERPARAMETERS] for each in documents}
            kinds.setdefault(name, {}).update(its)
            varied |= dict.fromkeys([name] * (len(its) > 1 and _are_alike_otherwise(documents)))
    names = {name: name_apart(name, kinds[name]) for name in varied}
    return {key: [_rename(run, names) if names else run for run in runs] for key, runs in settings.items()}


def _are_alike_otherwise(documents: Sequence[Mapping[str, Any]]) -> bool:
    """Compare what is not told by hyperparameters; code that they name, such as an optimiser's, is theirs."""
    modules = set.intersection(*(set(each.get(DIGESTS) or {}) for each in documents))
    shared = [{module: (each.get(DIGESTS) or {})[module] for module in sorted(modules)} for each in documents]
    others = [{**each, HYPERPARAMETERS: None, DIGESTS: its} for each, its in zip(documents, shared, strict=True)]
    return all(each == others[0] for each in others)


def _methods(runs: Sequence[Run]) -> dict[str, list[dict[str, Any]]]:
    """Give what each name stands for in runs, those of schema 1 left out."""
    found: dict[str, list[dict[str, Any]]] = {}
    for run in runs:
        for name in run.curves.methods:
            if HYPERPARAMETERS in (document := run.describe(name)):
                found.setdefault(name, []).append(document)
    return found


def _rename(run: Run, names: Mapping[str, Mapping[str, str]]) -> Run:
    """Rename the methods of a run."""
    new = {name: _new_name(run.describe(name), name, names) for name in run.curves.methods}
    methods = {new.get(name, name): each for name, each in run.document.get("methods", {}).items()}
    model = {new.get(name, name): each for name, each in (run.model.get("methods") or {}).items()}
    return replace(
        run,
        curves=replace(run.curves, methods=list(new.values())),
        document={**run.document, "methods": methods},
        model={**run.model, "methods": model},
    )


def _new_name(document: Mapping[str, Any], name: str, names: Mapping[str, Mapping[str, str]]) -> str:
    if name not in names or HYPERPARAMETERS not in document:
        return name
    return names[name][digest_of(document[HYPERPARAMETERS])]

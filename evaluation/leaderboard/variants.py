"""Variants of a method: their names, and the choice among them on other data sets."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any

import numpy as np

from headstart.contract.tables.grouping import grouped
from headstart.evaluation.leaderboard.settings import DATA_SET, Setting, differing_within, values_of
from headstart.evaluation.protocol_differences import distinguish_methods
from headstart.evaluation.runs import Run
from headstart.evaluation.trace_options import TraceOptions
from headstart.metrics.sample_efficiency.held_out_choice import choose_on_others
from headstart.metrics.sample_efficiency.scores import restricted
from headstart.output.errors import UserError
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
    model = {new.get(name, name): each for name, each in (run.model.get("methods") or {}).items()}
    return replace(
        run,
        curves=replace(run.curves, methods=list(new.values())),
        document={**run.document, "methods": methods},
        model={**run.model, "methods": model},
    )


def choose_families(settings: Sequence[Setting], options: TraceOptions) -> list[Setting]:
    """Replace each family of variants by the variant that is best on the other data sets.

    The other data sets are those of settings that differ in the data set alone; where there is none, the variants stay.

    Args:
        settings: The settings.
        options: Patterns of the variants' names, by the name of the entry; and the baseline, which may be an entry.

    Raises:
        UserError: A pattern matches fewer than two methods, or the name of an entry is a method's.
    """
    settings = list(settings)
    for name, pattern in options.choose.items():
        methods = dict.fromkeys(each for setting in settings for each in setting.curves.methods)
        if name in methods:
            raise UserError(f"choose: {name!r} is a method; give the row another name")
        if len({each for setting in settings for each in _family(setting, pattern)}) < 2:
            others = [each for each in methods if any(each != setting.baseline for setting in settings)]
            raise UserError(f"choose: {pattern!r} matches fewer than two of the methods {', '.join(others)}")

        keys = differing_within([setting.protocol for setting in settings], DATA_SET)
        pooled = [index for index, setting in enumerate(settings) if setting.is_pooled]
        for indices in grouped((values_of(settings[index].protocol, keys), index) for index in pooled).values():
            chosen = _choose([settings[index] for index in indices], name, pattern)
            for index, setting in zip(indices, chosen, strict=True):
                settings[index] = setting

    # The baseline may be chosen among variants as well.
    return [
        replace(each, baseline=options.baseline)
        if each.baseline is None and options.baseline in each.curves.methods
        else each
        for each in settings
    ]


def _choose(settings: Sequence[Setting], name: str, pattern: str) -> list[Setting]:
    """Choose in settings that differ in the data set alone."""
    families = [_family(setting, pattern) for setting in settings]
    variants = [each for each in families[0] if all(each in family for family in families)]
    if len(settings) < 2 or not variants:
        remark = f"No other data set has the variants {pattern}, so that none could be chosen on it."
        return [replace(setting, remarks=[*setting.remarks, remark]) for setting in settings]
    data_sets = [", ".join(values_of(setting.protocol, DATA_SET)) for setting in settings]
    chosen = choose_on_others(
        {data_set: _score(setting, variants) for data_set, setting in zip(data_sets, settings, strict=True)}
    )
    return [
        _replace_family(setting, family, name, chosen[data_set])
        for setting, family, data_set in zip(settings, families, data_sets, strict=True)
    ]


def _family(setting: Setting, pattern: str) -> list[str]:
    return [each for each in setting.curves.methods if fnmatchcase(each, pattern) and each != setting.baseline]


def _score(setting: Setting, variants: Sequence[str]) -> dict[str, float]:
    """Return mean logarithms of restricted samples, so that hard data sets do not decide alone, by variant."""
    samples, _ = setting.curves.select(variants).samples_to_criterion()
    means = np.log(restricted(samples, setting.curves.limit)).mean(1)
    return dict(zip(variants, means.tolist(), strict=True))


def _replace_family(setting: Setting, family: Sequence[str], name: str, chosen: str) -> Setting:
    """Replace a family by its chosen variant, under the family's name."""
    curves = setting.curves.select([each for each in setting.curves.methods if each == chosen or each not in family])
    methods = [name if each == chosen else each for each in curves.methods]
    # Data sets may have limits of their own.
    variants = {each: {**setting.method_keys[each], "max_samples": None} for each in family}
    classes = {str(each.get("class")) for each in variants.values()}
    # The key is the same for all data sets: the variants, not the chosen one.
    method_key = {"class": " or ".join(sorted(classes)), "variants": variants}
    return replace(
        setting,
        curves=replace(curves, methods=methods),
        method_keys={**setting.method_keys, name: method_key},
        tuned={**setting.tuned, name: f"{chosen}, chosen on other data sets"},
    )


def remark_on_variants(settings: Sequence[Setting]) -> list[str]:
    """Return remarks on methods of one class: to take the best of them is to choose on these photos."""
    variants: dict[tuple[str, ...], None] = {}
    for setting in settings:
        known = [(name, setting.method_keys[name]) for name in setting.curves.methods]
        same = grouped((its["class"], name) for name, its in known if "variants" not in its and its.get("class"))
        variants |= dict.fromkeys(tuple(names) for names in same.values() if len(names) > 1)
    return [
        f"{', '.join(names)} are one class with different hyperparameters. Choosing the best of them on these "
        "validation photos is optimistic; --choose chooses on other data sets."
        for names in variants
    ]

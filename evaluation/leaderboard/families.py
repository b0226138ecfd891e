"""Variants of a method as one row, each chosen on other data sets than the one that it is scored on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

import numpy as np

from headstart.evaluation.leaderboard.settings import DATA_SET, Asked, Setting, differing_within, values_of
from headstart.metrics.sample_efficiency.held_out_choice import choose_on_others
from headstart.metrics.sample_efficiency.scores import restricted
from headstart.output.errors import UserError


def choose_families(settings: Sequence[Setting], asked: Asked) -> list[Setting]:
    """Put one row in the place of each family, with the variant that is best on the other data sets.

    The others are those of settings that differ in the data set alone; where there is none, the variants stay.

    Args:
        settings: The settings.
        asked: Patterns of the variants' names, by the name of the row; and what the baseline is called, which a row
            may be.

    Raises:
        UserError: A pattern matches fewer than two methods, or the name of a row is a method's.
    """
    found = list(settings)
    for name, pattern in asked.choose.items():
        names = dict.fromkeys(each for setting in found for each in setting.curves.methods)
        if name in names:
            raise UserError(f"choose: {name!r} is a method; give the row another name")
        if len({each for setting in found for each in _family(setting, pattern)}) < 2:
            others = [each for each in names if any(each != setting.baseline for setting in found)]
            raise UserError(f"choose: {pattern!r} matches fewer than two of the methods {', '.join(others)}")
        keys = differing_within([setting.protocol for setting in found], DATA_SET)
        groups: dict[tuple[str, ...], list[int]] = {}
        for place, setting in enumerate(found):
            groups.setdefault(values_of(setting.protocol, keys), []).append(place)
        for places in groups.values():
            for place, chosen in zip(places, _choose([found[each] for each in places], name, pattern), strict=True):
                found[place] = chosen
    return [
        replace(each, baseline=asked.baseline)
        if each.baseline is None and asked.baseline in each.curves.methods
        else each
        for each in found
    ]


def _choose(settings: Sequence[Setting], name: str, pattern: str) -> list[Setting]:
    """Choose in settings that differ in the data set alone."""
    families = [_family(setting, pattern) for setting in settings]
    variants = [each for each in families[0] if all(each in family for family in families)]
    if len(settings) < 2 or not variants:
        remark = f"No other data set has the variants {pattern}, so that none could be chosen on it."
        return [replace(setting, remarks=[*setting.remarks, remark]) for setting in settings]
    chosen = choose_on_others({_data_set(setting): _score(setting, variants) for setting in settings})
    return [_keep(setting, name, chosen[_data_set(setting)], pattern) for setting in settings]


def _data_set(setting: Setting) -> str:
    return ", ".join(values_of(setting.protocol, DATA_SET))


def _family(setting: Setting, pattern: str) -> list[str]:
    return [each for each in setting.curves.methods if fnmatchcase(each, pattern) and each != setting.baseline]


def _score(setting: Setting, variants: Sequence[str]) -> dict[str, float]:
    """Score variants by the mean logarithm of their restricted samples, so that hard data sets do not decide alone."""
    samples = restricted(setting.curves.samples_to_criterion()[0], setting.curves.limit)
    return {each: float(np.log(samples[setting.curves.methods.index(each)]).mean()) for each in variants}


def _keep(setting: Setting, name: str, chosen: str, pattern: str) -> Setting:
    """Leave the chosen variant of a family, under the family's name."""
    curves = setting.curves
    family = _family(setting, pattern)
    kept = [place for place, each in enumerate(curves.methods) if each == chosen or each not in family]
    methods = [name if curves.methods[place] == chosen else curves.methods[place] for place in kept]
    # Data sets may have limits of their own.
    variants = {each: {**setting.provenances[each], "max_samples": None} for each in family}
    classes = {str(each.get("class")) for each in variants.values()}
    # What is chosen differs between data sets, what it is chosen from does not.
    provenance = {"class": " or ".join(sorted(classes)), "variants": variants}
    return replace(
        setting,
        curves=replace(curves, methods=methods, correct=curves.correct[kept]),
        provenances={**setting.provenances, name: provenance},
        tuned={**setting.tuned, name: f"{chosen}, chosen on other data sets"},
    )


def remark_on_variants(settings: Sequence[Setting]) -> list[str]:
    """Name methods of one class that differ in their hyperparameters: the best of them is a choice on these photos."""
    variants: dict[tuple[str, ...], None] = {}
    for setting in settings:
        same: dict[str, list[str]] = {}
        for name in setting.curves.methods:
            its = setting.provenances[name]
            if "variants" not in its and its.get("class"):
                same.setdefault(its["class"], []).append(name)
        variants |= dict.fromkeys(tuple(names) for names in same.values() if len(names) > 1)
    return [
        f"{', '.join(names)} are one class with different hyperparameters: to take the best of them is to choose on "
        "these validation photos; --choose takes the choice from other data sets."
        for names in variants
    ]

"""Accuracy at label budgets: in each setting, with tests of all pairs of methods, and as the mean over settings."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from headstart.evaluation.leaderboard.over_settings import choose_comparable, common_methods, describe_variety
from headstart.evaluation.leaderboard.scores import ties
from headstart.evaluation.leaderboard.settings import Setting
from headstart.evaluation.trace_options import Budget, LeaderboardOptions, is_balanced, requested_budgets
from headstart.metrics.arrays import Floats
from headstart.metrics.sample_efficiency.curves import learning_curve_area
from headstart.metrics.sample_efficiency.resolution import compare_all_pairs
from headstart.metrics.sample_efficiency.scores import finite_ends, mean_of_means, t_interval
from headstart.output.errors import UserError

REMEDY = "headstart train measures them with --criterion.until=limit and a data.max_samples as large"
# Values of methods in each ordering, by name, `[orderings]`.
Values = dict[str, Floats]


class Budgets(NamedTuple):
    """The label budgets of one setting.

    Attributes:
        accuracies: Accuracies of the methods at each budget that their traces reach.
        areas: Areas under the learning curves; empty where there are none.
        ends: Samples seen at the first and the last evaluation of the areas.
    """

    accuracies: dict[Budget, Values]
    areas: Values
    ends: tuple[int, int]


def find_budgets(settings: Sequence[Setting], options: LeaderboardOptions) -> list[Budgets]:
    """Find the accuracies of every setting at the requested budgets.

    Raises:
        UserError: Labels per class are requested, and no stream is balanced.
    """
    if options.per_class and not any(is_balanced(setting.protocol) for setting in settings):
        raise UserError(
            "per_class: no stream is balanced over the classes; run headstart train with --data.order=balanced, or "
            "give numbers of labels with --at"
        )
    return [_find(setting, options) for setting in settings]


def _find(setting: Setting, options: LeaderboardOptions) -> Budgets:
    curves, accuracies = setting.curves, dict[Budget, Values]()
    for budget in requested_budgets(setting.protocol, options):
        if budget.labels in options.at or budget.labels in curves.samples_seen:
            at = zip(curves.methods, curves.accuracy_at(budget.labels), strict=True)
            accuracies[budget] = {name: values for name, values in at if not np.isnan(values).any()}

    reached = [budget.labels for budget, known in accuracies.items() if len(known) == len(curves.methods)]
    within = curves.samples_seen <= max(reached, default=0)
    seen, areas = curves.samples_seen[within], Values()
    if len(seen) > 1 and not curves.is_lazy:
        areas = dict(zip(curves.methods, learning_curve_area(curves.accuracy[..., within], seen), strict=True))
    ends = (int(seen[0]), int(seen[-1])) if areas else (0, 0)
    return Budgets(accuracies, areas, ends)


def missing_budgets(setting: Setting, budgets: Budgets, options: LeaderboardOptions) -> list[str]:
    """Return remarks on requested budgets that are missing, and how to get them."""
    remarks, curves, accuracies = list[str](), setting.curves, budgets.accuracies
    if options.per_class and not is_balanced(setting.protocol):
        remarks.append("No accuracy at labels per class: the stream is not balanced (data.order=balanced).")

    lacking = [
        str(budget.labels)
        for budget in requested_budgets(setting.protocol, options)
        if set(setting.names) - accuracies.get(budget, {}).keys()
    ]
    if lacking:
        why = f"traces end before, or have no evaluation there. {REMEDY}"
        if curves.is_lazy:
            why = "evaluations were left out; run with --criterion.evaluation=every"
        remarks.append(f"No accuracy of all methods at {', '.join(lacking)} labels: {why}.")
    return remarks


def describe_budgets(setting: Setting, budgets: Budgets) -> dict[str, Any]:
    """Return `label_budgets` and `learning_curve_area` of a setting as they stand in `leaderboard.json`."""
    listed: dict[str, list[dict[str, Any]]] = {name: [] for name in setting.names}
    for budget, accuracies in budgets.accuracies.items():
        for name, scores in _compare(accuracies, setting.baseline, setting.curves.all_correct, "accuracy").items():
            listed[name].append({**budget._asdict(), **scores})

    areas = _compare(budgets.areas, setting.baseline, 1, "area")
    ends = dict(zip(("from", "to"), budgets.ends, strict=True))
    return {
        "label_budgets": listed if any(listed.values()) else {},
        "learning_curve_area": {name: {**scores, **ends} for name, scores in areas.items()},
    }


def _estimate(values: Floats, key: str) -> dict[str, Any]:
    return {key: float(values.mean()), "ci95": finite_ends(np.clip(t_interval(values), 0, 1))}


def _compare(values: Values, baseline: str | None, all_correct: int, key: str) -> dict[str, dict[str, Any]]:
    """Return the scores of methods by their accuracies or areas in the same orderings, best first.

    Args:
        values: The values.
        baseline: The method that the others are compared with.
        all_correct: Factor of accuracies, so that the tests sum whole numbers.
        key: Name of the mean.
    """
    if not values:
        return {}
    names = sorted(values, key=lambda name: -values[name].mean())
    # The tests take lower values for better ones.
    wrong = (1 - np.stack([values[name] for name in names])) * all_correct
    wrong = wrong.round() if all_correct > 1 else wrong
    [compared] = compare_all_pairs([wrong])
    _, standings = ties(wrong.mean(1), compared.significant)

    scores = {}
    for index, (name, standing) in enumerate(zip(names, standings, strict=True)):
        versus = dict.fromkeys(("difference", "difference_ci95", "p_value_adjusted"))
        if baseline in values and name != baseline:
            difference, p_values = values[name] - values[baseline], compared.p_values[index, names.index(baseline)]
            estimates = float(difference.mean()), finite_ends(t_interval(difference)), float(p_values)
            versus = dict(zip(versus, estimates, strict=True))
        scores[name] = {**_estimate(values[name], key), **standing, **versus}
    return scores


def describe_budgets_over_settings(
    settings: Sequence[Setting], budgets: Sequence[Budgets], options: LeaderboardOptions
) -> dict[str, Any] | None:
    """Return `label_budgets` over settings as they stand in `leaderboard.json`.

    Args:
        settings: The settings.
        budgets: Their budgets.
        options: The requested budgets.

    Returns:
        Best methods first, by the area under the learning curve or else the largest budget. None if no budget is
        reached in all settings.
    """
    comparable, remarks = choose_comparable(settings)
    if not comparable:
        return None

    methods, more = common_methods(comparable)
    of = {setting.name: each for setting, each in zip(settings, budgets, strict=True)}
    tables = [of[setting.name] for setting in comparable]

    entries: dict[str, list[dict[str, Any]]] = {name: [] for name in methods}
    for kind, numbers in (("per_class", options.per_class), ("labels", options.at)):
        for number in sorted(numbers):
            at = [next((v for b, v in table.accuracies.items() if getattr(b, kind) == number), {}) for table in tables]
            for name, scores in _means_over_settings(at, methods, "accuracy").items():
                entries[name].append({"labels": None, "per_class": None, kind: number, **scores})
    areas = _means_over_settings([table.areas for table in tables], methods, "area")
    if not any(entries.values()):
        return None

    score = {name: areas[name]["area"] if areas else each[-1]["accuracy"] for name, each in entries.items()}
    return {
        "of": describe_variety(comparable),
        "settings": [setting.name for setting in comparable],
        "remarks": [*remarks, *more],
        "methods": [
            {"name": name, "budgets": entries[name], "learning_curve_area": areas.get(name)}
            for name in sorted(methods, key=lambda name: -score[name])
        ],
    }


def _means_over_settings(tables: Sequence[Values], methods: Sequence[str], key: str) -> dict[str, dict[str, Any]]:
    """Return means over settings of the values in each; empty where a method has none."""
    if any(name not in values for values in tables for name in methods):
        return {}
    means = {name: mean_of_means([values[name] for values in tables]) for name in methods}
    return {name: {key: mean, "ci95": finite_ends(np.clip(ends, 0, 1))} for name, (mean, *ends) in means.items()}

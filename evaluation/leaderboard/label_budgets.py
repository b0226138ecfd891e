"""Accuracy at label budgets: in each setting, with tests of all pairs of methods, and as the mean over settings."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from headstart.contract.tables.grouping import grouped
from headstart.evaluation.leaderboard.entries import standings
from headstart.evaluation.leaderboard.over_settings import choose_comparable, common_methods, describe_variety
from headstart.evaluation.leaderboard.requested_budgets import Budget, is_balanced, requested_budgets
from headstart.evaluation.leaderboard.settings import Setting
from headstart.evaluation.trace_options import LeaderboardOptions
from headstart.metrics.arrays import Floats
from headstart.metrics.sample_efficiency.curves import Curves
from headstart.metrics.sample_efficiency.learning_curve_area import learning_curve_area
from headstart.metrics.sample_efficiency.resolution import compare_all_pairs, maximal_groups, rank_intervals
from headstart.metrics.sample_efficiency.scores import finite_ends, mean_of_means, t_interval
from headstart.output.errors import UserError

REMEDY = "headstart train measures them with --criterion.until=limit and a data.max_samples as large"


class Budgets(NamedTuple):
    """The label budgets of one setting.

    Attributes:
        accuracies: Accuracy of each method at each budget that its traces reach, `[orderings]`.
        of_class: Accuracy of each class likewise, `[orderings, classes]`, where classes were counted.
        areas: Area under the learning curve of each method, `[orderings]`; empty where there is none.
        ends: Samples seen at the first and the last evaluation of the area.
        remarks: Remarks on what is missing.
    """

    accuracies: dict[Budget, dict[str, Floats]]
    of_class: dict[Budget, dict[str, Floats]]
    areas: dict[str, Floats]
    ends: tuple[int, int]
    remarks: list[str]

    def of(self, kind: str, number: int) -> dict[str, Floats]:
        """Return the accuracies of methods at so many `labels`, or labels `per_class`."""
        found = (values for budget, values in self.accuracies.items() if getattr(budget, kind) == number)
        return next(found, {})


def find_budgets(settings: Sequence[Setting], options: LeaderboardOptions) -> list[Budgets]:
    """Find the accuracies of every setting at the requested budgets.

    Raises:
        UserError: Labels per class are requested, and no stream is balanced.
    """
    if options.per_class and not any(is_balanced(each.protocol) for each in settings):
        raise UserError(
            "per_class: no stream is balanced over the classes; run headstart train with --data.order=balanced, or "
            "give numbers of labels with --at"
        )
    return [_find(each, options) for each in settings]


def _find(setting: Setting, options: LeaderboardOptions) -> Budgets:
    curves, remarks, accuracies = setting.curves, list[str](), dict[Budget, dict[str, Floats]]()
    requested = requested_budgets(setting.protocol, options)
    if not options.per_class and not options.at:
        return Budgets(accuracies, {}, {}, (0, 0), remarks)
    if options.per_class and not is_balanced(setting.protocol):
        remarks.append("No accuracy at labels per class: the stream is not balanced (data.order=balanced).")

    for budget in requested:
        if budget.labels in options.at or budget.labels in curves.samples_seen:
            at = curves.accuracy_at(budget.labels)
            accuracies[budget] = {
                name: values for name, values in zip(curves.methods, at, strict=True) if not np.isnan(values).any()
            }
    of_class = _of_class(curves, accuracies)
    remarks += _describe_uncounted(curves, accuracies, of_class)
    short = [budget for budget in requested if len(accuracies.get(budget, ())) < len(curves.methods)]
    if short:
        remarks.append(_describe_missing(setting, short, accuracies))

    reached = [budget.labels for budget, known in accuracies.items() if len(known) == len(curves.methods)]
    areas, ends = dict[str, Floats](), (int(curves.samples_seen[0]), max(reached, default=0))
    within = curves.samples_seen <= ends[1]
    if within.sum() > 1 and not curves.is_lazy:
        seen = curves.samples_seen[within]
        ends = ends[0], int(seen[-1])
        areas = dict(zip(curves.methods, learning_curve_area(curves.accuracy[..., within], seen), strict=True))
    return Budgets(accuracies, of_class, areas, ends, remarks)


def _of_class(curves: Curves, accuracies: Mapping[Budget, Mapping[str, Floats]]) -> dict[Budget, dict[str, Floats]]:
    """Return the accuracies of classes of the methods that have accuracies and counted them in all orderings."""
    of_class: dict[Budget, dict[str, Floats]] = {}
    for budget, known in accuracies.items():
        index = curves.index_at(budget.labels)
        at = None if index is None else curves.class_accuracies.get(index)
        if at is not None:
            own = {name: at[curves.methods.index(name)] for name in known}
            # Of a class without a validation sample nothing is known in any ordering.
            of_class[budget] = {name: each for name, each in own.items() if not np.isnan(each).all(1).any()}
    return of_class


def _describe_uncounted(
    curves: Curves, accuracies: Mapping[Budget, Mapping[str, Floats]], of_class: Mapping[Budget, Mapping[str, Floats]]
) -> list[str]:
    """Return the remark on methods that did not count classes in all orderings, where any of them did."""
    names = [name for budget, known in accuracies.items() for name in known if name not in of_class.get(budget, {})]
    if not names or not any(np.isfinite(each).any() for each in curves.class_accuracies.values()):
        return []
    return [
        f"No balanced accuracy at some budgets of {', '.join(dict.fromkeys(names))}: classes were not counted in all "
        "orderings; run headstart train with --results.per_class=true."
    ]


def _describe_missing(setting: Setting, budgets: Sequence[Budget], accuracies: dict[Budget, dict[str, Floats]]) -> str:
    """Return the remark on budgets that are missing, and how to get them."""
    lacking = grouped(
        (tuple(name for name in setting.names if name not in accuracies.get(budget, {})), str(budget.labels))
        for budget in budgets
    )
    listed = "; ".join(
        f"{', '.join(labels)}" + (f" ({', '.join(methods)})" if len(methods) < len(setting.names) else "")
        for methods, labels in lacking.items()
    )
    why = "traces end before, or have no evaluation there"
    if setting.curves.is_lazy:
        return f"No accuracy at {listed} labels: evaluations were left out; run with --criterion.evaluation=every."
    return f"No accuracy at {listed} labels: {why}. {REMEDY}."


def describe_budgets(setting: Setting, budgets: Budgets) -> dict[str, Any]:
    """Return `label_budgets` and `learning_curve_area` of a setting as they stand in `leaderboard.json`."""
    listed: dict[str, list[dict[str, Any]]] = {name: [] for name in setting.names}
    for budget, accuracies in budgets.accuracies.items():
        of_class = budgets.of_class.get(budget, {})
        for name, scores in _compare(accuracies, setting.baseline, setting.curves.all_correct, "accuracy").items():
            classes = _describe_classes(of_class[name], setting.protocol.get("classes")) if name in of_class else {}
            listed[name].append({**budget._asdict(), **scores, **classes})

    areas = _compare(budgets.areas, setting.baseline, 1, "area")
    ends = {"from": budgets.ends[0], "to": budgets.ends[1]}
    return {
        "label_budgets": listed if any(listed.values()) else {},
        "learning_curve_area": {name: {**scores, **ends} for name, scores in areas.items()},
    }


def _describe_classes(accuracies: Floats, names: Sequence[str] | None) -> dict[str, Any]:
    """Return the balanced accuracy of a method, and the accuracy of each class.

    Args:
        accuracies: Accuracies, `[orderings, classes]`; NaN of classes without a validation sample.
        names: Names of the classes; their numbers by default.
    """
    means = {
        str(name): _estimate(each)
        for name, each in zip(names or range(accuracies.shape[1]), accuracies.T, strict=True)
        if not np.isnan(each).any()
    }
    return {"balanced_accuracy": _estimate(np.nanmean(accuracies, axis=1)), "class_accuracies": means}


def _estimate(accuracies: Floats) -> dict[str, Any]:
    return {"accuracy": float(accuracies.mean()), "ci95": finite_ends(np.clip(t_interval(accuracies), 0, 1))}


def _compare(values: dict[str, Floats], baseline: str | None, all_correct: int, key: str) -> dict[str, dict[str, Any]]:
    """Return the scores of methods by their accuracies or areas in the same orderings, best first.

    Args:
        values: The values, by name.
        baseline: The method that the others are compared with.
        all_correct: Factor of accuracies, so that the tests sum whole numbers.
        key: Name of the mean.
    """
    if not values:
        return {}
    names = sorted(values, key=lambda name: -values[name].mean())
    shares = np.stack([values[name] for name in names])
    # The tests take lower values for better ones.
    wrong = (1 - shares) * all_correct
    wrong = wrong.round() if all_correct > 1 else wrong
    [compared] = compare_all_pairs([wrong])
    ranks = rank_intervals(wrong.mean(1), compared.significant).tolist()

    scores = {}
    of_baseline = names.index(baseline) if baseline in names else None
    ranked = standings(ranks, maximal_groups(compared.significant))
    for index, (name, standing) in enumerate(zip(names, ranked, strict=True)):
        scores[name] = {
            key: float(shares[index].mean()),
            "ci95": finite_ends(np.clip(t_interval(shares[index]), 0, 1)),
            **standing,
            **dict.fromkeys(("difference", "difference_ci95", "p_value_adjusted")),
        }
        if of_baseline is not None and index != of_baseline:
            difference = shares[index] - shares[of_baseline]
            scores[name] |= {
                "difference": float(difference.mean()),
                "difference_ci95": finite_ends(t_interval(difference)),
                "p_value_adjusted": float(compared.p_values[index, of_baseline]),
            }
    return scores


def describe_budgets_over_settings(
    settings: Sequence[Setting], budgets: Sequence[Budgets], options: LeaderboardOptions
) -> dict[str, Any] | None:
    """Return `label_budgets` over settings as they stand in `leaderboard.json`.

    Args:
        settings: The settings that may be pooled.
        budgets: Their budgets.
        options: The requested budgets.

    Returns:
        Best methods first, by the area under the learning curve or else the largest budget. None if no budget is
        reached in all settings.
    """
    chosen, remarks = choose_comparable(settings)
    if not chosen:
        return None
    methods, more = common_methods(chosen)
    of = {setting.name: each for setting, each in zip(settings, budgets, strict=True)}
    own = [of[each.name] for each in chosen]

    entries: dict[str, list[dict[str, Any]]] = {name: [] for name in methods}
    for kind, numbers in (("per_class", options.per_class), ("labels", options.at)):
        for number in sorted(numbers):
            means = _means_over_settings([each.of(kind, number) for each in own], methods, "accuracy")
            for name, scores in means.items():
                entries[name].append({"labels": None, "per_class": None, kind: number, **scores})
    areas = _means_over_settings([each.areas for each in own], methods, "area")
    if not any(entries.values()):
        return None

    score = {name: areas[name]["area"] if areas else each[-1]["accuracy"] for name, each in entries.items()}
    return {
        "of": describe_variety(chosen),
        "settings": [each.name for each in chosen],
        "remarks": [*remarks, *more],
        "methods": [
            {"name": name, "budgets": entries[name], "learning_curve_area": areas.get(name)}
            for name in sorted(methods, key=lambda name: -score[name])
        ],
    }


def _means_over_settings(tables: Sequence[dict[str, Floats]], methods: Sequence[str], key: str) -> dict[str, Any]:
    """Return means over settings of the values in each; empty where a method has none."""
    if any(name not in values for values in tables for name in methods):
        return {}
    means = {}
    for name in methods:
        mean, *ends = mean_of_means([values[name] for values in tables])
        means[name] = {key: mean, "ci95": finite_ends(np.clip(ends, 0, 1))}
    return means

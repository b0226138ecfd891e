"""The results of a stability study: the content of `stability.json`, the CSV tables, and the printed tables."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from headstart.evaluation.estimates import few_targets, format_estimate
from headstart.evaluation.stability.study import Study
from headstart.metrics.arrays import Floats
from headstart.metrics.ranking.aggregates import jackknife_values
from headstart.metrics.ranking.outcomes import Ties, round_to_100
from headstart.metrics.ranking.over_targets import LEVEL, mean_interval, p_value
from headstart.metrics.ranking.ranking_measures import EVALUATION_MEASURES, MEASURES
from headstart.metrics.sample_efficiency.scores import finite, finite_ends
from headstart.output.printable import print_lines
from headstart.output.tables import print_table

# The columns of win rates, with their titles: the measures, and the mean over them.
RATED: dict[str, str] = {name: measure.title for name, measure in EVALUATION_MEASURES.items()} | {"average": "average"}
TIES: tuple[Ties, ...] = ("split", "last")
# Smaller differences between rates are rounding errors.
SAME = 1e-9

Table = tuple[list[str], list[list[Any]]]


def setup_stability_interval(study: Study, component: str) -> tuple[float, float]:
    """Compute the 95 % interval of the setup stability by the jackknife over targets, within -1 and 1; NaN if unknown.

    Experiments are left out target by target: pools share most of their sources, and measures agree on most of what
    they measure, so that only targets can be considered independent. `mean_interval` says when there is none.
    """
    mean = study.setup_stability[component].mean
    if mean is None:
        return math.nan, math.nan
    return mean_interval(jackknife_values(mean, study.setup_stability_without()[component]), -1.0, 1.0)


def moves_most(study: Study) -> dict[str, Any] | None:
    """Compare the component with the lowest setup stability with the next one; None with fewer than two.

    Returns:
        `component`, `next`, by how much less outcomes agree where the first varies (`difference`, with its `ci95` and
        `p_value` by the jackknife over targets), and the targets without which another would be the first
        (`unless_without`).
    """
    means = {name: agreement.mean for name, agreement in study.setup_stability.items() if agreement.mean is not None}
    if len(means) < 2:
        return None
    first, second = sorted(means, key=means.__getitem__)[:2]
    without = study.setup_stability_without()
    others = np.array([without[name] for name in means if name != first])
    changed = np.flatnonzero((others < without[first]).any(axis=0))
    difference = means[second] - means[first]
    values = jackknife_values(difference, without[second] - without[first])
    return {
        "component": first,
        "next": second,
        "difference": difference,
        "ci95": finite_ends(mean_interval(values, -2.0, 2.0)),
        "p_value": p_value(values) if np.isfinite(values).all() else None,
        "unless_without": [study.table.targets[i] for i in changed],
    }


def moves_most_in_words(study: Study) -> list[str]:
    """Return a sentence that names the component that moves the outcome most; none if fewer than two are defined."""
    result = moves_most(study)
    if result is None:
        return []
    first = result["component"]
    mean = study.setup_stability[first].mean
    agreement = format_estimate(mean, finite_ends(setup_stability_interval(study, first)), ".2f")
    less = format_estimate(result["difference"], result["ci95"], ".2f")
    is_unsure = result["p_value"] is None or result["p_value"] > LEVEL
    unsure = ", a difference that the targets do not distinguish from 0" if is_unsure else ""
    unless = f", unless {' or '.join(result['unless_without'])} is left out" if result["unless_without"] else ""
    return [
        f"What moves the outcome most is the {first}{unless}: two experiments that differ in it alone agree by "
        f"{agreement}, which is {less} less than two that differ in the {result['next']} alone{unsure}."
    ]


def describe(study: Study, ties: Ties) -> dict[str, Any]:
    """Return the part of `stability.json` that the study decides, with None for undefined values.

    Args:
        study: A complete study.
        ties: How ties of winners count in `win_rate_percent`.
    """
    stability, wins, table = study.setup_stability, study.wins, study.table
    rates = {f"win_rate_percent_ties_{kind}": _by_metric(study, wins.percent(kind)) for kind in TIES}
    ranges = {f"win_rate_percent_ties_{kind}": _by_metric(study, _range_without(study, kind)) for kind in TIES}
    without = study.setup_stability_without()

    sizes = {
        "experiments": study.experiments,
        "undefined_experiments": study.undefined,
        "metrics": table.metrics,
        "left_out": table.left_out,
        "sources": table.sources,
        "targets": table.targets,
    }
    agreements = {
        "setup_stability": {name: agreement.mean for name, agreement in stability.items()},
        "setup_stability_ci95": {name: finite_ends(setup_stability_interval(study, name)) for name in stability},
        "moves_most": moves_most(study),
        "not_computed": few_targets(len(table.targets)),
        "setup_stability_groups": {name: agreement.groups for name, agreement in stability.items()},
        "setup_stability_pairs": {name: agreement.pairs for name, agreement in stability.items()},
    }

    return {
        **sizes,
        **agreements,
        "win_rate_percent": rates[f"win_rate_percent_ties_{ties}"],
        **rates,
        "tied_winners_percent": dict(zip(MEASURES, map(finite, wins.tied_percent()), strict=True)),
        "leave_one_target_out": {
            "setup_stability": {name: finite_ends((each.min(), each.max())) for name, each in without.items()},
            **ranges,
        },
    }


def _by_metric(study: Study, values: Floats) -> dict[str, dict[str, Any]]:
    """Name the values `[m, e + 1]`, or their ranges `[m, e + 1, 2]`."""
    return {
        metric: {
            column: finite_ends(value) if np.ndim(value) else finite(value)
            for column, value in zip(RATED, row, strict=True)
        }
        for metric, row in zip(study.table.metrics, values, strict=True)
    }


def _range_without(study: Study, ties: Ties) -> Floats:
    """Return the lowest and the highest win rate with one target left out, `[m, e + 1, 2]`."""
    rates = study.wins.percent_without_each(ties)
    return np.stack([rates.min(axis=0), rates.max(axis=0)], axis=-1)


def setup_stability_table(study: Study) -> Table:
    """Return the columns and rows of `setup_stability.csv`."""
    without = study.setup_stability_without()
    rows = []
    for name, agreement in study.setup_stability.items():
        ends = *setup_stability_interval(study, name), without[name].min(), without[name].max()
        rows.append([name, agreement.mean, *map(finite, ends), agreement.groups, agreement.pairs])
    ends_columns = ["ci95_low", "ci95_high", "lowest_without_a_target", "highest_without_a_target"]
    return ["varying", "setup_stability", *ends_columns, "groups", "pairs"], rows


def win_rate_table(study: Study) -> Table:
    """Return the columns and rows of `win_rates.csv`, under both treatments of ties.

    A row has the percentage at full precision, rounded so that all add up to 100, and the lowest and the highest with
    one target left out.
    """
    rows = []
    for kind in TIES:
        percent, left_out = study.wins.percent(kind), _range_without(study, kind)
        for column, name in enumerate(RATED):
            rates = percent[:, column]
            rounded: Sequence[int | None] = [None] * len(rates) if np.isnan(rates).any() else round_to_100(rates)
            for m, metric in enumerate(study.table.metrics):
                exact, low, high = map(finite, (rates[m], *left_out[m, column]))
                rows.append([kind, name, metric, exact, rounded[m], low, high])
    columns = ["ties", "measure", "metric", "percent", "rounded", "lowest_without_a_target", "highest_without_a_target"]
    return columns, rows


def print_study(study: Study, ties: Ties) -> None:
    """Print the tables of the paper, first with ties as they are to count, and what the leaders depend on."""
    table = study.table
    sizes = (
        f"{study.experiments:,} experiments: {len(table.metrics)} metrics, {len(table.sources)} sources in pools of "
        f"{study.pool_size}, {len(table.targets)} targets, {len(MEASURES)} measures; {study.undefined:,} tie all "
        "metrics, or have one without a value, and are in no pair"
    )
    print_lines([sizes])

    rows = [["varying", "setup stability", "groups", "pairs"]]
    for name, agreement in study.setup_stability.items():
        ends = finite_ends(setup_stability_interval(study, name))
        mean = "undefined" if agreement.mean is None else format_estimate(agreement.mean, ends, ".2f")
        rows.append([name, mean, f"{agreement.groups:,}", f"{agreement.pairs:,}"])
    title = "Setup stability: mean Kendall tau-b over pairs of experiments that differ in one component"
    print_table(title, rows, "in brackets: 95 % interval by the jackknife over targets")
    print_lines([*moves_most_in_words(study), *few_targets(len(table.targets))])

    for kind in (ties, *(other for other in TIES if other != ties)):
        counted = "shared equally" if kind == "split" else "counted for the last metric"
        caption = "in brackets: from the lowest to the highest with one target left out"
        print_table(f"Win rate in % (ties={kind}: {counted})", _win_rate_cells(study, kind), caption)
    print_lines([*_effects_of_ties(study), *_effects_of_targets(study, ties)])


def _win_rate_cells(study: Study, ties: Ties) -> list[list[str]]:
    rows = [["metric", *RATED.values()]]
    for title, rates, ranges in zip(
        study.table.titles, study.wins.percent(ties), _range_without(study, ties), strict=True
    ):
        cells = zip(map(finite, rates), map(finite_ends, ranges), strict=True)
        rows.append([title, *(format_estimate(rate, ends, ".1f") for rate, ends in cells)])
    return rows


def _effects_of_ties(study: Study) -> list[str]:
    """Return sentences: how often several metrics win, and where the leader depends on how that is counted."""
    tied = zip(MEASURES, study.wins.tied_percent(), strict=True)
    shares = [f"{value:.1f} % {RATED[name]}" for name, value in tied if math.isfinite(value)]
    lines = [f"Experiments with several winners: {', '.join(shares)}."] if shares else []
    for column, measure in enumerate(RATED.values()):
        percent = {kind: study.wins.percent(kind)[:, column] for kind in TIES}
        leaders = {kind: _leaders(rates) for kind, rates in percent.items()}
        if leaders["split"] != leaders["last"]:
            named = [
                f"{_titles(study, metrics)} with ties={kind} ({percent[kind][metrics[0]]:.1f} %)"
                for kind, metrics in leaders.items()
            ]
            lines.append(f"{measure}: the choice of ties changes the leader: {' but '.join(named)}.")
    return lines


def _effects_of_targets(study: Study, ties: Ties) -> list[str]:
    """Return sentences that say for which measures the leader depends on a single target."""
    percent, left_out = study.wins.percent(ties), study.wins.percent_without_each(ties)
    lines = []
    for column, measure in enumerate(RATED.values()):
        if np.isnan(left_out[:, :, column]).any():
            continue
        leaders = _leaders(percent[:, column])
        without = zip(study.table.targets, left_out[:, :, column], strict=True)
        changed = [target for target, rates in without if _leaders(rates) != leaders]
        exceptions = f"one of {', '.join(changed)}" if len(changed) > 1 else "".join(changed)
        condition = f"unless {exceptions} is left out" if changed else "whichever target is left out"
        verb = "leads" if len(leaders) == 1 else "lead"
        lines.append(f"{measure}: {_titles(study, leaders)} {verb} with ties={ties}, {condition}.")
    return lines


def _leaders(percent: Floats) -> list[int]:
    """Return the metrics with the highest rate; none if it is undefined."""
    return np.flatnonzero(percent >= percent.max() - SAME).tolist()


def _titles(study: Study, metrics: Sequence[int]) -> str:
    return " and ".join(study.table.titles[metric] for metric in metrics)

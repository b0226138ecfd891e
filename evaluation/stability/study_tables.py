"""The results of a stability study: the content of `stability.json`, the CSV tables, and the printed tables."""

import math
from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import Any

import numpy as np

from headstart.evaluation.estimates import few_targets
from headstart.evaluation.stability.study import (
    Study,
    setup_stability_errors,
    win_rate_errors,
    without_batches,
)
from headstart.metrics.ranking.aggregates import jackknife_error, jackknife_values
from headstart.metrics.ranking.outcomes import Ties, round_to_100
from headstart.metrics.ranking.over_targets import LEVEL, mean_interval, p_value
from headstart.metrics.ranking.ranking_measures import EVALUATION_MEASURES, MEASURES
from headstart.metrics.sample_efficiency.scores import finite, finite_ends
from headstart.output.printable import print_lines
from headstart.output.tables import format_estimate, print_table

# The columns of win rates, with their titles: the measures, and the mean over them.
RATED: dict[str, str] = {name: measure.title for name, measure in EVALUATION_MEASURES.items()} | {"average": "average"}
TIES: tuple[Ties, ...] = ("split", "last")
# The columns that say how many pools there are, and how many are drawn; empty if all are studied.
POOLS = "all_pools", "drawn_pools"
# Drawn pools that a target should use; with fewer, its share in an estimate and in the standard error is unreliable.
FEW = 100

Rows = list[dict[str, Any]]
SETUP_COLUMNS = (
    *("varying", "setup_stability", "ci95_low", "ci95_high", "lowest_without_a_target", "highest_without_a_target"),
    *("standard_error", "groups", "pairs", *POOLS),
)
RATE_COLUMNS = (
    *("ties", "measure", "metric", "percent", "rounded", "lowest_without_a_target", "highest_without_a_target"),
    *("standard_error", *POOLS),
)


def setup_stability_interval(study: Study, component: str) -> tuple[float, float]:
    """Compute the 95 % interval of the setup stability by the jackknife over targets, within -1 and 1; NaN if unknown.

    Experiments are left out target by target, because only targets can be considered independent. Pools share most of
    their sources, and measures agree on most outcomes. `mean_interval` says when there is none.
    """
    mean = study.setup_stability[component].mean
    if mean is None:
        return math.nan, math.nan
    return mean_interval(jackknife_values(mean, study.setup_stability_without()[component]), -1.0, 1.0)


def with_error(estimate: str, error: float | None, form: str = ".4f") -> str:
    """Add the standard error of drawing pools to a formatted estimate; nothing if there is none."""
    return estimate if error is None or math.isnan(error) else f"{estimate} ± {error:{form}}"


def moves_most(study: Study) -> dict[str, Any] | None:
    """Compare the component with the lowest setup stability with the next one; None with fewer than two.

    Returns:
        `component` and `next`, the first two. `difference` is how much less outcomes agree where the first varies. It
        has its `ci95` and `p_value` by the jackknife over targets, and the `standard_error` of drawing pools.
        `unless_without` are the targets without which another would be the first.
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
    drawn = without_batches(study)
    return {
        "component": first,
        "next": second,
        "difference": difference,
        "ci95": finite_ends(mean_interval(values, -2.0, 2.0)),
        "p_value": p_value(values) if np.isfinite(values).all() else None,
        "standard_error": finite(float(jackknife_error(drawn[second] - drawn[first]))),
        "unless_without": [study.table.targets[i] for i in changed],
    }


def moves_most_in_words(most: Mapping[str, Any] | None, agreements: Rows) -> list[str]:
    """Return a sentence that names the component that changes the outcome most; none if fewer than two are defined.

    Args:
        most: As `moves_most` returns it.
        agreements: Rows of `setup_stability_rows`.
    """
    if most is None:
        return []
    first = most["component"]
    agreement = next(_agreement(row) for row in agreements if row["varying"] == first)
    less = with_error(format_estimate(most["difference"], most["ci95"], ".2f"), most["standard_error"])
    is_unsure = most["p_value"] is None or most["p_value"] > LEVEL
    unsure = ", which is not a significant difference" if is_unsure else ""
    unless = f", unless {' or '.join(most['unless_without'])} is left out" if most["unless_without"] else ""
    return [
        f"The {first} changes the outcome most{unless}. Two experiments that differ only in it agree by {agreement}. "
        f"This is {less} less than for two that differ only in the {most['next']}{unsure}."
    ]


def _agreement(row: Mapping[str, Any]) -> str:
    """Format the setup stability of a row, with its interval and the standard error of drawing pools."""
    mean = row["setup_stability"]
    estimate = "undefined" if mean is None else format_estimate(mean, [row["ci95_low"], row["ci95_high"]], ".2f")
    return with_error(estimate, row["standard_error"])


def setup_stability_rows(study: Study) -> Rows:
    """Return the rows of `setup_stability.csv`, from which what is printed and in JSON follows, by column."""
    without, errors = study.setup_stability_without(), setup_stability_errors(study)
    rows = []
    for name, agreement in study.setup_stability.items():
        ends = *setup_stability_interval(study, name), without[name].min(), without[name].max()
        numbers = [agreement.mean, *map(finite, (*ends, errors[name])), int(agreement.groups.sum()), agreement.pairs]
        rows.append(dict(zip(SETUP_COLUMNS, [name, *numbers, study.pools.all_in_json, study.pools.drawn], strict=True)))
    return rows


def win_rate_rows(study: Study) -> Rows:
    """Return the rows of `win_rates.csv`, under both treatments of ties, by column.

    A row has the percentage at full precision, and rounded so that all add up to 100. It also has the lowest and the
    highest with one target left out.
    """
    rows = []
    for kind in TIES:
        percent, left_out = study.wins.percent(kind), study.wins.percent_without_each(kind, "target")
        values = percent, left_out.min(axis=0), left_out.max(axis=0), win_rate_errors(study, kind)
        for column, name in enumerate(RATED):
            rates = percent[:, column]
            rounded: Sequence[int | None] = [None] * len(rates) if np.isnan(rates).any() else round_to_100(rates)
            for m, metric in enumerate(study.table.metrics):
                exact, *others = (finite(value[m, column]) for value in values)
                cells = [kind, name, metric, exact, rounded[m], *others, study.pools.all_in_json, study.pools.drawn]
                rows.append(dict(zip(RATE_COLUMNS, cells, strict=True)))
    return rows


def _by_metric(rates: Rows, ties: Ties, value: Callable[[Mapping[str, Any]], Any]) -> dict[str, dict[str, Any]]:
    """Return a value of each row of win rates by metric and measure, under one treatment of ties."""
    nested: dict[str, dict[str, Any]] = {}
    for row in rates:
        if row["ties"] == ties:
            nested.setdefault(row["metric"], {})[row["measure"]] = value(row)
    return nested


def _ends(row: Mapping[str, Any]) -> list[float | None]:
    return [row["lowest_without_a_target"], row["highest_without_a_target"]]


def describe(study: Study, ties: Ties, agreements: Rows, rates: Rows) -> dict[str, Any]:
    """Return the part of `stability.json` that the study decides, with None for undefined values.

    Args:
        study: A complete study.
        ties: How ties of winners count in `win_rate_percent`.
        agreements: Rows of `setup_stability_rows`.
        rates: Rows of `win_rate_rows`.
    """
    table = study.table

    def of_components(value: Callable[[Mapping[str, Any]], Any]) -> dict[str, Any]:
        return {row["varying"]: value(row) for row in agreements}

    def of_rates(value: Callable[[Mapping[str, Any]], Any]) -> dict[str, Any]:
        return {f"win_rate_percent_ties_{kind}": _by_metric(rates, kind, value) for kind in TIES}

    percent = of_rates(itemgetter("percent"))
    error = itemgetter("standard_error")
    errors = {"setup_stability": of_components(error), **of_rates(error)}

    return {
        "all_pools": study.pools.all_in_json,
        "experiments": study.experiments,
        "undefined_experiments": study.undefined,
        "metrics": table.metrics,
        "left_out": table.left_out,
        "sources": table.sources,
        "targets": table.targets,
        "setup_stability": of_components(itemgetter("setup_stability")),
        "setup_stability_ci95": of_components(lambda row: [row["ci95_low"], row["ci95_high"]]),
        "moves_most": moves_most(study),
        "not_computed": few_targets(len(table.targets)),
        "setup_stability_groups": of_components(itemgetter("groups")),
        "setup_stability_pairs": of_components(itemgetter("pairs")),
        "win_rate_percent": percent[f"win_rate_percent_ties_{ties}"],
        **percent,
        "tied_winners_percent": dict(zip(MEASURES, map(finite, study.wins.tied_percent()), strict=True)),
        "standard_error": errors if study.pools.drawn else None,
        "few_pools": few_pools(study),
        "leave_one_target_out": {"setup_stability": of_components(_ends), **of_rates(_ends)},
    }


def print_study(study: Study, ties: Ties, agreements: Rows, rates: Rows) -> None:
    """Print the tables of the paper, first with ties as they are to count, and how often metrics tie."""
    table = study.table
    sizes = (
        f"{study.experiments:,} experiments: {len(table.metrics)} metrics, {len(table.sources)} sources in pools of "
        f"{study.pools.size}, {len(table.targets)} targets, {len(MEASURES)} measures; {study.undefined:,} tie all "
        "metrics, or have one without a value, and are in no pair"
    )
    print_lines([sizes, *pools_in_words(study)])

    drawn = "; ±: standard error of drawing pools" if study.pools.drawn else ""
    cells = [["varying", "setup stability", "groups", "pairs"]]
    for row in agreements:
        cells.append([row["varying"], _agreement(row), *(f"{row[key]:,}" for key in ("groups", "pairs"))])
    title = "Setup stability: mean Kendall tau-b over pairs of experiments that differ in one component"
    print_table(title, cells, f"in brackets: 95 % interval by the jackknife over targets{drawn}")
    print_lines([*moves_most_in_words(moves_most(study), agreements), *few_targets(len(table.targets))])

    def estimated(row: Mapping[str, Any]) -> str:
        return with_error(format_estimate(row["percent"], _ends(row), ".1f"), row["standard_error"], ".2f")

    for kind in (ties, *(other for other in TIES if other != ties)):
        counted = "shared equally" if kind == "split" else "counted for the last metric"
        of_metrics = zip(table.titles, _by_metric(rates, kind, estimated).values(), strict=True)
        rows = [["metric", *RATED.values()], *([name, *its.values()] for name, its in of_metrics)]
        caption = f"in brackets: from the lowest to the highest with one target left out{drawn}"
        print_table(f"Win rate in % (ties={kind}: {counted})", rows, caption)
    print_lines(_tied_winners(study))


def pools_in_words(study: Study) -> list[str]:
    """Return a sentence that says how pools are drawn; none if all are studied."""
    pools = study.pools
    if not pools.drawn:
        return []
    few = [f"{target} ({count:,})" for target, count in few_pools(study).items()]
    targets = [f"Few of these pools lack the sources that a target excludes: {', '.join(few)}."] if few else []
    return [
        f"Estimates from {pools} (seed {pools.seed}). Their standard errors are those of drawing pools alone, by the "
        f"jackknife over {pools.batches} independent batches, in each of which all sources are equally often.",
        *targets,
    ]


def few_pools(study: Study) -> dict[str, int]:
    """Return the targets that use few of the drawn pools, because the others hold sources that they exclude."""
    fewest = min(FEW, study.pools.drawn or 0)
    return {
        target: count for target, count in zip(study.table.targets, study.used.tolist(), strict=True) if count < fewest
    }


def _tied_winners(study: Study) -> list[str]:
    """Return a sentence that says how often several metrics win."""
    tied = zip(MEASURES, study.wins.tied_percent(), strict=True)
    shares = [f"{value:.1f} % {RATED[name]}" for name, value in tied if math.isfinite(value)]
    return [f"Experiments with several winners: {', '.join(shares)}."] if shares else []

"""What a stability study reports: a JSON document, CSV tables and printed ones."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headstart.evaluation.over_targets import number
from headstart.evaluation.stability.components import (
    interval_in_words,
    moves_most,
    moves_most_in_words,
    setup_stability_interval,
)
from headstart.evaluation.stability.study import Study
from headstart.metrics.ranking.ranking_measures import EVALUATION_MEASURES, MEASURES
from headstart.metrics.ranking.win_rates import Ties, round_to_100
from headstart.output.printable import print_lines
from headstart.output.tables import print_table

# What win rates are given by, with their titles: the measures, and the mean over them.
RATED: dict[str, str] = {name: measure.title for name, measure in EVALUATION_MEASURES.items()}
RATED["average"] = "average"
TIES: tuple[Ties, ...] = ("split", "last")
# Rates that differ by less differ by rounding errors.
SAME = 1e-9

TableRows = list[list[Any]]
Percent = NDArray[np.float64]


def describe(study: Study, ties: Ties) -> dict[str, Any]:
    """Give the content of `stability.json` but for what only the command knows, with None for what is undefined.

    Args:
        study: A complete study.
        ties: How ties of winners count in `win_rate_percent`.
    """
    stability, wins, metrics = study.setup_stability, study.wins, study.table.metrics
    return {
        "experiments": study.experiments,
        "undefined_experiments": study.undefined,
        "metrics": metrics,
        "left_out": study.table.left_out,
        "sources": study.table.sources,
        "targets": study.table.targets,
        "setup_stability": {name: agreement.mean for name, agreement in stability.items()},
        "setup_stability_ci95": {
            name: [number(end) for end in setup_stability_interval(study, name)] for name in stability
        },
        "moves_most": moves_most(study),
        "setup_stability_groups": {name: agreement.groups for name, agreement in stability.items()},
        "setup_stability_pairs": {name: agreement.pairs for name, agreement in stability.items()},
        "win_rate_percent": _by_metric(metrics, wins.percent(ties)),
        **{f"win_rate_percent_ties_{kind}": _by_metric(metrics, wins.percent(kind)) for kind in TIES},
        "tied_winners_percent": dict(zip(MEASURES, map(number, wins.tied_percent()), strict=True)),
        "leave_one_target_out": {
            "setup_stability": {
                name: [number(end) for end in (values.min(), values.max())]
                for name, values in study.setup_stability_without().items()
            },
            **{f"win_rate_percent_ties_{kind}": _by_metric(metrics, _rates(study, kind)[2]) for kind in TIES},
        },
    }


def setup_stability_rows(study: Study) -> tuple[list[str], TableRows]:
    """Tabulate the setup stability: the names of the columns, and the rows."""
    without = study.setup_stability_without()
    rows = [
        [
            name,
            found.mean,
            *map(number, (*setup_stability_interval(study, name), without[name].min(), without[name].max())),
            found.groups,
            found.pairs,
        ]
        for name, found in study.setup_stability.items()
    ]
    ends = ["ci95_low", "ci95_high", "lowest_without_a_target", "highest_without_a_target"]
    return ["varying", "setup_stability", *ends, "groups", "pairs"], rows


def win_rate_rows(study: Study) -> tuple[list[str], TableRows]:
    """Tabulate the win rates under both treatments of ties: the names of the columns, and the rows.

    A row has the percentage at full precision, rounded so that all add up to 100, and the lowest and the highest with
    one target left out.
    """
    rows: TableRows = []
    for kind in TIES:
        percent, whole, left_out = _rates(study, kind)
        for place, column in enumerate(RATED):
            for metric, name in enumerate(study.table.metrics):
                exact, *ends = map(number, (percent[metric, place], *left_out[metric, place]))
                rows.append([kind, column, name, exact, whole[place][metric], *ends])
    columns = ["ties", "measure", "metric", "percent", "rounded", "lowest_without_a_target", "highest_without_a_target"]
    return columns, rows


def print_study(study: Study, ties: Ties) -> None:
    """Print the tables of the paper, first with ties as they are to count, and what they depend on."""
    table = study.table
    counts = (
        f"{study.experiments:,} experiments: {len(table.metrics)} metrics, {len(table.sources)} sources in pools of "
        f"{study.pool_size}, {len(table.targets)} targets, {len(MEASURES)} measures; {study.undefined:,} tie all "
        "metrics, or have one without a value, and are in no pair"
    )
    print_lines([counts])
    title = "Setup stability: mean Kendall tau-b over pairs of experiments that differ in one component"
    print_table(title, _stability_table(study), "in brackets: 95 % interval by the jackknife over targets")
    print_lines(moves_most_in_words(study))
    for kind in (ties, *(other for other in TIES if other != ties)):
        counted = "shared equally" if kind == "split" else "counted for the last metric"
        caption = "in brackets: from the lowest to the highest with one target left out"
        print_table(f"Win rate in % (ties={kind}: {counted})", _win_rate_table(study, kind), caption)
    print_lines([*_what_ties_change(study), *_what_targets_change(study, ties)])


def _stability_table(study: Study) -> list[list[str]]:
    rows = [["varying", "setup stability", "groups", "pairs"]]
    for name, found in study.setup_stability.items():
        interval = map(number, setup_stability_interval(study, name))
        mean = "undefined" if found.mean is None else interval_in_words(found.mean, *interval)
        rows.append([name, mean, f"{found.groups:,}", f"{found.pairs:,}"])
    return rows


def _win_rate_table(study: Study, ties: Ties) -> list[list[str]]:
    percent, _, left_out = _rates(study, ties)
    rows = [["metric", *RATED.values()]]
    for metric, title in enumerate(study.table.titles):
        cells = []
        for place, (low, high) in enumerate(left_out[metric]):
            between = f" [{low:.1f}, {high:.1f}]" if math.isfinite(low) else ""
            exact = percent[metric, place]
            cells.append(f"{exact:.1f}{between}" if math.isfinite(exact) else "–")
        rows.append([title, *cells])
    return rows


def _rates(study: Study, ties: Ties) -> tuple[Percent, list[Sequence[int | None]], Percent]:
    """Give the win rates in percent, by metric and what they are given by.

    Returns:
        At full precision `[m, e + 1]`; whole, so that they add up to 100, `[e + 1][m]`, None where undefined; from the
        lowest to the highest with one target left out, `[m, e + 1, 2]`.
    """
    percent, left_out = study.wins.percent(ties), study.wins.percent_without_each(ties)
    whole: list[Sequence[int | None]] = [
        [None] * len(rates) if np.isnan(rates).any() else round_to_100(rates) for rates in percent.T
    ]
    return percent, whole, np.stack([left_out.min(axis=0), left_out.max(axis=0)], axis=-1)


def _what_ties_change(study: Study) -> list[str]:
    """Say how often several metrics win, and where the leader depends on how that is counted."""
    tied = study.wins.tied_percent()
    known = [(RATED[name], value) for name, value in zip(MEASURES, tied, strict=True) if math.isfinite(value)]
    shares = [f"{value:.1f} % {title}" for title, value in known]
    lines = [f"Experiments with several winners: {', '.join(shares)}."] if shares else []
    percent = {kind: study.wins.percent(kind) for kind in TIES}
    for place, column in enumerate(RATED):
        leaders = {kind: _leaders(rates[:, place]) for kind, rates in percent.items()}
        if leaders["split"] != leaders["last"]:
            named = [
                f"{_names(study, metrics)} with ties={kind} ({percent[kind][metrics[0], place]:.1f} %)"
                for kind, metrics in leaders.items()
            ]
            lines.append(f"{RATED[column]}: the choice of ties changes the leader: {' but '.join(named)}.")
    return lines


def _what_targets_change(study: Study, ties: Ties) -> list[str]:
    """Say for which measures the leader depends on a single target."""
    percent, left_out = study.wins.percent(ties), study.wins.percent_without_each(ties)
    lines = []
    for place, column in enumerate(RATED):
        if np.isnan(left_out[:, :, place]).any():
            continue
        leaders = _leaders(percent[:, place])
        without = zip(study.table.targets, left_out[:, :, place], strict=True)
        changed = [target for target, rates in without if _leaders(rates) != leaders]
        exceptions = f"one of {', '.join(changed)}" if len(changed) > 1 else "".join(changed)
        how = f"unless {exceptions} is left out" if changed else "whichever target is left out"
        verb = "leads" if len(leaders) == 1 else "lead"
        lines.append(f"{RATED[column]}: {_names(study, leaders)} {verb} with ties={ties}, {how}.")
    return lines


def _leaders(percent: NDArray[np.float64]) -> list[int]:
    """Give the metrics with the highest rate; none where it is undefined."""
    return np.flatnonzero(percent >= percent.max() - SAME).tolist()


def _names(study: Study, metrics: Sequence[int]) -> str:
    return " and ".join(study.table.titles[metric] for metric in metrics)


def _by_metric(metrics: Sequence[str], values: NDArray[np.float64]) -> dict[str, dict[str, Any]]:
    """Name the values `[m, e + 1]`, or their ranges `[m, e + 1, 2]`."""
    return {
        metric: {
            column: [number(end) for end in value] if np.ndim(value) else number(value)
            for column, value in zip(RATED, row, strict=True)
        }
        for metric, row in zip(metrics, values, strict=True)
    }

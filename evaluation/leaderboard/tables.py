"""Tables of a leaderboard for terminals, Markdown and LaTeX: a header, and rows of texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headstart.output.tables import format_number

TableRows = list[list[str]]


def describe_criterion(setting: dict[str, Any]) -> str:
    """Return the criterion of a setting, the accuracy by chance, the number of orderings and the limit."""
    measure = setting["measure"].replace("_", " ")
    shares = (("chance", setting["chance"]), ("largest class", setting["majority"]))
    known = [f"{title} {share:.0%}" for title, share in shares if share is not None]
    threshold = f"{setting['threshold']:.0%} {measure}" + (f" ({', '.join(known)})" if known else "")
    return (
        f"{threshold} at {setting['consecutive']} evaluations in a row; {len(setting['orderings'])} orderings; "
        f"restricted at {setting['restricted_at']} samples"
    )


def setting_rows(setting: dict[str, Any], accuracies: int | None = None) -> TableRows:
    """Return the table of a setting, with a row for each method.

    Args:
        setting: The setting.
        accuracies: Number of accuracies, the last ones; all by default.
    """
    methods = setting["methods"]
    known = [at for at in methods[0]["accuracy_at"] if all(each["accuracy_at"][at] is not None for each in methods)]
    known = known if accuracies is None else known[-accuracies:]
    header = ["method", "group", "rank", "reached", "median", "restricted mean", "improvement", "p", "onset"]
    rows = [[*header, *(f"accuracy at {at}" for at in known)]]
    for each in methods:
        rows.append(
            [
                each["name"] + (f" (tuned: {each['tuned']})" if each["tuned"] else ""),
                each["group"],
                _range(each["rank_interval"]),
                f"{each['reached']}/{each['orderings']}",
                _with_interval(each["median"], each["median_interval"], "g"),
                _with_interval(each["restricted_mean"], each["restricted_mean_interval"], ".1f"),
                _improvement(each["relative_improvement"], each["relative_improvement_interval"]),
                "" if each["p_value_holm"] is None else format(each["p_value_holm"], ".2g"),
                format_number(each["onset"], "g"),
                *(format(each["accuracy_at"][at], ".1%") for at in known),
            ]
        )
    return rows


def pair_rows(setting: dict[str, Any]) -> TableRows:
    """Return the table of neighbouring pairs."""
    rows = [["better", "worse", "fewer samples", "p", "told apart", "orderings needed"]]
    for pair in setting["pairs"]:
        rows.append(
            [
                pair["better"],
                pair["worse"],
                _with_interval(pair["difference"], pair["interval"], ".1f"),
                format(pair["p_value"], ".2g"),
                "yes" if pair["told_apart"] else "no",
                format_number(pair["orderings_needed"], "g"),
            ]
        )
    return rows


def over_settings_rows(document: dict[str, Any]) -> TableRows:
    """Return the table over all settings."""
    rows = [["method", "interquartile mean", "mean rank"]]
    for each in document["over_settings"]["methods"]:
        mean = _with_interval(each["interquartile_mean"], each["interquartile_mean_interval"], ".2f")
        rank = _with_interval(each["mean_rank"], each["mean_rank_interval"], ".1f")
        rows.append([each["name"] + " (tuned)" * each["tuned"], mean, rank])
    return rows


def sensitivity_rows(setting: dict[str, Any], consecutive: Sequence[int]) -> TableRows:
    """Return the best method under each criterion, with the agreement of its ranking with that of the leaderboard."""
    cells: dict[float, list[str]] = {}
    for each in setting["grid"]:
        cut = f", cut at {each['restricted_at']}" if each["undecided"] else ""
        best = f"{each['order'][0]} ({format_number(each['tau'], '.2f')}{cut})" if each["order"] else "–"
        cells.setdefault(each["threshold"], []).append(best)
    header = ["threshold", *(f"{length} in a row" for length in consecutive)]
    return [header, *([f"{100 * threshold:g}%", *row] for threshold, row in cells.items())]


def stability_rows(document: dict[str, Any]) -> TableRows:
    """Return the table of setup stability."""
    rows = [["part that varies", "setup stability", "pairs compared"]]
    for part in document["setup_stability"]["parts"]:
        stability = _with_interval(part["stability"], part["interval"], ".2f")
        rows.append([part["part"], stability, f"{part['compared']:,}"])
    return rows


def _range(ends: Sequence[int]) -> str:
    low, high = ends
    return f"{low}" if low == high else f"{low} to {high}"


def _with_interval(value: float | None, ends: Sequence[float | None] | None, form: str) -> str:
    between = "" if ends is None or ends[0] is None else f" [{', '.join(format_number(end, form) for end in ends)}]"
    return f"{format_number(value, form)}{between}"


def _improvement(value: float | None, ends: Sequence[float] | None) -> str:
    if value is None:
        return ""
    between = "" if ends is None else f" [{', '.join(str(round(end)) for end in ends)}]"
    return f"{round(value)} %{between}"

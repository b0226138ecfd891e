"""The tables of a leaderboard as they are shown: a header, and rows of texts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from headstart.output.tables import format_number

Escape = Callable[[str], str]


def describe_criterion(setting: dict[str, Any]) -> str:
    """Give the criterion of a setting, what chance gives, and how many orderings are compared up to where."""
    measure = setting["measure"].replace("_", " ")
    shares = (("chance", setting["chance"]), ("largest class", setting["majority"]))
    known = [f"{what} {share:.0%}" for what, share in shares if share is not None]
    threshold = f"{setting['threshold']:.0%} {measure}" + (f" ({', '.join(known)})" if known else "")
    return (
        f"{threshold} at {setting['consecutive']} evaluations in a row; {len(setting['orderings'])} orderings; "
        f"restricted at {setting['restricted_at']} samples"
    )


def setting_rows(setting: dict[str, Any], escape: Escape = str, accuracies: int | None = None) -> list[list[str]]:
    """Give the table of a setting as it is shown: the header, and a row for each method.

    Args:
        setting: The setting.
        escape: What lets texts be shown as they are.
        accuracies: How many accuracies are shown, the last ones; all by default.
    """
    known = [at for at in setting["methods"][0]["accuracy_at"] if _known(setting, at)]
    known = known if accuracies is None else known[-accuracies:]
    header = ["method", "group", "rank", "reached", "median", "restricted mean", "improvement", "p", "onset"]
    rows = [[escape(each) for each in [*header, *(f"accuracy at {at}" for at in known)]]]
    for each in setting["methods"]:
        cells = [
            each["name"] + (f" (tuned: {each['tuned']})" if each["tuned"] else ""),
            each["group"],
            _range(each["rank_interval"], "g"),
            f"{each['reached']}/{each['orderings']}",
            _with_interval(each["median"], each["median_interval"], "g"),
            _with_interval(each["restricted_mean"], each["restricted_mean_interval"], ".1f"),
            _improvement(each),
            "" if each["p_value_holm"] is None else format(each["p_value_holm"], ".2g"),
            format_number(each["onset"], "g"),
            *(format(each["accuracy_at"][at], ".1%") for at in known),
        ]
        rows.append([escape(cell) for cell in cells])
    return rows


def pair_rows(setting: dict[str, Any], escape: Escape = str) -> list[list[str]]:
    """Give the table of neighbouring pairs as it is shown."""
    header = ["better", "worse", "fewer samples", "p", "told apart", "orderings needed"]
    rows = [[escape(each) for each in header]]
    for pair in setting["pairs"]:
        cells = [
            pair["better"],
            pair["worse"],
            _with_interval(pair["difference"], pair["interval"], ".1f"),
            format(pair["p_value"], ".2g"),
            "yes" if pair["told_apart"] else "no",
            format_number(pair["orderings_needed"], "g"),
        ]
        rows.append([escape(cell) for cell in cells])
    return rows


def over_settings_rows(document: dict[str, Any], escape: Escape = str) -> list[list[str]]:
    """Give the table over all settings as it is shown."""
    rows = [[escape(each) for each in ("method", "interquartile mean", "mean rank")]]
    for each in document["over_settings"]["methods"]:
        cells = [
            each["name"] + " (tuned)" * each["tuned"],
            _with_interval(each["interquartile_mean"], each["interquartile_mean_interval"], ".2f"),
            _with_interval(each["mean_rank"], each["mean_rank_interval"], ".1f"),
        ]
        rows.append([escape(cell) for cell in cells])
    return rows


def sensitivity_rows(document: dict[str, Any], setting: dict[str, Any], escape: Escape = str) -> list[list[str]]:
    """Give the best method under each criterion and the agreement of the ranking with that of the leaderboard."""
    sensitivity = document["sensitivity"]
    cells = {(cell["threshold"], cell["consecutive"]): cell for cell in setting["grid"]}
    rows = [["threshold", *(f"{consecutive} in a row" for consecutive in sensitivity["consecutive"])]]
    for threshold in dict.fromkeys(threshold for threshold, _ in cells):
        row = [cells[threshold, consecutive] for consecutive in sensitivity["consecutive"]]
        shown = [_criterion_cell(cell) for cell in row]
        rows.append([f"{100 * threshold:g}%", *map(escape, shown)])
    return rows


def _criterion_cell(cell: dict[str, Any]) -> str:
    if not cell["order"]:
        return "–"
    cut = f", cut at {cell['restricted_at']}" if cell["undecided"] else ""
    return f"{cell['order'][0]} ({format_number(cell['tau'], '.2f')}{cut})"


def stability_rows(document: dict[str, Any], escape: Escape = str) -> list[list[str]]:
    """Give the table of setup stability as it is shown."""
    rows = [[escape(each) for each in ("part that varies", "setup stability", "pairs compared")]]
    for part in document["setup_stability"]["parts"]:
        cells = [part["part"], _with_interval(part["stability"], part["interval"], ".2f"), f"{part['compared']:,}"]
        rows.append([escape(cell) for cell in cells])
    return rows


def _known(setting: dict[str, Any], at: str) -> bool:
    return all(each["accuracy_at"][at] is not None for each in setting["methods"])


def _range(ends: Sequence[float | None] | None, form: str) -> str:
    if ends is None or ends == [None, None]:
        return ""
    low, high = (format_number(end, form) for end in ends)
    return low if low == high else f"{low} to {high}"


def _with_interval(value: float | None, ends: Sequence[float | None] | None, form: str) -> str:
    between = "" if ends is None or ends[0] is None else f" [{', '.join(format_number(end, form) for end in ends)}]"
    return f"{format_number(value, form)}{between}"


def _improvement(each: dict[str, Any]) -> str:
    if each["relative_improvement"] is None:
        return ""
    ends = each["relative_improvement_interval"]
    between = "" if ends is None else f" [{', '.join(str(round(end)) for end in ends)}]"
    return f"{round(each['relative_improvement'])} %{between}"

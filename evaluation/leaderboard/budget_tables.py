"""Tables of accuracies at label budgets, in per cent with intervals."""

from collections.abc import Mapping, Sequence
from typing import Any

from headstart.evaluation.leaderboard.frames import Document, pivot
from headstart.output.tables import Cells, format_estimate

AREA = "area under the curve"
# Of each method, in ascending order of the labels.
Budgets = Mapping[str, Sequence[Document]]


def budget_tables(setting: Document) -> list[tuple[str, Cells]]:
    """Return the table of a setting with its title: accuracies with letters of groups; none without budgets.

    Args:
        setting: The setting as it stands in `leaderboard.json`.
    """
    budgets: Budgets = setting["label_budgets"]
    rows = _rows(budgets, setting["learning_curve_area"]) if budgets else []
    return [("Accuracy at label budgets, %", rows)] * bool(budgets)


def _rows(budgets: Budgets, areas: Mapping[str, Document]) -> Cells:
    """Return accuracies at label budgets, and the areas if there are any, by the accuracy at the largest budget."""
    order = sorted(budgets, key=lambda name: -budgets[name][-1]["accuracy"] if budgets[name] else 0)
    entries = sorted(((name, each) for name in order for each in budgets[name]), key=lambda line: line[1]["labels"])
    lines = [(name, _title(each), _cell(each)) for name, each in entries]
    lines += [(name, AREA, _cell(areas[name], "area")) for name in order if name in areas]
    header, *rows = pivot("method", lines)
    return [header, *sorted(rows, key=lambda row: order.index(row[0]))]


def _title(budget: Document) -> str:
    labels, per_class = budget["labels"], budget["per_class"]
    if labels is None:
        return f"{per_class} per class"
    return f"{labels} labels" + (f" ({per_class} per class)" if per_class else "")


def _cell(scores: Document, key: str = "accuracy") -> str:
    ends = [None if end is None else 100 * end for end in scores["ci95"]]
    return f"{format_estimate(100 * scores[key], ends, '.1f')} {scores.get('group', '')}".rstrip()


def budgets_over_settings_rows(over: Document, with_intervals: bool = True) -> Cells:
    """Return the table of means over settings.

    Args:
        over: `label_budgets` as it stands in `leaderboard.json`.
        with_intervals: Whether cells have intervals.
    """
    lines = []
    for method in over["methods"]:
        area = method["learning_curve_area"]
        scores: list[tuple[str, Any, str]] = [(_title(each), each, "accuracy") for each in method["budgets"]]
        for title, score, key in [*scores, *[(AREA, area, "area")] * (area is not None)]:
            shown = score if with_intervals else {**score, "ci95": (None, None)}
            lines.append((method["name"], title, _cell(shown, key)))
    return pivot("method", lines)


def budgets_title(over: Document) -> str:
    """Return the title of the table of means over settings."""
    return f"Accuracy at label budgets, %, mean over {over['of']}"

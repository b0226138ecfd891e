"""Tables of accuracy at label budgets: rows of texts, and columns of the CSV file."""

from collections.abc import Mapping, Sequence
from typing import Any

from headstart.evaluation.estimates import format_estimate
from headstart.output.markup import escape_latex, latex_tables

# A header, and rows of texts.
TableRows = list[list[str]]
AREA = "area under the curve"
LABEL = "tab:label-budgets"


def budget_rows(setting: Mapping[str, Any]) -> TableRows:
    """Return the table of a setting: accuracies in per cent with intervals and letters of groups; none without budgets.

    Args:
        setting: The setting as it stands in `leaderboard.json`.
    """
    budgets, areas = setting["label_budgets"], setting["learning_curve_area"]
    keys = {(each["labels"], each["per_class"]): None for entries in budgets.values() for each in entries}
    if not keys:
        return []
    titles = [f"{labels} labels" + (f" ({each} per class)" if each else "") for labels, each in sorted(keys)]
    rows = [["method", *titles, *[AREA] * bool(areas)]]
    for name in sorted(budgets, key=lambda name: -_last(budgets[name])):
        known = {each["labels"]: each for each in budgets[name]}
        cells = [_cell(known.get(labels), "accuracy") for labels, _ in sorted(keys)]
        rows.append([name, *cells, *[_cell(areas.get(name), "area")] * bool(areas)])
    return rows


def _last(entries: Sequence[Mapping[str, Any]]) -> float:
    """Return the accuracy at the largest budget."""
    return float(entries[-1]["accuracy"]) if entries else 0.0


def _cell(scores: Mapping[str, Any] | None, key: str) -> str:
    if scores is None:
        return "–"
    ends = [None if end is None else 100 * end for end in scores["ci95"]]
    return f"{format_estimate(100 * scores[key], ends, '.1f')} {scores.get('group', '')}".rstrip()


def budgets_over_settings_rows(over: Mapping[str, Any], with_intervals: bool = True) -> TableRows:
    """Return the table of means over settings.

    Args:
        over: `label_budgets` as it stands in `leaderboard.json`.
        with_intervals: Whether cells have intervals.
    """
    methods = over["methods"]
    titles = [
        f"{each['labels']} labels" if each["per_class"] is None else f"{each['per_class']} per class"
        for each in methods[0]["budgets"]
    ]
    has_area = methods[0]["learning_curve_area"] is not None
    rows = [["method", *titles, *[AREA] * has_area]]
    for method in methods:
        scores = [(each, "accuracy") for each in method["budgets"]]
        scores += [(method["learning_curve_area"], "area")] * has_area
        shown = [each if with_intervals else {**each, "ci95": (None, None)} for each, _ in scores]
        rows.append([method["name"], *(_cell(each, key) for each, (_, key) in zip(shown, scores, strict=True))])
    return rows


def budgets_title(over: Mapping[str, Any]) -> str:
    """Return the title of the table of means over settings."""
    return f"Accuracy at label budgets, %, mean over {over['of']}"


def budgets_latex(over: Mapping[str, Any]) -> str:
    """Return the table of means over settings in LaTeX, which fits a column."""
    scores = [scores for each in over["methods"] for scores in (*each["budgets"], each["learning_curve_area"])]
    ends = [each["ci95"] for each in scores if each is not None]
    halves = [50 * (high - low) for low, high in ends if low is not None]
    width = f" 95 % intervals over orderings are at most ± {max(halves):.1f}." if halves else ""
    header, *rows = budgets_over_settings_rows(over, with_intervals=False)
    short = [title.replace(" per class", "/class").replace(AREA, "area") for title in header]
    escaped = [[escape_latex(cell) for cell in row] for row in (short, *rows)]
    return latex_tables([(f"{budgets_title(over)}.{width}", escaped)], fit=True, label=LABEL)


def csv_columns(asked: Mapping[str, Any]) -> list[tuple[str, str | None, int | None]]:
    """Return title, key and number of each budget in the CSV file, and of the area at their end.

    Args:
        asked: The options as `leaderboard.json` has them.
    """
    columns = [(f"{kind}_{number}", kind, number) for kind in ("per_class", "at") for number in asked.get(kind, ())]
    return [*columns, ("learning_curve_area", None, None)] if columns else []


def csv_header(asked: Mapping[str, Any]) -> list[str]:
    """Return the titles of the columns of budgets."""
    return [f"{title}{end}" for title, *_ in csv_columns(asked) for end in ("", "_low", "_high", "_group")]


def csv_cells(setting: Mapping[str, Any], name: str, asked: Mapping[str, Any]) -> list[Any]:
    """Return the cells of a method in these columns."""
    cells: list[Any] = []
    for _, kind, number in csv_columns(asked):
        if kind is None:
            scores, key = setting["learning_curve_area"].get(name), "area"
        else:
            entries, key = setting["label_budgets"].get(name, ()), "accuracy"
            own = "labels" if kind == "at" else kind
            scores = next((each for each in entries if each[own] == number), None)
        cells += [None] * 4 if scores is None else [scores[key], *scores["ci95"], scores["group"]]
    return cells

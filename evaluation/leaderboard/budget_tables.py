"""Tables of accuracy at label budgets: rows of texts, and columns of the CSV file."""

from collections.abc import Mapping, Sequence
from typing import Any

from headstart.evaluation.estimates import format_estimate
from headstart.output.markup import escape_latex, latex_tables

# A header, and rows of texts.
TableRows = list[list[str]]
# Of a method, in ascending order of the labels.
Entries = Sequence[Mapping[str, Any]]
AREA = "area under the curve"
LABEL = "tab:label-budgets"
BALANCED, CLASSES = "balanced_accuracy", "class_accuracies"
# The classes of a table that still fits a page; leaderboard.json has all.
MOST_CLASSES = 10


def budget_tables(setting: Mapping[str, Any]) -> list[tuple[str, TableRows]]:
    """Return the tables of a setting with their titles, in per cent with intervals; none without budgets.

    The first has the accuracies with letters of groups. If classes were counted, there are also balanced accuracies,
    unless these are the measure. With few classes, the accuracies of each class at the largest budget follow.

    Args:
        setting: The setting as it stands in `leaderboard.json`.
    """
    budgets: Mapping[str, Entries] = setting["label_budgets"]
    if not any(budgets.values()):
        return []
    tables = [("Accuracy at label budgets, %", _budget_rows(budgets, setting["learning_curve_area"]))]
    counted = {name: [each for each in entries if BALANCED in each] for name, entries in budgets.items()}
    if not any(counted.values()):
        return tables
    if setting["measure"] == "accuracy":
        balanced = {name: [{**each, **each[BALANCED], "group": ""} for each in own] for name, own in counted.items()}
        tables.append(("Balanced accuracy at label budgets, %", _budget_rows(balanced, {})))
    return [*tables, *_class_tables(counted)]


def _class_tables(counted: Mapping[str, Entries]) -> list[tuple[str, TableRows]]:
    """Return the table of the accuracies of each class at the largest budget; none of many classes."""
    labels = max(each["labels"] for entries in counted.values() for each in entries)
    of = {name: own[-1][CLASSES] for name, own in counted.items() if own and own[-1]["labels"] == labels}
    classes = list(next(iter(of.values())))
    if len(classes) > MOST_CLASSES:
        return []
    rows = [[name, *(_cell(own[each], "accuracy") for each in classes)] for name, own in of.items()]
    return [(f"Accuracy of each class at {labels} labels, %", [["method", *classes], *rows])]


def _budget_rows(budgets: Mapping[str, Entries], areas: Mapping[str, Any]) -> TableRows:
    """Return a table of accuracies at label budgets, and of the areas if there are any."""
    keys = {(each["labels"], each["per_class"]): None for entries in budgets.values() for each in entries}
    titles = [f"{labels} labels" + (f" ({each} per class)" if each else "") for labels, each in sorted(keys)]
    rows = [["method", *titles, *[AREA] * bool(areas)]]
    for name in sorted(budgets, key=lambda name: -_last(budgets[name])):
        known = {each["labels"]: each for each in budgets[name]}
        cells = [_cell(known.get(labels), "accuracy") for labels, _ in sorted(keys)]
        rows.append([name, *cells, *[_cell(areas.get(name), "area")] * bool(areas)])
    return rows


def _last(entries: Entries) -> float:
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


def counts_classes(settings: Sequence[Mapping[str, Any]]) -> bool:
    """Whether a method of a setting has a balanced accuracy at a label budget."""
    entries = (each for setting in settings for own in setting["label_budgets"].values() for each in own)
    return any(BALANCED in each for each in entries)


def csv_header(asked: Mapping[str, Any], has_balanced: bool) -> list[str]:
    """Return the titles of the columns of budgets in the CSV file, and of the area at their end.

    Args:
        asked: The options as `leaderboard.json` has them.
        has_balanced: Whether columns of the balanced accuracies follow.
    """
    titles = [f"{kind}_{number}" for kind, number in _budgets(asked)]
    accuracies = [*titles, "learning_curve_area"] if titles else []
    header = [f"{title}{end}" for title in accuracies for end in ("", "_low", "_high", "_group")]
    return header + [f"{title}_balanced{end}" for title in titles * has_balanced for end in ("", "_low", "_high")]


def _budgets(asked: Mapping[str, Any]) -> list[tuple[str, int]]:
    """Return kind and number of the requested budgets."""
    return [(kind, number) for kind in ("per_class", "at") for number in asked.get(kind, ())]


def csv_cells(setting: Mapping[str, Any], name: str, asked: Mapping[str, Any], has_balanced: bool) -> list[Any]:
    """Return the cells of a method in these columns.

    Args:
        setting: The setting as it stands in `leaderboard.json`.
        name: Name of the method.
        asked: The options as `leaderboard.json` has them.
        has_balanced: Whether there are columns of the balanced accuracies.
    """
    entries, found = setting["label_budgets"].get(name, ()), list[Mapping[str, Any]]()
    for kind, number in _budgets(asked):
        own = "labels" if kind == "at" else kind
        found.append(next((each for each in entries if each[own] == number), {}))
    if not found:
        return []

    scores = [*((each, "accuracy") for each in found), (setting["learning_curve_area"].get(name, {}), "area")]
    cells = [
        cell for each, key in scores for cell in (each.get(key), *each.get("ci95", (None, None)), each.get("group"))
    ]
    for each in (each.get(BALANCED, {}) for each in found * has_balanced):
        cells += [each.get("accuracy"), *each.get("ci95", (None, None))]
    return cells

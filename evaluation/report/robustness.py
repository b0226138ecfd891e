"""Sections beyond one setting and one criterion: means over settings, sensitivity, setup stability."""

from collections.abc import Mapping
from typing import Any

from headstart.evaluation.leaderboard.tables import (
    budgets_over_settings_rows,
    budgets_title,
    over_settings_rows,
    sensitivity_table,
    stability_rows,
)
from headstart.evaluation.report import series
from headstart.output.page.layout import Figure, Part, Section
from headstart.output.tables import Table

# Numbers of the methods, by name.
Marks = Mapping[str, int]


def over_settings(document: Mapping[str, Any], marks: Marks) -> Section | None:
    """Return the means over settings; None where nothing is compared over settings."""
    over = document["over_settings"]
    if not over:
        return None
    title, methods = f"Over {over['of']}", over["methods"]
    tables = [Table(title, over_settings_rows(document)), _probabilities(over)]

    about, data = f"over {over['of']}", series.intervals(methods, "interquartile_mean", marks)
    figure = Figure("over_settings", "aggregate", "Interquartile mean, with its 95 % interval", about, data)
    part = Part(remarks=over["remarks"], tables=tables, figures=[figure])
    return Section("over-settings", title, parts=[part])


def _probabilities(over: Mapping[str, Any]) -> Table:
    """Return the probabilities as a matrix of the methods; opposite ones add up to 1."""
    names = [each["name"] for each in over["methods"]]
    probability = {(each["better"], each["worse"]): each["probability"] for each in over["probability_of_improvement"]}
    probability |= {(worse, better): 1 - value for (better, worse), value in probability.items()}

    rows = [["method", *(str(number) for number in range(1, len(names) + 1))]]
    for number, name in enumerate(names, 1):
        values = [probability.get((name, other)) for other in names]
        rows.append([f"{name} ({number})", *("" if value is None else f"{value:.2f}" for value in values)])
    title = (
        "Probability of improvement: the probability that the row's method needs fewer samples than the column's on "
        "the same ordering"
    )
    return Table(title, rows, notes=["Their intervals are in leaderboard.json."])


def label_budgets(document: Mapping[str, Any]) -> Section | None:
    """Return the accuracies at label budgets, as means over settings; None where there are none in all settings."""
    over = document["label_budgets"]
    if not over:
        return None
    means = Table(budgets_title(over), budgets_over_settings_rows(over))
    part = Part(remarks=[] if document["over_settings"] else over["remarks"], tables=[means])
    return Section("label-budgets", "Accuracy at label budgets", parts=[part])


def sensitivity(document: Mapping[str, Any]) -> Section:
    """Return the order of the methods at other thresholds and streaks."""
    settings = document["sensitivity"]["settings"]
    parts = [Part(tables=[sensitivity_table(each)], setting=each["name"]) for each in settings]
    return Section("sensitivity", "Sensitivity to the criterion", parts=parts)


def setup_stability(document: Mapping[str, Any]) -> Section | None:
    """Return how much each part of the setup moves the ranking of the methods; None where it is unknown."""
    if not document["setup_stability"]:
        return None
    parts = document["setup_stability"]["parts"]

    caption = "What changes the ranking of the methods?"
    about = "Agreement of rankings whose setups differ in one part, with its 95 % interval"
    figure = Figure("setup_stability", "stability", caption, about, series.stabilities(parts))
    figures = [figure] * any(each["stability"] is not None for each in parts)
    part = Part(tables=[Table("Setup stability", stability_rows(document))], figures=figures)
    return Section("setup-stability", "What moves the ranking", parts=[part])

"""Sections of the settings of a leaderboard: all in one table, then each with its own tables and charts."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from headstart.evaluation.leaderboard.tables import setting_tables
from headstart.evaluation.report import series
from headstart.metrics.sample_efficiency.curves import Curves
from headstart.output.page.layout import Figure, Part, Section
from headstart.output.tables import Table, format_estimate, format_number

# A setting as in `leaderboard.json`, and the numbers of the methods, by name.
Setting = Mapping[str, Any]
Marks = Mapping[str, int]

# More methods than these are counted, not named.
MOST_NAMED = 2
# Keys whose values follow from the data set.
FOLLOWING = ("classes", "largest_class", "train_size", "validation_size")

# Columns of the table of all settings, and those that stay on a phone.
OVERVIEW = [
    *("setting", "best", "tied for first", "samples", "improvement, %"),
    *("orderings", "threshold", "chance", "majority share"),
]
ESSENTIAL = ("setting", "best", "samples", "improvement, %")


def overview(document: Mapping[str, Any]) -> Section:
    """Return one row for each setting: the best method, its lead, and how sure it is."""
    rows = [_winner(index, each) for index, each in enumerate(document["settings"])]
    tables = [Table("Best method of each setting", [OVERVIEW, *rows], ESSENTIAL)]
    left_out = [f"Left out: {each['setting']} ({each['reason']})." for each in document["left_out"]]
    part = Part(remarks=[*left_out, *document["remarks"], *_differences(document)], tables=tables)
    return Section("overview", "Who wins, by how much, how sure", parts=[part])


def _winner(index: int, setting: Setting) -> list[str]:
    """Return a setting's row: its best method with its scores, and those tied with it."""
    best = setting["methods"][0]
    tied = [each for each in setting["tied_for_first"] if each != best["name"]]
    return [
        numbered(index, setting["name"]),
        best["name"] if best["reached"] else "none met the criterion",
        ", ".join(tied) if len(tied) <= MOST_NAMED else f"{len(tied)} methods",
        format_estimate(best["restricted_mean"], best["restricted_mean_interval"], ".1f"),
        format_estimate(best["relative_improvement"], best["relative_improvement_interval"], ".0f"),
        str(best["orderings"]),
        *(format_number(setting[key], form) for key, form in (("threshold", ".0%"), ("chance", ".1%"))),
        format_number(setting["majority"], ".1%"),
    ]


def _differences(document: Mapping[str, Any]) -> list[str]:
    """Return the sentence on what the settings differ in; digests only where the names are equal."""
    differing = document["differences"]
    shown = {key: values for key, values in differing.items() if "sha256" not in key and key not in FOLLOWING}
    digest = "weights_sha256"
    if digest in differing and "weights" not in differing:
        shown[digest] = differing[digest]
    listed = "; ".join(f"{key} ({values})" for key, values in shown.items())
    return [f"The settings differ in {listed}."] * bool(shown)


def numbered(index: int, name: str) -> str:
    """Return the name of a setting after its number on the page."""
    return f"{index + 1}. {name}"


def settings_section(settings: Sequence[Setting], curves: Sequence[Curves], marks: Marks) -> Section:
    """Return the tables and charts of every setting."""
    parts = []
    for index, (setting, traces) in enumerate(zip(settings, curves, strict=True)):
        shown = [*setting_tables(setting)]
        tables = [replace(each, notes=()) for each in shown]
        lazy = ["Evaluated lazily: there are no learning curves."] * traces.is_lazy
        remarks = [f"{shown[0].about}.", *lazy, *shown[0].notes]
        id_ = f"setting-{index + 1}"
        figures = _figures(id_, setting, traces, marks)
        parts.append(Part(numbered(index, setting["name"]), id_, remarks, tables, figures, setting=setting["name"]))
    return Section("settings", "Leaderboard of each setting", parts=parts)


def _figures(id_: str, setting: Setting, curves: Curves, marks: Marks) -> list[Figure]:
    charts = []
    if not curves.is_lazy:
        caption = f"Learning curves: validation {setting['measure'].replace('_', ' ')}"
        charts.append(("learning_curves", caption, series.learning_curves(curves, marks)))
    charts.append(("reached", "Orderings that met the criterion", series.reached(curves, marks)))
    if setting["baseline"]:
        improvement = series.intervals(setting["methods"], "relative_improvement", marks)
        charts.append(("improvement", "Relative improvement over the baseline, with its 95 % interval", improvement))
    return [Figure(f"{id_}-{chart}", chart, caption, setting["name"], data) for chart, caption, data in charts]

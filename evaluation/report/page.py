"""The page: its answers, and its sections, which show a leaderboard."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from headstart.evaluation.audit.tables import MARKS
from headstart.evaluation.estimates import INTERVAL
from headstart.evaluation.leaderboard.tables import (
    budgets_over_settings_rows,
    budgets_title,
    over_settings_rows,
    sensitivity_table,
    setting_tables,
)
from headstart.evaluation.report import answer, series
from headstart.evaluation.report.documents import FolderContents
from headstart.evaluation.report.series import BAND
from headstart.metrics.sample_efficiency.curves import Curves
from headstart.output.page.layout import Figure, Page, Part, Section
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
# Number of methods whose lines are plotted when the page is opened.
FIRST = 6
TEXTS = yaml.safe_load(Path(__file__).with_name("definitions.yaml").read_text(encoding="utf-8"))


def comparison_page(document: Mapping[str, Any], curves: Sequence[Curves], contents: FolderContents) -> Page:
    """Lay out the page of a leaderboard.

    Args:
        document: The content of `leaderboard.json`.
        curves: The traces of each of its settings.
        contents: Further contents of the folders.
    """
    settings, over = document["settings"], document["over_settings"]
    # Baselines come first, then methods in their order over settings, then in that of each setting.
    baselines = [setting["baseline"] for setting in settings if setting["baseline"]]
    ranked = [method["name"] for method in over["methods"]] if over else []
    others = [method["name"] for setting in settings for method in setting["methods"]]
    methods = list(dict.fromkeys([*baselines, *ranked, *others]))
    marks = {name: index for index, name in enumerate(methods)}

    sections = [
        overview(document),
        over_settings(document, marks),
        label_budgets(document),
        settings_section(settings, curves, marks),
        sensitivity(document),
        *contents.sections,
    ]
    title = f"Sample efficiency of {_count(len(methods), 'method')} in {_count(len(settings), 'setting')}"
    shown = list(range(min(len(methods), FIRST)))
    answers = [*answer.of_comparison(document), *contents.answers]
    defined, hints = _defined(filter(None, sections), settings), TEXTS["hints"]["overview"] | TEXTS["hints"]["settings"]
    return Page(title, answers, methods, shown, defined, document["warnings"], hints)


def documents_page(contents: FolderContents) -> Page:
    """Lay out the page of folders without traces."""
    title = " and ".join(section.title for section in contents.sections)
    return Page(title, contents.answers, [], [], _defined(contents.sections))


def _defined(sections: Iterable[Section], settings: Sequence[Mapping[str, Any]] = ()) -> list[Section]:
    """Return sections with paragraphs on what their numbers mean."""
    criteria = {
        "measures": [setting["measure"].replace("_", " ") for setting in settings],
        "thresholds": [f"{setting['threshold']:.0%}" for setting in settings],
        "streaks": [str(setting["consecutive"]) for setting in settings],
    }
    values = {name: " or ".join(sorted(set(texts))) for name, texts in criteria.items()}
    values |= dict(zip(("low", "high"), map(str, BAND), strict=True))
    values |= {"interval": INTERVAL, "marks": MARKS}
    values["columns"] = "; ".join(f"{title}: {hint}" for title, hint in TEXTS["hints"]["settings"].items())
    paragraphs = TEXTS["sections"]
    return [replace(each, definitions=[text.format(**values) for text in paragraphs[each.id]]) for each in sections]


def _count(count: int, noun: str) -> str:
    return f"{count} {noun}{'s' * (count != 1)}"


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


def over_settings(document: Mapping[str, Any], marks: Marks) -> Section | None:
    """Return the means over settings; None where nothing is compared over settings."""
    over = document["over_settings"]
    if not over:
        return None
    title, methods = f"Over {over['of']}", over["methods"]
    tables = [Table(title, over_settings_rows(document))]

    about, data = f"over {over['of']}", series.intervals(methods, "interquartile_mean", marks)
    figure = Figure("over_settings", "aggregate", "Interquartile mean, with its 95 % interval", about, data)
    part = Part(remarks=over["remarks"], tables=tables, figures=[figure])
    return Section("over-settings", title, parts=[part])


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
    parts = [Part(tables=[sensitivity_table(setting)], setting=setting["name"]) for setting in settings]
    return Section("sensitivity", "Sensitivity to the criterion", parts=parts)

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
OVERVIEW_HINTS = {
    "best": "of the lowest restricted mean",
    "tied for first": "no method is significantly better by the tests of all pairs",
    "samples": "restricted mean, and its 95 % interval",
    "improvement, %": "over the baseline, and its 95 % interval",
    "majority share": "accuracy of always predicting the largest class",
}
# Of the tables of each setting.
HINTS = {
    "group": "methods that share a letter do not differ significantly",
    "rank": "95 % interval of the rank",
    "reached": "orderings in which the criterion was met, of all",
    "median": "median samples to criterion, and its 95 % interval",
    "restricted mean": "mean of min(samples to criterion, limit), and its 95 % interval",
    "improvement": "of the restricted mean over the baseline's, and its 95 % interval",
    "onset": "median of the samples seen when the streak that met the criterion began",
    "fewer samples": "difference of the restricted means, and its 95 % interval",
    "p": "sign-flip test against the baseline, adjusted by Holm; of neighbours not adjusted",
    "significant": "by the test adjusted for all pairs of the setting",
    "orderings needed": "to find the difference in 80 % of repetitions, by simulation from these pairs",
}


def overview(document: Mapping[str, Any]) -> Section:
    """Return one row for each setting: the best method, its lead, and how sure it is."""
    rows = [_winner(index, each) for index, each in enumerate(document["settings"])]
    tables = [Table("Best method of each setting", [OVERVIEW, *rows], ESSENTIAL)]
    left_out = [f"Left out: {each['setting']} ({each['reason']})." for each in document["left_out"]]
    part = Part(remarks=[*left_out, *document["remarks"], *_differences(document)], tables=tables)
    return Section("overview", "Who wins, by how much, how sure", _protocol(document["settings"]), [part])


def _winner(index: int, setting: Setting) -> list[str]:
    """Return a setting's row: its best method with its scores, and those tied with it."""
    best = setting["methods"][0]
    tied = [each for each in setting["tied_for_first"] if each != best["name"]]
    # One ordering has no interval.
    unknown = " [–]" * (best["restricted_mean_interval"][0] is None)
    return [
        numbered(index, setting["name"]),
        best["name"] if best["reached"] else "none met the criterion",
        ", ".join(tied) if len(tied) <= MOST_NAMED else f"{len(tied)} methods",
        format_estimate(best["restricted_mean"], best["restricted_mean_interval"], ".1f") + unknown,
        format_estimate(best["relative_improvement"], best["relative_improvement_interval"], ".0f"),
        str(best["orderings"]),
        *(format_number(setting[key], form) for key, form in (("threshold", ".0%"), ("chance", ".1%"))),
        format_number(setting["majority"], ".1%"),
    ]


def _protocol(settings: Sequence[Setting]) -> list[str]:
    """Return paragraphs on the question and the measurement."""
    measures, thresholds, streaks = (
        " or ".join(sorted(set(texts)))
        for texts in (
            [each["measure"].replace("_", " ") for each in settings],
            [f"{each['threshold']:.0%}" for each in settings],
            [str(each["consecutive"]) for each in settings],
        )
    )
    return [
        "How few labelled samples does a method need to adapt a pre-trained model to a new task? In each setting, all "
        "methods learn from one stream of labelled samples, batch by batch. They start from the same backbone and the "
        "same head. The stream is fed in many orderings, which are seeded orders of it.",
        f"Samples to criterion are the samples seen when the validation {measures} has been {thresholds} or more for "
        f"{streaks} evaluations in a row. A method that has not met the criterion at the limit is censored. The "
        "restricted mean is the mean of min(samples to criterion, limit). Methods are compared in pairs, on the same "
        "orderings. Relative improvements over the baseline have Fieller's interval; p values are of a sign-flip "
        "permutation test, adjusted by Holm. Fewer samples are better.",
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
    low, high = series.BAND
    definitions = [
        f"Learning curves are means over orderings. The first two chosen methods have bands, from the {low}th to the "
        f"{high}th percentile. The dashed line is the threshold. Intervals are 95 % intervals. Methods that share a "
        "letter do not differ significantly in these orderings.",
        f"Columns: {'; '.join(f'{title}: {hint}' for title, hint in HINTS.items())}.",
    ]

    parts = []
    for index, (setting, traces) in enumerate(zip(settings, curves, strict=True)):
        shown = [*setting_tables(setting)]
        tables = [replace(each, notes=()) for each in shown]
        remarks = [_describe(setting, traces), *shown[0].notes]
        id_ = f"setting-{index + 1}"
        figures = _figures(id_, setting, traces, marks)
        parts.append(Part(numbered(index, setting["name"]), id_, remarks, tables, figures, setting=setting["name"]))
    return Section("settings", "Leaderboard of each setting", definitions, parts)


def _describe(setting: Setting, curves: Curves) -> str:
    shares = {"chance": setting["chance"], "majority share": setting["majority"]}
    known = ", ".join(f"{title} {value:.1%}" for title, value in shares.items() if value is not None)
    description = (
        f"{setting['classes'] or 'Unknown'} classes{f' ({known})' if known else ''}, {setting['validation_size']:,} "
        f"validation samples, batch size {setting['batch_size']}, {len(setting['orderings'])} orderings; threshold "
        f"{setting['threshold']:.0%}, restricted at {setting['restricted_at']} samples."
    )
    return description + " Evaluated lazily: there are no learning curves." * curves.is_lazy


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

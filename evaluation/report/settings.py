"""Sections of the settings of a leaderboard: all in one table, then each with its own tables and charts."""

from collections.abc import Mapping, Sequence
from typing import Any

from headstart.contract.tables.grouping import grouped
from headstart.evaluation.leaderboard.budget_tables import budget_tables
from headstart.evaluation.report import series
from headstart.metrics.sample_efficiency.curves import Curves
from headstart.output.page.cells import number, text
from headstart.output.page.layout import Cell, Column, Figure, Part, Section, Table
from headstart.output.tables import format_number

# A setting as in `leaderboard.json`, and the numbers of the methods, by name.
Setting = Mapping[str, Any]
Marks = Mapping[str, int]

# More methods than these are counted, not named.
MOST_NAMED = 2

OVERVIEW = (
    Column("setting"),
    Column("best", "of the lowest restricted mean", words=True),
    Column("tied for first", "with the best: no method is significantly better by the tests of all pairs", words=True),
    Column("samples", "restricted mean, and its 95 % interval"),
    Column("improvement, %", "over the baseline, and its 95 % interval"),
    Column("orderings"),
    Column("threshold"),
    Column("chance"),
    Column("majority share", "accuracy of always predicting the largest class"),
)
COLUMNS = (
    Column("method"),
    Column("reached", "orderings in which the criterion was met, of all"),
    Column("median", "median samples to criterion, and its 95 % interval"),
    Column("restricted mean", "mean of min(samples to criterion, limit), and its 95 % interval"),
    Column("improvement, %", "of the restricted mean over the baseline's, and its 95 % interval"),
    Column("p", "sign-flip test against the baseline, adjusted by Holm"),
    Column("onset", "median of the samples seen when the streak that met the criterion began"),
    Column("group", "methods that share a letter do not differ significantly", words=True),
    Column("rank", "95 % interval of the rank"),
)
# Formats of the scores that have intervals.
ESTIMATES = {"median": "g", "restricted_mean": ".1f", "relative_improvement": ".1f"}
PAIRS = (
    Column("better"),
    Column("next", words=True),
    Column("difference", "of the restricted means in samples, and its 95 % interval"),
    Column("p", "sign-flip test of this pair, not adjusted"),
    Column("significant", "by the test adjusted for all pairs of the setting"),
    Column("orderings needed", "to find the difference in 80 % of repetitions, by simulation from these pairs"),
)


def overview(document: Mapping[str, Any], marks: Marks) -> Section:
    """Return one row for each setting that is pooled: the best method, its lead, and how sure it is."""
    settings = [*enumerate(document["settings"])]
    rows = [_overview_row(index, setting, marks) for index, setting in settings if setting["is_pooled"]]
    table = Table("Best method of each setting", OVERVIEW, rows)
    left_out = [f"Left out: {each['setting']} ({each['reason']})." for each in document["left_out"]]
    part = Part(remarks=[*left_out, *document["remarks"]], tables=[table] * bool(rows))
    return Section("overview", "Who wins, by how much, how sure", parts=[part])


def _overview_row(index: int, setting: Setting, marks: Marks) -> list[Cell]:
    best = setting["methods"][0]
    name = best["name"]
    tied = [each for each in setting["tied_for_first"] if each != name]
    shown = ", ".join(tied) if len(tied) <= MOST_NAMED else f"{len(tied)} methods"

    return [
        Cell(_numbered(index, setting["name"]), link=_setting_id(index)),
        Cell(name, mark=marks[name]) if best["reached"] else Cell("none met the criterion"),
        text(shown),
        number(best["restricted_mean"], ".1f", best["restricted_mean_interval"]),
        number(best["relative_improvement"], ".0f", best["relative_improvement_interval"]),
        number(best["orderings"], ".0f"),
        number(setting["threshold"], ".0%"),
        number(setting["chance"], ".1%"),
        number(setting["majority"], ".1%"),
    ]


def _setting_id(index: int) -> str:
    return f"setting-{index + 1}"


def _numbered(index: int, name: str) -> str:
    return f"{index + 1}. {name}"


def settings_section(settings: Sequence[Setting], curves: Sequence[Curves], marks: Marks) -> Section:
    """Return the tables and charts of every setting."""
    low, high = series.BAND
    paragraphs = [
        f"Learning curves: mean over orderings; the bands, from the {low}th to the {high}th percentile, are drawn for "
        "the first two chosen methods. The dashed line is the threshold. Intervals hold 95 %; methods that share a "
        "letter do not differ significantly in these orderings.",
        f"Columns: {'; '.join(f'{column.title}: {column.hint}' for column in COLUMNS if column.hint)}.",
    ]

    parts = []
    for index, (setting, traces) in enumerate(zip(settings, curves, strict=True)):
        title, tables = _numbered(index, setting["name"]), [_scores(setting, marks)]
        # Only the first table has letters.
        tables += [_budgets(*each, marks, not number) for number, each in enumerate(budget_tables(setting))]
        if setting["pairs"]:
            tables.append(_pairs(setting, marks))
        warnings = [f"WARNING: {warning}" for warning in setting["warnings"]]
        remarks = [_describe(setting, traces), *warnings, *setting["remarks"]]
        id_ = _setting_id(index)
        figures = _figures(id_, setting, traces, marks)
        parts.append(Part(title, id_, remarks, tables, figures, setting=setting["name"]))
    return Section("settings", "Leaderboard of each setting", paragraphs, parts)


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


def _scores(setting: Setting, marks: Marks) -> Table:
    samples = list(setting["methods"][0]["accuracy_at"])
    columns = [*COLUMNS, *(Column(f"accuracy at {at}", f"mean accuracy at {at} samples") for at in samples)]
    rows: list[list[Cell]] = []
    for method in setting["methods"]:
        low, high = method["rank_interval"]
        rows.append(
            [
                Cell(method["name"] + " *" * bool(method["tuned"]), mark=marks[method["name"]]),
                Cell(f"{method['reached']}/{method['orderings']}"),
                # Samples to criterion, and their comparison with the baseline.
                *(number(method[key], form, method[f"{key}_interval"]) for key, form in ESTIMATES.items()),
                number(method["p_value_holm"], ".2g"),
                number(method["onset"], "g"),
                Cell(method["group"]),
                Cell(f"{format_number(low, 'g')}–{format_number(high, 'g')}"),
                *(number(method["accuracy_at"][at], ".1%") for at in samples),
            ]
        )

    tuned = grouped((method["tuned"], method["name"]) for method in setting["methods"] if method["tuned"])
    notes = [f"* Hyperparameters of {', '.join(names)}: {how}." for how, names in tuned.items()]
    return Table(f"Leaderboard: {setting['name']}", columns, rows, " ".join(notes))


def _budgets(title: str, rows: Sequence[Sequence[str]], marks: Marks, has_letters: bool) -> Table:
    header, *methods = rows
    cells = [[Cell(name, mark=marks[name]), *map(Cell, row)] for name, *row in methods]
    note = "In brackets: the 95 % interval over orderings."
    note += " Those that share a letter do not differ significantly there." * has_letters
    return Table(title, [Column(each) for each in header], cells, note)


def _pairs(setting: Setting, marks: Marks) -> Table:
    rows = [
        [
            Cell(pair["better"], mark=marks[pair["better"]]),
            Cell(pair["worse"], mark=marks[pair["worse"]]),
            number(pair["difference"], ".1f", pair["interval"]),
            number(pair["p_value"], ".2g"),
            Cell("yes" if pair["told_apart"] else "no"),
            number(pair["orderings_needed"], ",.0f"),
        ]
        for pair in setting["pairs"]
    ]
    return Table("Resolution: neighbours in the order above", PAIRS, rows)

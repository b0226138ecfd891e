"""The settings of a leaderboard: all on one table, then each with its own table and charts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from headstart.evaluation.report import series
from headstart.metrics.sample_efficiency.curves import Curves
from headstart.output.page.cells import number, p_value, share, text
from headstart.output.page.layout import Cell, Column, Figure, Part, Section, Table
from headstart.output.tables import format_number

Setting = Mapping[str, Any]
Places = Mapping[str, int]

# More are counted instead.
MOST_NAMED = 2

COLUMNS = (
    Column("method"),
    Column("reached", "orderings in which the criterion was met, of all"),
    Column("median", "median samples to criterion, and its 95 % interval"),
    Column("restricted mean", "mean of min(samples to criterion, limit), and its 95 % interval"),
    Column("improvement, %", "of the restricted mean over the baseline's, and its 95 % interval"),
    Column("p", "sign-flip test against the baseline, adjusted by Holm"),
    Column("onset", "median of the samples seen when the streak that met the criterion began"),
    Column("group", "methods that share a letter are not told apart", words=True),
    Column("rank", "95 % interval of the rank"),
)


def overview(document: Mapping[str, Any], places: Places) -> Section:
    """Give one line for each setting: who leads, by how much, how sure."""
    columns = [
        Column("setting"),
        Column("best", "of the lowest restricted mean", words=True),
        Column("tied with", "not told apart by sign-flip tests adjusted for all pairs of the setting", words=True),
        Column("samples", "restricted mean, and its 95 % interval"),
        Column("improvement, %", "over the baseline, and its 95 % interval"),
        Column("orderings"),
        Column("threshold"),
        Column("chance"),
        Column("majority share", "accuracy of always predicting the largest class"),
    ]
    rows = [_overview_row(number, setting, places) for number, setting in enumerate(document["settings"])]
    table = Table("Best method of each setting", columns, rows)
    left_out = [f"Left out: {each['setting']} ({each['reason']})." for each in document["left_out"]]
    part = Part(remarks=[*left_out, *document["remarks"]], tables=[table])
    return Section("overview", "Who wins, by how much, how sure", parts=[part])


def _overview_row(place: int, setting: Setting, places: Places) -> list[Cell]:
    best = setting["methods"][0]
    name = best["name"]
    sets = [{*names} for names in setting["not_told_apart"]]
    tied = [each["name"] for each in setting["methods"][1:] if any({name, each["name"]} <= names for names in sets)]
    shown = ", ".join(tied) if len(tied) <= MOST_NAMED else f"{len(tied)} methods"
    return [
        Cell(numbered(place, setting["name"]), link=setting_id(place)),
        Cell(name, mark=places[name]) if best["reached"] else Cell("none met the criterion"),
        text(shown if sets else "too many sets to name"),
        number(best["restricted_mean"], ".1f", best["restricted_mean_interval"]),
        number(best["relative_improvement"], ".0f", best["relative_improvement_interval"]),
        number(best["orderings"], ".0f"),
        share(setting["threshold"], ".0%"),
        share(setting["chance"]),
        share(setting["majority"]),
    ]


def setting_id(place: int) -> str:
    """Give the identifier of a setting's part, by its place."""
    return f"setting-{place + 1}"


def numbered(place: int, name: str) -> str:
    """Give a setting's name with its number, by which tables of many settings call it."""
    return f"{place + 1}. {name}"


def settings_section(settings: Sequence[Setting], curves: Sequence[Curves], places: Places) -> Section:
    """Give every setting its table, its resolution and its charts."""
    low, high = series.BAND
    paragraphs = [
        f"Learning curves: mean over orderings; the bands, from the {low}th to the {high}th percentile, are drawn for "
        "up to six chosen methods. The dashed line is the threshold. Intervals hold 95 %; methods that share a letter "
        "are not told apart by these orderings.",
        f"Columns: {'; '.join(f'{column.title}: {column.hint}' for column in COLUMNS if column.hint)}.",
    ]
    parts = [_part(place, *pair, places) for place, pair in enumerate(zip(settings, curves, strict=True))]
    return Section("settings", "Leaderboard of each setting", paragraphs, parts)


def _part(place: int, setting: Setting, curves: Curves, places: Places) -> Part:
    name = setting["name"]
    shares = {"chance": setting["chance"], "majority share": setting["majority"]}
    known = ", ".join(f"{what} {value:.1%}" for what, value in shares.items() if value is not None)
    told = (
        f"{setting['classes'] or 'Unknown'} classes{f' ({known})' if known else ''}, {setting['validation_size']:,} "
        f"validation samples, batch size {setting['batch_size']}, {len(setting['orderings'])} orderings; threshold "
        f"{setting['threshold']:.0%}, restricted at {setting['restricted_at']} samples."
    )
    id_, measure = setting_id(place), setting["measure"].replace("_", " ")
    fed = {"reached": ("Orderings that met the criterion", series.reached(curves, places))}
    if curves.is_lazy:
        told += " Evaluated lazily: there are no learning curves."
    else:
        drawn = series.learning_curves(curves, places)
        fed = {"learning_curves": (f"Learning curves: validation {measure}", drawn), **fed}
    if setting["baseline"]:
        improvement = series.intervals(setting["methods"], "relative_improvement", places)
        fed["improvement"] = ("Relative improvement over the baseline, with its 95 % interval", improvement)
    figures = [Figure(f"{id_}-{chart}", chart, caption, name, found) for chart, (caption, found) in fed.items()]
    return Part(
        numbered(place, name),
        id_,
        [told, *setting["remarks"]],
        [_table(setting, places), *_pairs(setting, places)],
        figures,
    )


def _table(setting: Setting, places: Places) -> Table:
    samples = list(dict.fromkeys(number for method in setting["methods"] for number in method["accuracy_at"]))
    columns = [*COLUMNS, *(Column(f"accuracy at {number}", f"mean accuracy at {number} samples") for number in samples)]
    rows = [_row(method, places, samples) for method in setting["methods"]]
    tuned: dict[str, list[str]] = {}
    for each in setting["methods"]:
        if each["tuned"]:
            tuned.setdefault(each["tuned"], []).append(each["name"])
    notes = [f"* Hyperparameters of {', '.join(names)}: {how}." for how, names in tuned.items()]
    return Table(f"Leaderboard: {setting['name']}", columns, rows, " ".join(notes))


def _row(method: Mapping[str, Any], places: Places, samples: Sequence[str]) -> list[Cell]:
    tuned = " *" if method["tuned"] else ""
    low, high = method["rank_interval"] or (None, None)
    return [
        Cell(f"{method['name']}{tuned}", mark=places[method["name"]]),
        Cell(f"{method['reached']}/{method['orderings']}"),
        number(method["median"], "g", method["median_interval"]),
        number(method["restricted_mean"], ".1f", method["restricted_mean_interval"]),
        number(method["relative_improvement"], ".1f", method["relative_improvement_interval"]),
        p_value(method["p_value_holm"]),
        number(method["onset"], "g"),
        Cell(method["group"]),
        Cell(f"{format_number(low, 'g')}–{format_number(high, 'g')}"),
        *(share(method["accuracy_at"].get(at)) for at in samples),
    ]


def _pairs(setting: Setting, places: Places) -> list[Table]:
    if not setting["pairs"]:
        return []
    columns = [
        Column("better"),
        Column("next", words=True),
        Column("difference", "of the restricted means in samples, and its 95 % interval"),
        Column("p", "sign-flip test of this pair, not adjusted"),
        Column("told apart", "by the test adjusted for all pairs of the setting"),
        Column("orderings needed", "to tell them apart in 80 % of repetitions, by simulation from these pairs"),
    ]
    rows = [
        [
            Cell(pair["better"], mark=places[pair["better"]]),
            Cell(pair["worse"], mark=places[pair["worse"]]),
            number(pair["difference"], ".1f", pair["interval"]),
            p_value(pair["p_value"]),
            text("yes" if pair["told_apart"] else "no"),
            number(pair["orderings_needed"], ",.0f"),
        ]
        for pair in setting["pairs"]
    ]
    return [Table("Resolution: neighbours in the order above", columns, rows)]

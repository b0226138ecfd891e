"""What holds beyond one setting and one criterion: means over settings, sensitivity, setup stability."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from headstart.evaluation.report import series
from headstart.output.page.cells import number
from headstart.output.page.layout import Cell, Column, Figure, Part, Section, Table

Places = Mapping[str, int]


def over_settings(document: Mapping[str, Any], places: Places) -> Section | None:
    """Give the means over settings; None where there is one setting alone."""
    found = document["over_settings"]
    if not found:
        return None
    methods = found["methods"]
    paragraphs = [
        "Samples to criterion are divided by the geometric mean of all methods in the same ordering, and the middle "
        "half of all runs is averaged, each setting counting the same: 1 is the mean of all methods, and lower is "
        "better. Its intervals are of a bootstrap over the orderings, stratified by setting; those of mean ranks are t "
        "intervals over data sets."
    ]
    columns = [
        Column("method"),
        Column("interquartile mean", "and its 95 % interval"),
        Column("mean rank", "and its 95 % interval"),
    ]
    rows = [
        [
            Cell(each["name"] + " (tuned)" * each["tuned"], mark=places[each["name"]]),
            number(each["interquartile_mean"], ".3f", each["interquartile_mean_interval"]),
            number(each["mean_rank"], ".2f", each["mean_rank_interval"]),
        ]
        for each in methods
    ]
    about, fed = f"over {len(found['settings'])} settings", series.intervals(methods, "interquartile_mean", places)
    figure = Figure("over_settings", "aggregate", "Interquartile mean, with its 95 % interval", about, fed)
    numbers = {setting["name"]: str(number) for number, setting in enumerate(document["settings"], 1)}
    tables = [Table("Over all settings", columns, rows), _ranks(found, numbers, places), *_probabilities(found, places)]
    part = Part(remarks=found["remarks"], tables=tables, figures=[figure])
    return Section("over-settings", "Over all settings", paragraphs, [part])


def _ranks(found: Mapping[str, Any], numbers: Mapping[str, str], places: Places) -> Table:
    columns = [Column("method"), *(Column(numbers[name], name) for name in found["settings"])]
    rows = [
        [Cell(each["name"], mark=places[each["name"]]), *(number(rank, "g") for rank in each["ranks"])]
        for each in found["methods"]
    ]
    return Table("Rank in each setting, by the setting's number", columns, rows)


def _probabilities(found: Mapping[str, Any], places: Places) -> list[Table]:
    """Tabulate the probabilities as a matrix of the methods; that of the opposite is what remains to 1."""
    names = [each["name"] for each in found["methods"]]
    probability = {(each["better"], each["worse"]): each["probability"] for each in found["probability_of_improvement"]}
    probability |= {(worse, better): 1 - value for (better, worse), value in probability.items()}
    columns = [Column("method"), *(Column(str(place), f"over {name}") for place, name in enumerate(names, 1))]
    rows = [
        [Cell(f"{place} {name}", mark=places[name]), *(_probability(probability.get((name, other))) for other in names)]
        for place, name in enumerate(names, 1)
    ]
    title = "Probability of improvement: that the method of the row takes fewer samples than that of the column"
    return [Table(title, columns, rows, "Their intervals stand in leaderboard.json.")] if probability else []


def _probability(value: float | None) -> Cell:
    # An even chance has no colour.
    return Cell("") if value is None else Cell(f"{value:.2f}", tint=round(140 * max(value - 0.5, 0)))


def sensitivity(document: Mapping[str, Any], places: Places) -> Section | None:
    """Give the order of the methods at other thresholds and streaks; None where it was not computed."""
    found = document["sensitivity"]
    if not found or not found["settings"]:
        return None
    paragraphs = [
        "The same traces under other criteria. Each cell names the best method and Kendall's tau between the order of "
        "all methods there and that of the leaderboard: 1 is the same order, and the strongest colour. A dash stands "
        "where no method meets the criterion, or traces end before that is decided."
    ]
    parts = [Part(tables=[_grid(each, found["consecutive"], places)]) for each in found["settings"]]
    return Section("sensitivity", "Sensitivity to the criterion", paragraphs, parts)


def _grid(setting: Mapping[str, Any], consecutive: Sequence[int], places: Places) -> Table:
    at = {(each["threshold"], each["consecutive"]): each for each in setting["grid"]}
    columns = [Column("threshold"), *(Column(f"{count} in a row") for count in consecutive)]
    rows = [
        [Cell(f"{100 * threshold:g}%"), *(_criterion(at[threshold, count], places) for count in consecutive)]
        for threshold in dict.fromkeys(threshold for threshold, _ in at)
    ]
    undecided = any(each["undecided"] for each in setting["grid"])
    note = "* Some traces end before this criterion is decided: all are cut where the first of them ends."
    return Table(setting["name"], columns, rows, note if undecided else "")


def _criterion(found: Mapping[str, Any], places: Places) -> Cell:
    if found["tau"] is None or not found["order"]:
        return Cell("–")
    best, tau = found["order"][0], found["tau"]
    undecided = " *" if found["undecided"] else ""
    return Cell(f"{best} {tau:.2f}{undecided}", tau, mark=places[best], tint=round(70 * max(tau, 0)))


def setup_stability(document: Mapping[str, Any]) -> Section | None:
    """Say which part of the setup moves the ranking of the methods most; None where it was not computed."""
    found = document["setup_stability"]
    if not found:
        return None
    columns = [
        Column("part that varies"),
        Column("stability", "mean Kendall tau between rankings that differ in this part alone, and its 95 % interval"),
        Column("pairs compared"),
    ]
    rows = [
        [Cell(each["part"]), number(each["stability"], ".2f", each["interval"]), number(each["compared"], ",.0f")]
        for each in found["parts"]
    ]
    paragraphs = [
        "How alike two rankings of the methods are whose setups differ in one part: 1 where that part does not matter. "
        "The lower, the more a claim needs to be repeated over it. Two halves of the orderings show how far noise "
        "alone moves a ranking by half of them; rankings by all orderings are less noisy than that."
    ]
    caption = "Setup stability: agreement of the rankings where one part varies, with its 95 % interval"
    figure = Figure("setup_stability", "stability", caption, "setup stability", series.stabilities(found["parts"]))
    drawn = [figure] * any(each["stability"] is not None for each in found["parts"])
    parts = [Part(tables=[Table("Setup stability", columns, rows)], figures=drawn)]
    return Section("setup-stability", "What moves the ranking", paragraphs, parts)

"""Figures of a study show examples that are chosen by name, those of the paper, and those that fit the table."""

from typing import get_args

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text
from scipy import stats

from headstart.contract.tables.table import TransferTable
from headstart.evaluation.stability.experiment_graph import rank_in_words
from headstart.evaluation.stability.figure_choice import (
    EXAMPLES,
    Example,
    FigureChoice,
    fitting_examples,
    varying_measure,
    varying_target,
)
from headstart.evaluation.stability.figures import plot_study
from headstart.evaluation.stability.study import run_study
from headstart.metrics.ranking.pools import Pools
from headstart.metrics.ranking.ranking_measures import MEASURES
from headstart.output.errors import UserError


@pytest.fixture
def table() -> TransferTable:
    """Build a table of seven sources, of which the first two are targets, too."""
    generator = np.random.default_rng(0)
    metrics, targets = ["logme", "hscore", "gbc"], ["ade", "city", "coco", "far"]
    scores, performances = generator.normal(size=(3, 7, 4)), generator.uniform(size=(7, 4))
    sources = ["ade", "city", "s2", "s3", "s4", "s5", "s6"]
    own = np.array(sources)[:, None] == targets
    return TransferTable.complete(metrics, sources, targets, scores, performances, own)


def texts(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.findobj(Text) if text.get_text().strip()]


def test_each_part_has_its_example_and_what_is_given_wins() -> None:
    parts = FigureChoice(example="figure3a").of_parts(["figure1", "figure5a", "figure3b_coco"])
    assert parts["target"].targets == ["ade", "city"], "the chosen one wins over that of the preset"
    assert (parts["measure"].target, parts["measure"].measures) == ("coco", ["weighted_kendall", "pearson"])
    assert (parts["graph"].targets, parts["pool"]) == (["ade", "city"], FigureChoice(example="figure3a"))
    examples = FigureChoice(targets=["x", "y"], measure="kendall").of_parts(["figure3a", "figure3b_coco"])
    assert (examples["target"].targets, examples["target"].metrics) == (["x", "y"], ["logme", "hscore"])
    assert {part.measure for part in examples.values()} == {"kendall"}


def test_shown_examples_and_chosen_values_are_known() -> None:
    choice = FigureChoice(measure="kendall", example="figure5a")
    shown = choice.shown_examples(["figure1", "figure3a"])
    assert shown == {"graph": "figure1", "target": "figure5a"}, "the chosen one wins over that of the preset"
    assert choice.chosen == {"measure": "kendall", "example": "figure5a"}


def test_every_example_is_one_of_options() -> None:
    assert set(EXAMPLES) == set(get_args(Example))
    for _, options in EXAMPLES.values():
        FigureChoice(**options)


def test_named_targets_and_measures_are_shown_in_their_order(table: TransferTable) -> None:
    study = run_study(table, Pools(7, 4), 1e-12)
    for names in (["far", "city"], ["city", "far"]):
        panels = varying_target(study, FigureChoice(targets=names), 0)
        assert [table.targets[panel.target] for panel in panels] == names
    panels = varying_measure(study, FigureChoice(measures=["rel_at_1", "kendall"], target="coco"))
    assert [MEASURES[panel.measure] for panel in panels] == ["rel_at_1", "kendall"]
    assert {table.targets[panel.target] for panel in panels} == {"coco"}


def test_named_pools_are_those_of_the_graph(table: TransferTable) -> None:
    pools = [["s6", "s2", "s3", "ade"], ["s2", "s4", "s5", "s6"]]
    choice = FigureChoice(pools=pools, measures=["kendall", "pearson"], targets=["city", "far"])
    choice.require_known(table, 4)
    plots = plot_study(run_study(table, Pools(7, 4), 1e-12), choice, "kendall")
    shown = [text.replace("\N{NO-BREAK SPACE}", " ").split("\n") for text in texts(plots["experiments"])]
    assert ["S₁: all 7 sources but city, s4, s5", "S₂: all 7 sources but ade, city, s3"] in shown
    for name, pool in zip(("S₁", "S₂"), pools, strict=True):
        for target in ("city", "far"):
            at = [table.sources.index(source) for source in pool], table.targets.index(target)
            for title, tau in (("Kendall", stats.kendalltau), ("Pearson", stats.pearsonr)):
                outcome = [tau(scores[at], table.performances[at]).statistic for scores in table.scores]
                words = rank_in_words(table.titles, np.array(outcome), 1e-12).replace("\N{NO-BREAK SPACE}", " ")
                assert [f"{target}, {title}, {name}", words] in shown


def test_targets_of_the_graph_are_in_none_of_its_pools(table: TransferTable) -> None:
    choice = FigureChoice(pools=[["ade", "s2", "s3", "s4"], ["city", "s4", "s5", "s6"]])
    choice.require_known(table, 4)
    plots = plot_study(run_study(table, Pools(7, 4), 1e-12), choice, "kendall")
    titles = [text.split(",")[0] for text in texts(plots["experiments"]) if "\n" in text and ">" in text]
    assert set(titles) == {"coco", "far"}
    with pytest.raises(UserError, match=r"^figures\.pools: of the targets that are compared only far is in no pool"):
        FigureChoice(pools=choice.pools, targets=["ade", "far"]).require_known(table, 4)


def test_a_pool_without_a_value_is_drawn(table: TransferTable) -> None:
    table.scores[0] = 1.0
    choice = FigureChoice(pools=[["s2", "s3"], ["s4", "s5"]], targets=["coco", "far"])
    plots = plot_study(run_study(table, Pools(7, 2), 1e-12), choice, "kendall")
    shown = texts(plots["experiments"])
    assert shown.count("–") == 12
    assert not any("LogME" in text for text in shown), "it has no value in any of these"


def test_a_preset_shows_what_the_table_has(table: TransferTable) -> None:
    assert fitting_examples(["figure1", "figure3a", "figure3b_coco"], table) == ["figure1", "figure3a"]
    with pytest.raises(UserError, match=r"^figures\.example: figure3b_coco has 'nleep' among its metrics"):
        FigureChoice(example="figure3b_coco").require_known(table, 4)

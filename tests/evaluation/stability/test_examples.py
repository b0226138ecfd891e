"""Figures of a study show what is chosen, and those examples of the paper that fit the table."""

import numpy as np
import pytest
from matplotlib.text import Text
from scipy import stats

from headstart.contract.tables.table import TransferTable
from headstart.evaluation.stability.experiment_graph import rank_in_words
from headstart.evaluation.stability.figure_choice import (
    FigureChoice,
    fitting_examples,
    varying_measure,
    varying_target,
)
from headstart.evaluation.stability.figures import plot_study
from headstart.evaluation.stability.stability import PRESETS
from headstart.evaluation.stability.study import run_study
from headstart.metrics.ranking.pools import Pools
from headstart.metrics.ranking.ranking_measures import MEASURES


@pytest.fixture
def table() -> TransferTable:
    """Build a table of seven sources, of which the first two are targets, too."""
    generator = np.random.default_rng(0)
    metrics, targets = ["logme", "hscore", "gbc"], ["ade", "city", "coco", "far"]
    scores, performances = generator.normal(size=(3, 7, 4)), generator.uniform(size=(7, 4))
    sources = ["ade", "city", "s2", "s3", "s4", "s5", "s6"]
    own = np.array(sources)[:, None] == targets
    return TransferTable.complete(metrics, sources, targets, scores, performances, own)


def test_each_part_has_its_example_and_what_is_given_wins() -> None:
    examples = PRESETS["scenario1"].examples
    assert FigureChoice().of_parts(examples)["measure"].measures == ["weighted_kendall", "pearson"]
    parts = FigureChoice(targets=["x", "y"], measure="kendall").of_parts(examples)
    assert (parts["target"].targets, parts["target"].metrics) == (["x", "y"], ["logme", "hscore"])
    assert (parts["measure"].target, parts["pool"].metrics) == ("coco", None)
    assert {part.measure for part in parts.values()} == {"kendall"}


def test_a_preset_shows_what_the_table_has(table: TransferTable) -> None:
    assert set(fitting_examples(PRESETS["scenario1"].examples, table)) == {"graph", "target"}, "there is no N-LEEP"
    assert fitting_examples(PRESETS["scenario2"].examples, table) == {}


def test_named_targets_and_measures_are_shown_in_their_order(table: TransferTable) -> None:
    study = run_study(table, Pools(7, 4))
    for names in (["far", "city"], ["city", "far"]):
        panels = varying_target(study, FigureChoice(targets=names), 0)
        assert [table.targets[panel.target] for panel in panels] == names
    panels = varying_measure(study, FigureChoice(measures=["rel_at_1", "kendall"], target="coco"))
    assert [MEASURES[panel.measure] for panel in panels] == ["rel_at_1", "kendall"]
    assert {table.targets[panel.target] for panel in panels} == {"coco"}


def test_the_graph_has_the_outcomes_of_its_pools(table: TransferTable) -> None:
    choice = FigureChoice(measures=["kendall", "pearson"], targets=["city", "far"])
    plots = plot_study(run_study(table, Pools(7, 4)), choice, "kendall")
    for axes in plots["components"].axes:
        x, y = np.asarray(axes.collections[0].get_offsets()).T
        shares = [f"{100 * np.mean(y > x + 1e-9):.0f} % above", f"{100 * np.mean(y < x - 1e-9):.0f} % below"]
        assert [text.get_text() for text in axes.texts] == shares
    boxes = [text.get_text().replace("\N{NO-BREAK SPACE}", " ") for text in plots["experiments"].findobj(Text)]
    [described] = [text for text in boxes if "all 7 sources but" in text]
    for line in described.split("\n"):
        name, _, left_out = line.partition(": all 7 sources but ")
        pool = [index for index, source in enumerate(table.sources) if source not in left_out.split(", ")]
        assert len(pool) == 4
        for target in ("city", "far"):
            at = pool, table.targets.index(target)
            for title, tau in (("Kendall", stats.kendalltau), ("Pearson", stats.pearsonr)):
                outcome = [tau(scores[at], table.performances[at]).statistic for scores in table.scores]
                words = rank_in_words(table.titles, np.array(outcome))
                assert f"{target}, {title}, {name}\n{words}" in boxes

"""`headstart stability`: how stable the evaluation of transferability metrics is."""

import time
from contextlib import nullcontext
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from jsonargparse.typing import PositiveInt

from headstart.evaluation.stability.figure_choice import Examples, FigureChoice, fitting_examples
from headstart.evaluation.stability.figures import plot_study
from headstart.evaluation.stability.outcome_files import FILE as OUTCOMES
from headstart.evaluation.stability.outcome_files import open_outcomes
from headstart.evaluation.stability.study import choose_pool_size, run_study
from headstart.evaluation.stability.study_tables import describe, print_study, setup_stability_table, win_rate_table
from headstart.evaluation.table_results import TableResults
from headstart.metrics.ranking.outcomes import Ties
from headstart.metrics.ranking.pools import choose_pools
from headstart.metrics.ranking.ranking_measures import Measure
from headstart.output.errors import UserError
from headstart.output.printable import print_lines, print_written
from headstart.output.results_folder import FIGURE_FORMATS, FigureFormat
from headstart.output.seeds import Seed

FILES = ("stability.json", "setup_stability.csv", "win_rates.csv")


class Conventions(NamedTuple):
    """Conventions of a study: the defaults of options.

    Attributes:
        sizes: Sources and targets of the table that they are for.
        pool_size: Sources in a pool; None for 70 %.
        measure: Measure of the figures.
        ties: How ties of winners count.
        examples: Examples of the paper that parts of the figures show.
    """

    sizes: tuple[int, int] = 0, 0
    pool_size: int | None = None
    measure: Measure = "weighted_kendall"
    ties: Ties = "split"
    examples: Examples = MappingProxyType({})


# Agostinelli, Pándy, Uijlings, Mensink and Ferrari, How stable are transferability metrics evaluations?, ECCV 2022,
# sections 5 (table 2, figures 1 to 3) and 6 (table 3, figures 4 and 5), with the names of the tables that were released
# with it. The paper names neither the sources of pools, nor the second measure of figure 1, nor the examples of figures
# 3c and 5c. Section 6 states that its figures are by Pearson, but the example of figure 5a holds by weighted Kendall
# alone. The target of figure 5b is not named; CIFAR100 is the one that fits its description.
_CORRELATIONS = ["weighted_kendall", "pearson"]
PRESETS = {
    "scenario1": Conventions(
        (17, 17),
        11,
        "weighted_kendall",
        "last",
        {
            "graph": {"targets": ["ade", "city"], "measure": "weighted_kendall"},
            "target": {"targets": ["ade", "city"], "metrics": ["logme", "hscore"], "measure": "weighted_kendall"},
            "measure": {"target": "coco", "metrics": ["hscore", "nleep"], "measures": _CORRELATIONS},
        },
    ),
    "scenario2": Conventions(
        (19, 9),
        14,
        "pearson",
        "last",
        {
            "target": {
                "targets": ["cifar10", "caltech_birds2011"],
                "metrics": ["gbc", "logme"],
                "measure": "weighted_kendall",
            },
            "measure": {"target": "cifar100", "metrics": ["logme", "gbc"], "measures": _CORRELATIONS},
        },
    ),
}


def stability(
    table: str | dict[str, str],
    preset: Literal["scenario1", "scenario2"] | None = None,
    pool_size: PositiveInt | None = None,
    pools: PositiveInt | None = None,
    seed: Seed = 0,
    ties: Ties | None = None,
    figures: FigureChoice = FigureChoice(),  # noqa: B008 - frozen
    figure_formats: list[FigureFormat] = FIGURE_FORMATS,
    save_outcomes: bool = False,
    **options: Any,
) -> dict[str, Any]:
    """Evaluate transferability metrics with many source pools, targets and measures, and report how stable that is.

    Writes stability.json, setup_stability.csv, win_rates.csv and the figures, and prints the tables.

    Args:
        table: CSV or Parquet file with the columns source, target, performance and one for each metric. A file with the
            columns metric and score has a row for each metric instead, as the tables that were released with the paper
            (Agostinelli et al., ECCV 2022). Several files have a target each: '{birds: birds.csv, cars: cars.csv}'.
        preset: Conventions that reproduce the paper's table 2 (`scenario1`) or 3 (`scenario2`) from its released table.
            Other options override it.
        pool_size: Sources in a pool. Every subset of this size is a pool. By default 70 % of the sources that a target
            has, rounded.
        pools: Pools to draw if there are more. Estimates then have a standard error. By default up to a million pools
            are all studied. From more, 10,000 are drawn, or 1,000 for a large table.
        seed: Seed of the pools that are drawn.
        ties: How an experiment with several best metrics counts in `win_rate_percent`. `split` gives each an equal
            share. `last` counts it for the last of them in the order GBC, LEEP, N-LEEP, LogME, H-score, then the order
            of the table. By default `split`, which favours none; with a preset `last`, as in the paper.
        figures: Content of the figures.
        figure_formats: File formats of the figures, such as '[png, pdf, svg]'.
        save_outcomes: Also write all outcomes to outcomes.csv.gz, a row for each experiment.
        **options: Options of `TableResults`.

    Returns:
        The content of stability.json.
    """
    start = time.perf_counter()
    results = TableResults("runs/stability", FILES, table, least=2, **options)
    cells = results.table
    conventions = PRESETS[preset] if preset else Conventions()
    sizes = len(cells.sources), len(cells.targets)
    if preset and sizes != conventions.sizes:
        sources, targets = conventions.sizes
        raise UserError(
            f"preset: {preset} is for a table of {sources} sources and {targets} targets, and {table!r} has {sizes[0]} "
            f"and {sizes[1]}; give its own table, or pool_size and ties in place of the preset"
        )

    size = choose_pool_size(cells, int(pool_size) if pool_size else conventions.pool_size)
    examples = fitting_examples(conventions.examples, cells)
    figures.require_known(cells)
    studied = choose_pools(cells.scores, size, int(pools) if pools else None, int(seed))

    settings: dict[str, Any] = {
        **results.reading,
        "preset": preset,
        "pool_size": size,
        **studied.settings,
        "ties": ties or conventions.ties,
    }
    results.check_settings(settings)

    outcomes = results.path / OUTCOMES
    with (
        results.writable(),
        open_outcomes(outcomes, cells) if save_outcomes else nullcontext(lambda *block: None) as each_block,
    ):
        study = run_study(cells, studied, each_block)

    document = {
        **settings,
        **describe(study, settings["ties"]),
        "notes": cells.notes,
        **results.origin,
        "figures": {**figures.chosen, "examples": examples},
        "seconds": time.perf_counter() - start,
    }
    tables = {"setup_stability": setup_stability_table(study), "win_rates": win_rate_table(study)}
    plots = plot_study(study, figures, conventions.measure, examples)
    results.write(document, tables, figures=plots, figure_formats=figure_formats)

    print_study(study, settings["ties"])
    print_lines(cells.remarks())
    print_written([*results.written, *[outcomes] * save_outcomes])
    results.publish_table("stability", settings, document, tables)
    return document

"""`headstart stability`: how stable the evaluation of transferability metrics is."""

import time
from typing import Any, Literal

from jsonargparse.typing import PositiveInt

from headstart.evaluation.stability.study import choose_pool_size, run_study
from headstart.evaluation.stability.study_tables import describe, print_study, setup_stability_rows, win_rate_rows
from headstart.evaluation.table_results import TableResults
from headstart.metrics.ranking.outcomes import Ties
from headstart.metrics.ranking.pools import choose_pools
from headstart.output.printable import print_lines
from headstart.output.seeds import Seed

FILES = ("stability.json", "setup_stability.csv", "win_rates.csv")


# Sources in a pool, by scenario: Agostinelli, Pándy, Uijlings, Mensink and Ferrari, How stable are transferability
# metrics evaluations?, ECCV 2022, sections 5 (table 2) and 6 (table 3). Both count a tie as a win of its last metric.
PRESETS = {"scenario1": 11, "scenario2": 14}


def stability(
    table: str | dict[str, str],
    preset: Literal["scenario1", "scenario2"] | None = None,
    pool_size: PositiveInt | None = None,
    pools: PositiveInt | None = None,
    seed: Seed = 0,
    ties: Ties | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Evaluate transferability metrics with many source pools, targets and measures, and report how stable that is.

    Writes stability.json, setup_stability.csv and win_rates.csv, and prints the tables.

    Args:
        table: CSV or Parquet file with the columns source, target, performance and one for each metric. A long
            file has the columns metric and score instead, as the tables that were released with the paper (Agostinelli
            et al., ECCV 2022). Several files contain one target each: '{birds: birds.csv, cars: cars.csv}'.
        preset: Settings that reproduce the paper's table 2 (`scenario1`) or 3 (`scenario2`) from its released table.
            Other options override it.
        pool_size: Sources in a pool. Every subset of this size is a pool. By default 70 % of the sources that a target
            has, rounded.
        pools: Number of pools to sample if there are more. Estimates then have a standard error. By default all pools
            are studied, up to a million. Of more pools, 10,000 are sampled, or 1,000 for a large table.
        seed: Seed of the sampling of pools.
        ties: How an experiment with several best metrics counts in `win_rate_percent`. `split` gives each an equal
            share. `last` counts it for the last of them in the order GBC, LEEP, N-LEEP, LogME, H-score, then the order
            of the table. By default `split`, which favours none; with a preset `last`, as in the paper.
        **options: Options of `TableResults`.

    Returns:
        The content of stability.json.
    """
    start = time.perf_counter()
    results = TableResults("runs/stability", FILES, table, minimum=2, **options)
    selected = results.table
    size = choose_pool_size(selected, int(pool_size) if pool_size else PRESETS.get(preset or ""))
    study_pools = choose_pools(selected.scores, size, int(pools) if pools else None, int(seed))

    settings: dict[str, Any] = {
        **results.reading,
        "preset": preset,
        "pool_size": size,
        **study_pools.settings,
        "ties": ties or ("last" if preset else "split"),
    }
    results.check_settings(settings)
    study = run_study(selected, study_pools)

    agreements, rates = setup_stability_rows(study), win_rate_rows(study)
    document = {
        **settings,
        **describe(study, settings["ties"], agreements, rates),
        "notes": selected.notes,
        **results.origin,
        "seconds": time.perf_counter() - start,
    }
    rows_by_name = {"setup_stability": agreements, "win_rates": rates}
    tables = {name: (list(rows[0]), [list(row.values()) for row in rows]) for name, rows in rows_by_name.items()}
    results.write(document, tables)

    print_study(study, settings["ties"], agreements, rates)
    print_lines(selected.remarks())
    results.print_written()
    results.publish_table("stability", settings, document, tables)
    return document

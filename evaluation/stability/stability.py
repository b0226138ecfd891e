"""`headstart stability`: how far the evaluation of transferability metrics can be trusted."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any, Literal, NamedTuple

from jsonargparse.typing import NonNegativeFloat, PositiveInt

from headstart.evaluation.stability.examples import FigureChoice, fitting_examples
from headstart.evaluation.stability.figures import draw_figures
from headstart.evaluation.stability.outcome_files import OutcomeFile, keep_outcomes, outcome_file
from headstart.evaluation.stability.paper_examples import Example
from headstart.evaluation.stability.report import describe, print_study, setup_stability_rows, win_rate_rows
from headstart.evaluation.stability.study import choose_pool_size, run_study
from headstart.evaluation.stability.table import TransferTable, read_table
from headstart.metrics.ranking.ranking_measures import Measure
from headstart.metrics.ranking.win_rates import Ties
from headstart.output.dashboard import Dashboard, Result, check_dashboard, publish
from headstart.output.errors import UserError, reason_of, require_different
from headstart.output.files import output_folder, refuse_other_results, write_texts
from headstart.output.markup import csv_text
from headstart.output.printable import print_lines, say

CSV_FILES = {"setup_stability": "setup_stability.csv", "win_rates": "win_rates.csv"}


class Preset(NamedTuple):
    """The conventions behind published tables: sizes, sources in a pool, the measure and the examples of figures."""

    sources: int
    targets: int
    pool_size: int
    measure: Measure
    examples: tuple[Example, ...]


# Agostinelli, Pándy, Uijlings, Mensink and Ferrari, How stable are transferability metrics evaluations?, ECCV 2022,
# sections 5 (tables 2, figures 2 and 3) and 6 (table 3, figures 4 and 5).
PRESETS = {
    "scenario1": Preset(
        sources=17,
        targets=17,
        pool_size=11,
        measure="weighted_kendall",
        examples=("figure1", "figure3a", "figure3b_coco"),
    ),
    "scenario2": Preset(sources=19, targets=9, pool_size=14, measure="pearson", examples=("figure5a", "figure5b")),
}


def stability(
    table: str,
    metrics: list[str] | None = None,
    columns: dict[str, str] | None = None,
    performances: str | None = None,
    preset: Literal["scenario1", "scenario2"] | None = None,
    pool_size: PositiveInt | None = None,
    exclude_target: bool = True,
    trainable: bool = True,
    ties: Ties | None = None,
    tie_tolerance: NonNegativeFloat = 1e-12,
    output: str = "runs/stability",
    overwrite: bool = False,
    figures: FigureChoice = FigureChoice(),  # noqa: B008 - frozen
    save_outcomes: OutcomeFile = False,
    logger: bool = True,
    dashboard: Dashboard = Dashboard(),  # noqa: B008 - frozen
) -> dict[str, Any]:
    """Evaluate transferability metrics with every source pool, target and measure, and say how stable the outcome is.

    Writes stability.json, setup_stability.csv, win_rates.csv and the figures, and prints the tables.

    Args:
        table: CSV file with the columns metric, source, target, score and performance, or in the layout of the tables
            released with the paper (Agostinelli et al., ECCV 2022).
        metrics: Metrics to study, by their names in the table; by default all. Those that give all sources of every
            target the same score are left out, with a line that says so.
        columns: Names of columns in the file where they are others: '{source: Model, target: Dataset}'.
        performances: CSV file with the columns source, target and performance, such as `headstart performances`
            writes, in place of the table's own, which then needs no such column.
        preset: Conventions that reproduce the paper's table 2 (`scenario1`) or 3 (`scenario2`) from its released table;
            options that are given besides it win.
        pool_size: Sources in a pool; every subset of this size is a pool. By default 70 % of the sources that a target
            has, rounded.
        exclude_target: Whether a source is never in a pool for the target of the same name. A pool is then used for the
            targets outside it, so that experiments that differ in the target alone have the same sources.
        trainable: Which rows count in a table with the column `Trainable Backbone`: those of fine-tuning the whole
            network, as in the paper, or with false those of training the head alone.
        ties: How an experiment with several best metrics counts in `win_rate_percent`: `split` gives each an equal
            share, `last` gives it to the last of them in the order GBC, LEEP, N-LEEP, LogME, H-score, then others as
            they come in the table. By default `split`, which favours none; with a preset `last`, as in the paper.
        tie_tolerance: Metrics whose measures differ by no more are tied; covers rounding errors alone by default.
        output: Folder for the results.
        overwrite: Replace results of another configuration that lie in the folder.
        figures: What the figures show.
        save_outcomes: Whether to write all outcomes, too: with `csv` a row for each experiment to outcomes.csv.gz, with
            `true` an array to outcomes.npy, pools (in the lexicographic order of their sources) by targets by measures
            by metrics, NaN where a target is in the pool.
        logger: Whether to mirror the result in Weights & Biases.
        dashboard: Where it is mirrored.

    Returns:
        What stability.json holds.
    """
    start = time.perf_counter()
    if metrics is not None:
        require_different("metrics", metrics, least=2)
    folder = output_folder("output", output)
    if logger:
        check_dashboard(dashboard)
    cells = read_table(Path(table), trainable, exclude_target, metrics, columns, performances=performances)
    conventions = _require_preset(cells, preset, table) if preset else None
    size = choose_pool_size(cells, int(pool_size) if pool_size else conventions.pool_size if conventions else None)
    examples = fitting_examples(conventions.examples, cells) if conventions else []
    figures.require_known(cells, size, examples)
    counted: Ties = ties or ("last" if conventions else "split")
    measure: Measure = conventions.measure if conventions else "weighted_kendall"
    settings = {
        "columns": columns,
        "preset": preset,
        "pool_size": size,
        "exclude_target": exclude_target,
        "trainable": trainable,
        "ties": counted,
        "tie_tolerance": float(tie_tolerance),
    }
    made_from = {**settings, "metrics": cells.metrics, "table/sha256": cells.sha256}
    refuse_other_results([folder / name for name in ("stability.json", *CSV_FILES.values())], made_from, overwrite)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with keep_outcomes(folder, save_outcomes, cells, size, float(tie_tolerance)) as keep:
            study = run_study(cells, size, float(tie_tolerance), keep)
        drawn = draw_figures(study, figures, measure, folder, examples)
    except OSError as error:
        raise UserError(f"output: {output!r} cannot be written ({reason_of(error)}); choose another folder") from error
    document = {
        **settings,
        **describe(study, counted),
        "table": {"path": table, "sha256": cells.sha256},
        "performances": performances,
        "figures": {**figures.given, "examples": figures.shown_examples(examples)},
        "seconds": time.perf_counter() - start,
    }
    tables = {"setup_stability": setup_stability_rows(study), "win_rates": win_rate_rows(study)}
    texts = {"stability.json": json.dumps(document, indent=1, allow_nan=False) + "\n"}
    texts |= {CSV_FILES[name]: csv_text(*rows) for name, rows in tables.items()}
    files = [*write_texts(folder, texts), *drawn]
    print_study(study, counted)
    print_lines(cells.remarks())
    say(f"wrote {', '.join(map(str, files + outcome_file(folder, save_outcomes)))}")
    if logger:
        title = f"stability, {len(cells.metrics)} metrics, {len(cells.sources)} sources, {len(cells.targets)} targets"
        config = {"table": table, **settings}
        publish(dashboard, Result("stability", title, config, document, tables, files), folder)
    return document


def _require_preset(table: TransferTable, name: str, path: str) -> Preset:
    """Give a preset's conventions, once the table is known to be of its size."""
    preset = PRESETS[name]
    sizes = len(table.sources), len(table.targets)
    if sizes != (preset.sources, preset.targets):
        raise UserError(
            f"preset: {name} is for a table of {preset.sources} sources and {preset.targets} targets, and {path!r} has "
            f"{sizes[0]} and {sizes[1]}; give its own table, or pool_size and ties in place of the preset"
        )
    return preset

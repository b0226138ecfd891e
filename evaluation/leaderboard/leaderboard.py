"""`headstart leaderboard`: which method wins, by how much, and how sure that is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from jsonargparse.typing import ClosedUnitInterval, PositiveInt

from headstart.evaluation.leaderboard.families import choose_families, remark_on_variants
from headstart.evaluation.leaderboard.files import CSV, JSON, MARKDOWN, TEX, print_leaderboard, texts
from headstart.evaluation.leaderboard.over_settings import describe_over_settings
from headstart.evaluation.leaderboard.rows import describe, score_setting
from headstart.evaluation.leaderboard.sensitivity import describe_sensitivity, read_grid
from headstart.evaluation.leaderboard.settings import Asked, Setting, read_settings
from headstart.evaluation.leaderboard.setup_stability import describe_setup_stability
from headstart.evaluation.stored_traces import BASELINE, describe_differences
from headstart.output.files import output_folder, refuse_other_results, write_texts
from headstart.output.printable import print_lines

SCHEMA = 1
ACCURACY_AT = [10, 50, 100, 500]


def leaderboard(
    runs: str | list[str],
    output: str = "runs/leaderboard",
    threshold: ClosedUnitInterval | None = None,
    consecutive: PositiveInt | None = None,
    where: dict[str, Any] | None = None,
    baseline: str = BASELINE,
    methods: list[str] | None = None,
    tuned: dict[str, str | list[str]] | None = None,
    choose: dict[str, str] | None = None,
    accuracy_at: list[PositiveInt] = ACCURACY_AT,
    overwrite: bool = False,
) -> dict[str, Any]:
    """Rank methods in every setting that runs or ledgers hold, and say what the data can tell apart.

    Writes leaderboard.json, leaderboard.csv, leaderboard.md and leaderboard.tex. What the numbers mean stands in
    docs/leaderboard.md.

    Args:
        runs: Folders of runs or ledgers, folders above them, or patterns such as 'runs/fine_tuning-*'. Each stream that
            they hold is a setting, traces of different protocols are never pooled.
        output: Folder for the results.
        threshold: Validation accuracy that counts as reached; by default the runs' own, 0.8 of a ledger alone.
        consecutive: Evaluations in a row at which it must be reached; by default the runs' own, 10 of a ledger alone.
        where: Which settings, by what differs between them: --where.batch_size=8.
        baseline: The method that the others are compared with: its name, or its class where that is the only one of it.
        methods: Names or classes of the other methods; all by default.
        tuned: Methods to be marked in settings on whose validation photos their hyperparameters were chosen, with the
            data set or data sets of these: --tuned.replay=cats_and_dogs.
        choose: Variants of one method that become one row, by the row's name: --choose.ridge='ridge_*'. On each data
            set the row is that variant which is best on the other data sets.
        accuracy_at: Numbers of samples at which the accuracy is given.
        overwrite: Replace a leaderboard of other folders or options that lies in the folder.

    Returns:
        What leaderboard.json holds.

    Raises:
        UserError: Nothing is found, nothing can be compared, or another leaderboard lies in the folder.
    """
    folder = output_folder("output", output)
    given = [runs] if isinstance(runs, str) else list(runs)
    asked = ask(threshold, consecutive, where, baseline, methods, tuned, choose)
    numbers = [int(at) for at in accuracy_at]
    settings, left_out = read_settings(given, asked)
    settings = choose_families(settings, asked)
    made_from = {"folders": given, "asked": asdict(asked), "accuracy_at": numbers}
    refuse_other_results([folder / name for name in (JSON, CSV, MARKDOWN, TEX)], made_from, overwrite)
    document = rank_settings(settings, left_out, given, asked, numbers)
    files = write_texts(folder, texts(document))
    print_leaderboard(document)
    print_lines([f"wrote {', '.join(map(str, files))}"])
    return document


def ask(
    threshold: float | None,
    consecutive: int | None,
    where: dict[str, Any] | None,
    baseline: str,
    methods: list[str] | None,
    tuned: dict[str, str | list[str]] | None,
    choose: dict[str, str] | None,
) -> Asked:
    """Put what a command was given for a leaderboard together, as `leaderboard` describes it."""
    criterion: dict[str, Any] = {} if threshold is None else {"threshold": float(threshold)}
    criterion |= {} if consecutive is None else {"consecutive": int(consecutive)}
    marked = {name: [on] if isinstance(on, str) else on for name, on in (tuned or {}).items()}
    return Asked(criterion, where or {}, baseline, methods, marked, choose or {})


def rank_settings(
    settings: Sequence[Setting],
    left_out: Sequence[Mapping[str, str]],
    folders: Sequence[str],
    asked: Asked,
    accuracy_at: Sequence[int] = ACCURACY_AT,
) -> dict[str, Any]:
    """Give what leaderboard.json holds, once the settings are read.

    Args:
        settings: The settings.
        left_out: Settings that cannot be scored, each with the `reason`.
        folders: What they were read from.
        asked: What was asked for.
        accuracy_at: Numbers of samples at which accuracies are given.
    """
    scored = [score_setting(setting) for setting in settings]
    grids = [read_grid(each) for each in scored]
    over_settings, remarks = describe_over_settings(scored)
    return {
        "schema": SCHEMA,
        "folders": list(folders),
        "asked": asdict(asked),
        "accuracy_at": list(accuracy_at),
        "criterion": {
            key: _only([setting.protocol[key] for setting in settings])
            for key in ("measure", "threshold", "consecutive")
        },
        "differences": describe_differences([setting.protocol for setting in settings]),
        "left_out": list(left_out),
        "remarks": [*remarks, *remark_on_variants(settings)],
        "settings": [describe(each, accuracy_at) for each in scored],
        "over_settings": over_settings,
        "sensitivity": describe_sensitivity(scored, grids),
        "setup_stability": describe_setup_stability(scored, grids),
    }


def _only(values: Sequence[Any]) -> Any:  # noqa: ANN401 - of any key
    """Give the one value that all have; None where they differ."""
    return values[0] if all(value == values[0] for value in values) else None

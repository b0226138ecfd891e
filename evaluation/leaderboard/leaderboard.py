"""`headstart leaderboard`: which method wins, by how much, and with what certainty."""

from collections.abc import Mapping, Sequence
from typing import Any

from jsonargparse.typing import PositiveInt
from threadpoolctl import threadpool_limits

from headstart.contract.tables.grouping import grouped
from headstart.evaluation.leaderboard.budgets import (
    describe_budgets,
    describe_budgets_over_settings,
    find_budgets,
    missing_budgets,
)
from headstart.evaluation.leaderboard.over_settings import describe_over_settings
from headstart.evaluation.leaderboard.read_settings import read_settings
from headstart.evaluation.leaderboard.scores import compare_methods, describe_setting
from headstart.evaluation.leaderboard.sensitivity import describe_sensitivity
from headstart.evaluation.leaderboard.settings import Setting
from headstart.evaluation.leaderboard.tables import FILES, leaderboard_table, print_leaderboard, write_leaderboard
from headstart.evaluation.protocol_differences import describe_differences
from headstart.evaluation.trace_options import LeaderboardOptions
from headstart.metrics.sample_efficiency.scores import ACCURACY_AT
from headstart.output.dashboard import Dashboard
from headstart.output.results_folder import DashboardResults

SCHEMA = 1


def leaderboard(
    runs: str | list[str],
    output: str = "runs/leaderboard",
    accuracy_at: list[PositiveInt] = ACCURACY_AT,
    overwrite: bool = False,
    logger: bool = False,
    dashboard: Dashboard = Dashboard(),  # noqa: B008 - frozen
    **options: Any,
) -> dict[str, Any]:
    """Rank methods in every setting that runs or ledgers hold, with the certainty of the ranking.

    Writes leaderboard.json, leaderboard.csv, leaderboard.md and leaderboard.tex. docs/leaderboard.md explains the
    numbers.

    Args:
        runs: Folders of runs or ledgers, folders above them, or patterns such as 'runs/fine_tuning-*'. Each stream in
            them is a setting. Traces of different protocols are never pooled.
        output: Folder for the results.
        accuracy_at: Numbers of samples at which the accuracy is reported.
        overwrite: Replace a leaderboard of other runs or options in the output folder.
        logger: Whether to log the leaderboard in Weights & Biases.
        dashboard: Where it is logged.
        **options: Options of `LeaderboardOptions`.

    Returns:
        The content of leaderboard.json.

    Raises:
        UserError: There are no runs, no methods can be compared, or the folder holds another leaderboard.
    """
    results = DashboardResults(output, FILES, logger, dashboard, overwrite=overwrite)
    folders = [runs] if isinstance(runs, str) else list(runs)
    selection = LeaderboardOptions(**options)
    made_from = {"folders": folders, "asked": selection.describe(), "accuracy_at": [int(at) for at in accuracy_at]}

    settings, left_out = read_settings(folders, selection)
    results.check_configuration(made_from)
    document = rank_settings(settings, left_out, made_from, selection)
    write_leaderboard(results, document)
    print_leaderboard(document)
    results.print_written()

    title = f"leaderboard, {len(document['settings'])} settings"
    results.publish("leaderboard", title, made_from, document, {"leaderboard": leaderboard_table(document)})
    return document


def rank_settings(
    settings: Sequence[Setting],
    left_out: Sequence[Mapping[str, str]],
    made_from: Mapping[str, Any],
    options: LeaderboardOptions,
) -> dict[str, Any]:
    """Return the content of `leaderboard.json`.

    Args:
        settings: The settings.
        left_out: Settings that cannot be scored, each with the `reason`.
        made_from: The `folders`, the options as `asked`, and the numbers of samples of `accuracy_at`.
        options: These options.

    Raises:
        UserError: Labels per class are requested, and no stream is balanced.
    """
    budgets = find_budgets(settings, options)
    # Several threads take more processor time for matrices as small as these, and no less time.
    with threadpool_limits(1):
        described = []
        for setting, tests, own in zip(settings, compare_methods(settings), budgets, strict=True):
            entry = describe_setting(setting, tests, made_from["accuracy_at"]) | describe_budgets(setting, own)
            described.append({**entry, "remarks": [*entry["remarks"], *missing_budgets(setting, own, options)]})

        over_settings, remarks = describe_over_settings(settings)

    criteria = [setting.curves.criterion for setting in settings]
    return {
        "schema": SCHEMA,
        "warnings": _collect_warnings(settings),
        **made_from,
        # A value is None where settings differ in it.
        "criterion": {
            key: value if all(each[key] == value for each in criteria) else None for key, value in criteria[0].items()
        },
        "differences": describe_differences([setting.protocol for setting in settings]),
        "left_out": list(left_out),
        "remarks": remarks,
        "settings": described,
        "over_settings": over_settings,
        "label_budgets": describe_budgets_over_settings(settings, budgets, options),
        "sensitivity": describe_sensitivity(settings),
    }


def _collect_warnings(settings: Sequence[Setting]) -> list[str]:
    """Return the warnings of all settings, each once, with the names of its settings."""
    names = grouped((warning, setting.name) for setting in settings for warning in setting.warnings)
    return [f"{'; '.join(of)}: {warning}" if len(settings) > 1 else warning for warning, of in names.items()]

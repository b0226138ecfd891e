"""`headstart report`: a comparison as a page to send."""

import re
from glob import escape
from pathlib import Path
from typing import Any

from headstart.evaluation.leaderboard.leaderboard import rank_settings
from headstart.evaluation.leaderboard.read_settings import read_settings
from headstart.evaluation.leaderboard.settings import Setting
from headstart.evaluation.leaderboard.tables import FILES, leaderboard_table, write_leaderboard
from headstart.evaluation.report.documents import find_contents
from headstart.evaluation.report.page import comparison_page, documents_page
from headstart.evaluation.trace_options import LeaderboardOptions
from headstart.metrics.sample_efficiency.scores import ACCURACY_AT
from headstart.output.dashboard import Dashboard
from headstart.output.errors import UserError
from headstart.output.files import output_file, write_texts
from headstart.output.page.layout import render
from headstart.output.printable import print_lines
from headstart.output.results_folder import DashboardResults, ResultsFolder

# The first bytes of every page, which only such pages have.
GENERATOR, HEAD_SIZE = '<meta name="generator" content="Headstart">', 500


def report(
    folder: str | list[str],
    output: str = "runs/report.html",
    overwrite: bool = False,
    logger: bool = False,
    dashboard: Dashboard = Dashboard(),  # noqa: B008 - frozen
    **options: Any,
) -> Path:
    """Write what folders hold as a page to send: one HTML file that needs no network, server or account.

    It shows the leaderboard and the learning curves of all runs and ledgers below the folders. It also shows the
    results of `headstart cka`, `transferability`, `audit` and `stability` in them. The leaderboard's files are written
    beside it.

    Args:
        folder: Folder that holds runs, ledgers or results, at any depth; or several.
        output: HTML file to write.
        overwrite: Replace a leaderboard of other folders or options that lies beside the page.
        logger: Whether to log the page in Weights & Biases.
        dashboard: Where it is logged.
        **options: Options of `LeaderboardOptions`.

    Returns:
        The file.
    """
    path = output_file("output", output)
    folders = [folder] if isinstance(folder, str) else list(folder)
    selection = LeaderboardOptions(**options)
    contents = find_contents(folders)
    if path.exists() and GENERATOR.encode() not in path.read_bytes()[:HEAD_SIZE]:
        raise UserError(f"output: {str(path)!r} holds something else than a report; choose another file")
    print_lines([f"skipped: {reason}" for reason in contents.skipped])

    results = DashboardResults(str(path.parent), FILES, logger, dashboard, overwrite=overwrite)
    document: dict[str, Any] | None = None
    if contents.has_traces:
        document, settings = _rank(folders, selection, results)
        page = comparison_page(document, [setting.curves for setting in settings], contents)
    else:
        page = documents_page(contents)
    html = {path.name: render(page)}

    if document is None:
        results.written += write_texts(path.parent, html)
    else:
        write_leaderboard(results, document, html)
    results.print_written()

    tables = {} if document is None else {"leaderboard": leaderboard_table(document)}
    results.publish("report", f"report, {', '.join(folders)}", {"folders": folders}, document or {}, tables)
    return path


def _rank(
    folders: list[str], selection: LeaderboardOptions, results: ResultsFolder
) -> tuple[dict[str, Any], list[Setting]]:
    """Return the content of `leaderboard.json`, and its settings."""
    try:
        settings, left_out = read_settings([escape(folder) for folder in folders], selection)
    except UserError as error:
        # The leaderboard's argument has another name here.
        raise UserError(re.sub("^runs: ", "folder: ", str(error))) from error
    made_from = {"folders": folders, "asked": selection.describe(), "accuracy_at": ACCURACY_AT}
    results.check_configuration(made_from)
    return rank_settings(settings, left_out, made_from, selection), settings

"""`headstart report`: a comparison as a page to send."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from glob import escape
from pathlib import Path
from typing import Any

from jsonargparse.typing import ClosedUnitInterval, PositiveInt

from headstart.evaluation.leaderboard.families import choose_families
from headstart.evaluation.leaderboard.files import CSV, JSON, MARKDOWN, TEX, texts
from headstart.evaluation.leaderboard.leaderboard import ACCURACY_AT, ask, rank_settings
from headstart.evaluation.leaderboard.settings import read_settings
from headstart.evaluation.report.material import find_material
from headstart.evaluation.stored_traces import BASELINE, is_ledger
from headstart.output.errors import UserError, prefix_errors, reason_of
from headstart.output.files import output_file, output_folder, refuse_other_results, write_texts, write_together
from headstart.output.printable import print_lines
from headstart.output.results_folder import FIGURE_FORMATS, FigureFormat

# Stands in the first bytes of every page, by which one is known that may be replaced.
GENERATOR, ITS_HEAD = '<meta name="generator" content="Headstart">', 500


def report(
    folder: str | list[str],
    output: str = "runs/report.html",
    figures: str | None = None,
    figure_formats: list[FigureFormat] = FIGURE_FORMATS,
    threshold: ClosedUnitInterval | None = None,
    consecutive: PositiveInt | None = None,
    where: dict[str, Any] | None = None,
    baseline: str = BASELINE,
    methods: list[str] | None = None,
    tuned: dict[str, str | list[str]] | None = None,
    choose: dict[str, str] | None = None,
    overwrite: bool = False,
) -> Path:
    """Write what folders hold as a page to send: one HTML file that needs no network, server or account.

    It shows the leaderboard of all runs and ledgers below the folders, their learning curves, and the results of
    `headstart cka`, `transferability`, `audit` and `stability` that lie there. The leaderboard's files are written
    beside it.

    Args:
        folder: Folder that holds runs, ledgers or results, at any depth; or several.
        output: HTML file to write.
        figures: Folder for the charts; none by default.
        figure_formats: File formats of the charts in that folder, such as '[png, pdf, svg]'.
        threshold: Validation accuracy that counts as reached; by default the runs' own, 0.8 of a ledger alone.
        consecutive: Evaluations in a row at which it must be reached; by default the runs' own, 10 of a ledger alone.
        where: Which settings, by what differs between them: --where.batch_size=8.
        baseline: The method that the others are compared with: its name, or its class where that is the only one of it.
        methods: Names or classes of the other methods; all by default.
        tuned: Methods to be marked in settings on whose validation photos their hyperparameters were chosen, with the
            data set or data sets of these: --tuned.replay=cats_and_dogs.
        choose: Variants of one method that become one row, by the row's name: --choose.ridge='ridge_*'. On each data
            set the row is that variant which is best on the other data sets.
        overwrite: Replace a leaderboard of other folders or options that lies beside the page.

    Returns:
        The file.
    """
    path = output_file("output", output)
    drawn = None if figures is None else output_folder("figures", figures)
    folders = [folder] if isinstance(folder, str) else list(folder)
    try:
        from headstart.evaluation.report.page import comparison_page, neighbours_page
        from headstart.output.page.figures import figure_writers
        from headstart.output.page.layout import render
    except ImportError as error:
        raise UserError(f"report cannot be made ({error}); pip install 'headstart[report]'") from error
    material = find_material(folders)
    _require_page(path)
    print_lines([f"passed over: {str(path)!r} is of another kind" for path in dict.fromkeys(material.foreign)])
    page, tables = neighbours_page(material), {}
    if material.traces:
        asked = ask(threshold, consecutive, where, baseline, methods, tuned, choose)
        with prefix_errors("folder", about="runs: "):
            settings, left_out = read_settings([escape(each) for each in folders], asked)
        runs = {str(run.folder): run for each in settings for run in each.runs if not is_ledger(run.folder)}
        settings = choose_families(settings, asked)
        _require_tables(path.parent, {"folders": folders, "asked": asdict(asked)}, overwrite)
        document = rank_settings(settings, left_out, folders, asked)
        page, tables = (
            comparison_page(document, [each.curves for each in settings], [*runs.values()], material),
            texts(document),
        )
    html = render(page)
    if drawn is not None:
        print_lines([f"wrote {len(_write_figures(drawn, figure_writers(page, figure_formats)))} figures into {drawn}"])
    print_lines([f"wrote {', '.join(map(str, write_texts(path.parent, {**tables, path.name: html})))}"])
    return path


def _require_page(path: Path) -> None:
    """Check that a file that is there may be replaced."""
    if path.exists() and GENERATOR.encode() not in path.read_bytes()[:ITS_HEAD]:
        raise UserError(f"output: {str(path)!r} holds something else than a report; choose another file")


def _require_tables(folder: Path, made_from: Mapping[str, Any], overwrite: bool) -> None:
    """Check that the tables beside a page are those of it."""
    made_from = {**made_from, "accuracy_at": ACCURACY_AT}
    try:
        refuse_other_results([folder / name for name in (JSON, CSV, MARKDOWN, TEX)], made_from, overwrite)
    except UserError as error:
        raise UserError(f"{error}: a page's tables are always called so, and one folder holds one page's") from error


def _write_figures(folder: Path, writers: Mapping[str, Callable[[Path], object]]) -> list[Path]:
    try:
        return write_together(folder, writers)
    except OSError as error:
        raise UserError(
            f"figures: {str(folder)!r} cannot be written ({reason_of(error)}); choose another folder"
        ) from error

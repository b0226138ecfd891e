"""The page: its answers, and a section for each kind of results."""

from collections.abc import Mapping, Sequence
from typing import Any

from headstart.evaluation.report import answer
from headstart.evaluation.report.documents import FolderContents, document_sections
from headstart.evaluation.report.replication import replication
from headstart.evaluation.report.robustness import label_budgets, over_settings, sensitivity, setup_stability
from headstart.evaluation.report.settings import HINTS, OVERVIEW_HINTS, overview, settings_section
from headstart.evaluation.runs import Run
from headstart.metrics.sample_efficiency.curves import Curves
from headstart.output.page.layout import Page

# Number of methods whose lines are plotted when the page is opened.
FIRST = 6


def comparison_page(
    document: Mapping[str, Any], curves: Sequence[Curves], runs: Sequence[Run], contents: FolderContents
) -> Page:
    """Lay out the page of a leaderboard.

    Args:
        document: The content of `leaderboard.json`.
        curves: The traces of each of its settings.
        runs: The runs that the settings name.
        contents: Further contents of the folders.
    """
    settings, over = document["settings"], document["over_settings"]
    # Baselines come first, then methods in their order over settings, then in that of each setting.
    baselines = [setting["baseline"] for setting in settings if setting["baseline"]]
    ranked = [method["name"] for method in over["methods"]] if over else []
    others = [method["name"] for setting in settings for method in setting["methods"]]
    methods = list(dict.fromkeys([*baselines, *ranked, *others]))
    marks = {name: index for index, name in enumerate(methods)}

    answers, sections_of_documents = document_sections(contents)
    sections = [
        overview(document),
        over_settings(document, marks),
        label_budgets(document),
        settings_section(settings, curves, marks),
        sensitivity(document),
        setup_stability(document),
        *sections_of_documents,
        replication(document, runs),
    ]
    title = f"Sample efficiency of {_count(len(methods), 'method')} in {_count(len(settings), 'setting')}"
    shown = list(range(min(len(methods), FIRST)))
    answers = [*answer.of_comparison(document), *answers]
    hints = OVERVIEW_HINTS | HINTS
    return Page(title, answers, methods, shown, [*filter(None, sections)], document["warnings"], hints)


def documents_page(contents: FolderContents) -> Page:
    """Lay out the page of folders without traces."""
    answers, sections = document_sections(contents)
    return Page(" and ".join(section.title for section in sections), answers, [], [], sections)


def _count(count: int, noun: str) -> str:
    return f"{count} {noun}{'s' * (count != 1)}"

"""The page: its answers, and a section for each kind of results."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from headstart.evaluation.audit.tables import MARKS
from headstart.evaluation.estimates import INTERVAL
from headstart.evaluation.report import answer
from headstart.evaluation.report.documents import FolderContents
from headstart.evaluation.report.replication import AGAIN, replication
from headstart.evaluation.report.robustness import label_budgets, over_settings, sensitivity, setup_stability
from headstart.evaluation.report.series import BAND
from headstart.evaluation.report.settings import overview, settings_section
from headstart.evaluation.runs import Run
from headstart.metrics.sample_efficiency.curves import Curves
from headstart.output.page.layout import Page, Section

# Number of methods whose lines are plotted when the page is opened.
FIRST = 6
TEXTS = yaml.safe_load(Path(__file__).with_name("definitions.yaml").read_text(encoding="utf-8"))


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

    sections = [
        overview(document),
        over_settings(document, marks),
        label_budgets(document),
        settings_section(settings, curves, marks),
        sensitivity(document),
        setup_stability(document),
        *contents.sections,
        replication(document, runs),
    ]
    title = f"Sample efficiency of {_count(len(methods), 'method')} in {_count(len(settings), 'setting')}"
    shown = list(range(min(len(methods), FIRST)))
    answers = [*answer.of_comparison(document), *contents.answers]
    defined, hints = _defined(filter(None, sections), settings), TEXTS["hints"]["overview"] | TEXTS["hints"]["settings"]
    return Page(title, answers, methods, shown, defined, document["warnings"], hints)


def documents_page(contents: FolderContents) -> Page:
    """Lay out the page of folders without traces."""
    title = " and ".join(section.title for section in contents.sections)
    return Page(title, contents.answers, [], [], _defined(contents.sections))


def _defined(sections: Iterable[Section], settings: Sequence[Mapping[str, Any]] = ()) -> list[Section]:
    """Return sections with paragraphs on what their numbers mean."""
    criteria = {
        "measures": [each["measure"].replace("_", " ") for each in settings],
        "thresholds": [f"{each['threshold']:.0%}" for each in settings],
        "streaks": [str(each["consecutive"]) for each in settings],
    }
    values = {name: " or ".join(sorted(set(texts))) for name, texts in criteria.items()}
    values |= dict(zip(("low", "high"), map(str, BAND), strict=True))
    values |= {"interval": INTERVAL, "marks": MARKS, "again": AGAIN}
    values["columns"] = "; ".join(f"{title}: {hint}" for title, hint in TEXTS["hints"]["settings"].items())
    paragraphs = TEXTS["sections"]
    return [replace(each, definitions=[text.format(**values) for text in paragraphs[each.id]]) for each in sections]


def _count(count: int, noun: str) -> str:
    return f"{count} {noun}{'s' * (count != 1)}"

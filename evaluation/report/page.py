"""The page of a leaderboard: its sections and its introduction."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from headstart.evaluation.report.folder_contents import FolderContents
from headstart.evaluation.report.replication import replication
from headstart.evaluation.report.robustness import axis, label_budgets, over_settings, sensitivity, setup_stability
from headstart.evaluation.report.settings import overview, settings_section
from headstart.evaluation.runs import Run
from headstart.metrics.sample_efficiency.curves import Curves
from headstart.output.page.layout import Page, Section

# Number of methods whose lines are plotted when the page is opened.
FIRST = 6
# Keys whose values follow from the data set.
FOLLOWING = ("classes", "largest_class", "train_size", "validation_size")


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
        overview(document, marks),
        over_settings(document, marks),
        label_budgets(document, marks),
        axis(document, marks),
        settings_section(settings, curves, marks),
        sensitivity(document, marks),
        setup_stability(document),
        *_document_sections(contents),
        replication(document, runs),
    ]
    title = f"Sample efficiency of {_count(len(methods), 'method')} in {_count(len(settings), 'setting')}"
    shown = list(range(min(len(methods), FIRST)))
    return Page(title, _introduction(document), methods, shown, [*filter(None, sections)], document["warnings"])


def documents_page(contents: FolderContents) -> Page:
    """Lay out the page of folders without traces."""
    return Page("Representations and transferability", [], [], [], _document_sections(contents))


def _document_sections(contents: FolderContents) -> list[Section]:
    if not contents.documents:
        return []
    # This module is slow to import.
    from headstart.evaluation.report.documents import document_sections

    return document_sections(contents)


def _introduction(document: Mapping[str, Any]) -> list[str]:
    """Return paragraphs on the question, the measurement, and the differences between settings."""
    settings = document["settings"]
    measures = _listed(setting["measure"].replace("_", " ") for setting in settings)
    thresholds = _listed(f"{setting['threshold']:.0%}" for setting in settings)
    streaks = _listed(str(setting["consecutive"]) for setting in settings)
    paragraphs = [
        "How few labelled samples does a method need to adapt a pre-trained model to a new task? In each setting, all "
        "methods learn from one stream of labelled samples, batch by batch. They start from the same backbone and the "
        "same head. The stream is fed in many orderings, which are seeded orders of it.",
        f"Samples to criterion are the samples seen when the validation {measures} has been {thresholds} or more for "
        f"{streaks} evaluations in a row. A method that has not met the criterion at the limit is censored. The "
        "restricted mean is the mean of min(samples to criterion, limit). Methods are compared in pairs, on the same "
        "orderings. Relative improvements over the baseline have Fieller's interval; p values are of a sign-flip "
        "permutation test, adjusted by Holm. Fewer samples are better.",
    ]

    differing = document["differences"]
    shown = {key: values for key, values in differing.items() if "sha256" not in key and key not in FOLLOWING}
    # Digests are only shown where the names are equal.
    digest = "weights_sha256"
    if digest in differing and "weights" not in differing:
        shown[digest] = differing[digest]
    if shown:
        listed = "; ".join(f"{key} ({values})" for key, values in shown.items())
        paragraphs.append(f"The settings differ in {listed}.")
    return paragraphs


def _listed(texts: Iterable[str]) -> str:
    return " or ".join(sorted(set(texts)))


def _count(count: int, noun: str) -> str:
    return f"{count} {noun}{'s' * (count != 1)}"

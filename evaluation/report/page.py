"""The page of a leaderboard: which sections there are, and what it begins with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from headstart.evaluation.report.material import Material
from headstart.evaluation.report.replication import replication
from headstart.evaluation.report.robustness import over_settings, sensitivity, setup_stability
from headstart.evaluation.report.settings import overview, settings_section
from headstart.evaluation.runs import Run
from headstart.metrics.sample_efficiency.curves import Curves
from headstart.output.page.layout import Page, Section

# Methods whose lines are drawn when a page of more is opened.
FIRST = 6
# What follows from the data set.
FOLLOWING = ("classes", "largest_class", "train_size", "validation_size")


def comparison_page(
    document: Mapping[str, Any], curves: Sequence[Curves], runs: Sequence[Run], material: Material
) -> Page:
    """Lay out the page of a leaderboard.

    Args:
        document: The content of `leaderboard.json`.
        curves: The traces of each of its settings.
        runs: The runs that the settings name.
        material: What else the folders hold.
    """
    settings = document["settings"]
    methods = _methods(document)
    places = {name: place for place, name in enumerate(methods)}
    found = [
        overview(document, places),
        over_settings(document, places),
        settings_section(settings, curves, places),
        sensitivity(document, places),
        setup_stability(document),
        *_neighbours(material),
        replication(document, runs),
    ]
    title = f"Sample efficiency of {_count(len(methods), 'method')} in {_count(len(settings), 'setting')}"
    sections = [section for section in found if section]
    return Page(title, _protocol(document), methods, list(range(min(len(methods), FIRST))), sections)


def _methods(document: Mapping[str, Any]) -> list[str]:
    """Give the names of all methods: baselines first, then by their order over settings, then by that in each."""
    settings, over = document["settings"], document["over_settings"]
    baselines = [setting["baseline"] for setting in settings if setting["baseline"]]
    ranked = [method["name"] for method in over["methods"]] if over else []
    return list(
        dict.fromkeys([*baselines, *ranked, *(each["name"] for setting in settings for each in setting["methods"])])
    )


def neighbours_page(material: Material) -> Page:
    """Lay out the page of folders without traces."""
    return Page("Representations and transferability", [], [], [], _neighbours(material))


def _neighbours(material: Material) -> list[Section]:
    if not material.has_documents:
        return []
    # Their modules are slow to import.
    from headstart.evaluation.report.neighbours import audits, similarity, stability, transferability

    found = (
        similarity(material.similarities),
        transferability(material.transferability),
        audits(material.audits),
        stability(material.stability),
    )
    return [section for section in found if section]


def _protocol(document: Mapping[str, Any]) -> list[str]:
    """Say what was asked, and how it was measured."""
    settings = document["settings"]
    measures = _listed(setting["measure"].replace("_", " ") for setting in settings)
    thresholds = _listed(f"{setting['threshold']:.0%}" for setting in settings)
    streaks = _listed(str(setting["consecutive"]) for setting in settings)
    return [
        "How few labelled samples does a method need to adapt a pre-trained model to a new task? In each setting one "
        "stream of labelled samples is fed, batch by batch, to all methods, which start from the same backbone and the "
        "same head, in many orderings: seeded orders of the stream.",
        f"Samples to criterion are those seen when the validation {measures} has stood at {thresholds} or more for "
        f"{streaks} evaluations in a row; a method that does not get there by the limit is censored. The restricted "
        "mean is that of min(samples to criterion, limit). Methods are compared on the same orderings, in pairs: "
        "Fieller's interval for the relative improvement over the baseline, a sign-flip permutation test adjusted by "
        "Holm. Fewer samples are better.",
        *_differences(document),
    ]


def _differences(document: Mapping[str, Any]) -> list[str]:
    """Say what differs between the settings, but for what follows from the data set; digests where names are equal."""
    differing = document["differences"]
    told = {key: values for key, values in differing.items() if "sha256" not in key and key not in FOLLOWING}
    digest = "weights_sha256"
    if digest in differing and "weights" not in differing:
        told[digest] = differing[digest]
    found = [f"{key} ({values})" for key, values in told.items()]
    return [f"The settings differ in {'; '.join(found)}."] * bool(found)


def _listed(texts: Iterable[str]) -> str:
    return " or ".join(sorted(set(texts)))


def _count(count: int, what: str) -> str:
    return f"{count} {what}{'s' * (count != 1)}"

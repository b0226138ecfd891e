"""The report: sources ranked, with the metrics side by side, as Markdown and as printed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evaluation.sources.results import Results, TargetResults
from evaluation.sources.scores import Metrics
from output.tables import format_number, markdown_table, print_lines, print_table

LEGEND = (
    "Higher scores are better, but for NumC, where they say that the target is harder. In brackets: the rank, 1 being "
    "the best. The mean rank is over the metrics that rank all sources."
)


def print_report(results: Results) -> None:
    """Print the sources of every target, ranked, and why scores are missing.

    Args:
        results: What the metrics say.
    """
    for found in results.targets:
        print_table(f"{found.target.name}: {_photos(found, results)}", _table(found, results.metrics))
        print_lines(_remarks(found, results.metrics))
    print_lines([LEGEND])


def write_markdown(results: Results, document: Mapping[str, Any]) -> str:
    """Write the report.

    Args:
        results: What the metrics say.
        document: The content of `transferability.json`.

    Returns:
        Markdown.
    """
    lines = ["# Transferability", "", LEGEND]
    for found in results.targets:
        lines += ["", f"## {found.target.name}", "", f"{_photos(found, results)}.", ""]
        lines += markdown_table(_table(found, results.metrics))
        lines += ["", *(f"- {line}" for line in _remarks(found, results.metrics))]
        lines += ["", "Seconds:", "", *markdown_table(_seconds(found, results.metrics))]
    versions = ", ".join(f"{name} {version}" for name, version in document["versions"].items())
    weights = [["source", "SHA-256 of the weights"], *map(list, document["digests"]["weights"].items())]
    lines += ["", "## Settings", "", f"Seed {document['seed']}; {versions}.", "", *markdown_table(weights)]
    return "\n".join(lines) + "\n"


def _photos(found: TargetResults, results: Results) -> str:
    photos = found.target.photos
    split = "training" if results.split == "train" else "validation"
    return f"{len(photos):,} {split} photos of {len(photos.classes)} classes ({found.target.dataset})"


def _table(found: TargetResults, metrics: Metrics) -> list[list[str]]:
    """Give the header and a row for every source, best first."""
    known = found.performances
    header = [
        "source",
        "mean rank",
        *(metric.title for metric in metrics.values()),
        *(["performance"] if known else []),
    ]
    rows = [header]
    for source in found.ranking.sources:
        mean = found.ranking.mean_ranks[source]
        row = [source, "–" if mean is None else f"{mean:.2f}"]
        for metric in metrics:
            rank = found.ranking.ranks.get(metric, {}).get(source)
            row.append(format_number(found.scores[source][metric].value) + ("" if rank is None else f" ({rank:g})"))
        rows.append(row + ([format_number(known.get(source))] if known else []))
    return rows


def _seconds(found: TargetResults, metrics: Metrics) -> list[list[str]]:
    rows = [["source", "features", *(metric.title for metric in metrics.values())]]
    for source in found.ranking.sources:
        seconds = [found.features_seconds[source], *(found.scores[source][metric].seconds for metric in metrics)]
        rows.append([source, *(f"{value:.2f}" for value in seconds)])
    return rows


def _remarks(found: TargetResults, metrics: Metrics) -> list[str]:
    """Say which metrics rank nothing, and why scores are missing."""
    remarks = [
        f"{metric.title} {metric.baseline}: it is the same for all sources, and ranks none."
        for metric in metrics.values()
        if metric.baseline
    ]
    for name, metric in metrics.items():
        by_reason: dict[str, list[str]] = {}
        for source, scores in found.scores.items():
            if scores[name].value is None:
                by_reason.setdefault(scores[name].reason, []).append(source)
        remarks += [f"{metric.title} has no score for {', '.join(s)}: {reason}." for reason, s in by_reason.items()]
    return remarks

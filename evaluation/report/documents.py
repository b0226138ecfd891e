"""Sections of the results of other commands: similarity, transferability, audits, stability."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from headstart.contract.tables.table import metric_titles
from headstart.evaluation.audit.tables import MARKS, ranker_table
from headstart.evaluation.estimates import INTERVAL
from headstart.evaluation.report import answer
from headstart.evaluation.report.folder_contents import Document, FolderContents, damaged
from headstart.evaluation.sources.source_ranking import SATURATED
from headstart.metrics.similarity.catalogue import DEFAULT_MEASURE, SIMILARITY_MEASURES
from headstart.output.page.cells import texts_table
from headstart.output.page.layout import Part, Section, Table
from headstart.output.tables import format_number, format_with_error


def _similarity(path: Path, document: Document) -> Part:
    measure = SIMILARITY_MEASURES[str(document.get("measure", DEFAULT_MEASURE))]
    names, values = document["pairwise"]["names"], document["pairwise"]["biased"]
    items = "layers" if "n_layers" in document else "models"

    rows = [[items, *names]]
    rows += [[name, *(f"{value:.3f}" for value in own)] for name, own in zip(names, values, strict=True)]
    remark = f"{len(names)} {items} on {document['n_stimuli']} stimuli. {path}"
    return Part(f"{measure.title}: {path.parent.name}", remarks=[remark], tables=[texts_table(measure.estimated, rows)])


def _transferability(path: Path, document: Document) -> Part:
    warnings = [
        f"WARNING: The performance of {source} on {target}: {text}"
        for target, by_source in document["performance_warnings"].items()
        for source, text in by_source.items()
    ]
    return Part(remarks=[str(path), *warnings], tables=[_scores(target, document) for target in document["scores"]])


def _scores(target: str, document: Document) -> Table:
    """Return the scores of the sources for one target, the source of the best mean rank first."""
    scores, ranks = document["scores"][target], document["mean_ranks"][target]
    performances, saturated = document.get("performances", {}).get(target), document["saturated"].get(target, {})
    titles = [f"{title}{SATURATED if metric in saturated else ''}" for metric, title in document["titles"].items()]

    rows = [["source", "mean rank", *["performance"] * bool(performances), *titles]]
    for source in sorted(scores, key=lambda source: (ranks.get(source) is None, ranks.get(source))):
        performance = [format_number(performances.get(source))] if performances else []
        metrics = [_score(scores[source][metric]) for metric in document["metrics"]]
        rows.append([source, format_number(ranks.get(source), ".2f"), *performance, *metrics])
    return texts_table(target, rows)


def _score(score: Mapping[str, Any]) -> str:
    if score["score"] is None:
        return str(score["reason"])
    rank = "" if score["rank"] is None else f" ({score['rank']:g})"
    ends = score["interval"]
    return format_with_error(score["score"], (ends[1] - ends[0]) / 2 if ends else None) + rank


def _audit(path: Path, document: Document) -> Part:
    remark = f"{len(document['sources'])} sources, {len(document['targets'])} targets. {path}"
    return Part(remarks=[remark], tables=[texts_table("Rankers", ranker_table(document))])


def _stability(path: Path, document: Document) -> Part:
    remarks = [f"{document['experiments']:,} experiments. {path}"]
    if drawn := document.get("drawn_pools"):
        total = document["all_pools"]
        remarks.append(
            f"Estimates from {drawn:,} pools drawn at random of {total}; after ±: standard error of drawing."
        )
    errors = document.get("standard_error") or {}

    stability, pairs = document["setup_stability"], document["setup_stability_pairs"]
    of_parts = errors.get("setup_stability", {})
    parts = [["varying", "setup stability", "pairs"]]
    for name, value in stability.items():
        parts.append([name, _estimate(value, of_parts.get(name), ".2f"), f"{pairs[name]:,}"])

    rates, of_rates = document["win_rate_percent"], errors.get(f"win_rate_percent_ties_{document.get('ties')}", {})
    measures = list(next(iter(rates.values())))
    wins = [["metric", *(measure.replace("_", " ") for measure in measures)]]
    for title, (name, rate) in zip(metric_titles(list(rates)), rates.items(), strict=True):
        wins.append([title, *(_estimate(rate[each], of_rates.get(name, {}).get(each), ".1f") for each in measures)])
    return Part(remarks=remarks, tables=[texts_table("Setup stability", parts), texts_table("Win rate, %", wins)])


def _estimate(value: float | None, error: float | None, form: str) -> str:
    return format_number(value, form) if error is None else format_with_error(value, error)


# Kind of the documents, title, definition, and the functions that answer and lay out one of them.
SECTIONS: tuple[tuple[str, str, str, Callable[[Document], str], Callable[[Path, Document], Part]], ...] = (
    (
        "similarity",
        "Similarity of representations",
        "1 where two networks arrange the same pictures alike.",
        answer.of_similarity,
        _similarity,
    ),
    (
        "transferability",
        "Transferability",
        "What transferability metrics say of source models before any training; after ±: half the 95 % interval over "
        "photos; in brackets: the rank, 1 being best. A saturated metric has the highest possible score for several "
        "sources, or for one by its number of features, and no part in the mean rank.",
        answer.of_transferability,
        _transferability,
    ),
    (
        "audit",
        "Can the metrics be trusted?",
        "How well transferability metrics predict performance, beside static orders of the sources, which know "
        f"nothing of the target. Mean over targets, {INTERVAL}. {MARKS}.",
        answer.of_audit,
        _audit,
    ),
    (
        "stability",
        "Stability of transferability metrics",
        "How far the evaluation of transferability metrics can be trusted: Kendall's tau-b between rankings of the "
        "metrics that differ in one component of the experiment, and how often each metric wins.",
        answer.of_stability,
        _stability,
    ),
)


def document_sections(contents: FolderContents) -> tuple[list[str], list[Section]]:
    """Return the answers, and a section for each kind of document.

    Args:
        contents: The documents.

    Raises:
        UserError: A document lacks numbers, or has others.
    """
    answers, sections = [], []
    for kind, title, definition, give_answer, lay_out in SECTIONS:
        parts = []
        documents = contents.documents.get(kind, {})
        for index, (path, document) in enumerate(documents.items()):
            try:
                if index < answer.MOST_TOLD:
                    answers.append(f"{path.parent}: " * (len(documents) > 1) + give_answer(document))
                parts.append(lay_out(path, document))
            except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
                raise damaged(path, f"{type(error).__name__}: {error}") from error
        if (more := len(documents) - answer.MOST_TOLD) > 0:
            answers.append(f"{title}: {more} more below.")
        if parts:
            sections.append(Section(kind, title, [definition], parts))
    return answers, sections

"""Sections of the results of other commands: similarity, transferability, audits, stability."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from scipy.cluster.hierarchy import leaves_list

from headstart.contract.tables.table import metric_titles
from headstart.evaluation.alignment.heatmap import cluster
from headstart.evaluation.alignment.scoring import mean_key
from headstart.evaluation.audit.tables import MARKS, ranker_table
from headstart.evaluation.estimates import INTERVAL
from headstart.evaluation.report import answer
from headstart.evaluation.report.folder_contents import Document, FolderContents, damaged
from headstart.evaluation.sources.source_ranking import SATURATED
from headstart.metrics.similarity.catalogue import DEFAULT_MEASURE, SIMILARITY_MEASURES
from headstart.output.page.cells import matrix_columns, number, text, texts_table
from headstart.output.page.layout import Cell, Column, Part, Section, Table
from headstart.output.tables import format_with_error


def _similarity(path: Path, document: Document) -> Part:
    name = str(document.get("measure", DEFAULT_MEASURE))
    measure = SIMILARITY_MEASURES[name]
    names, values = document["pairwise"]["names"], np.array(document["pairwise"]["biased"])

    # Similar networks are neighbours.
    order = leaves_list(cluster(values)) if len(names) > 1 else [0]
    rows = []
    for i in order:
        tints = [round(70 * min(max(values[i, j], 0), 1)) for j in order]
        rows.append([Cell(names[i]), *(Cell(f"{values[i, j]:.3f}", tint=tints[k]) for k, j in enumerate(order))])
    items = "layers" if "n_layers" in document else "models"
    table = Table(measure.estimated, [Column(items), *matrix_columns({names[i]: "" for i in order})], rows)

    kinds = ["biased", "debiased", *["calibrated"] * ("mean_cka_calibrated" in document)]
    means = [f"{kind} {number(document[mean_key(name, kind)], '.4f').text}" for kind in kinds]
    if not measure.has_debiased:
        means = [number(document[mean_key(name, "biased")], ".4f").text]
    team = f"{document['team'].title()} Team, score {document['score']:.6f}. " if "team" in document else ""
    remark = (
        f"{team}Mean over pairs: {', '.join(means)}; {len(names)} {items} on {document['n_stimuli']} stimuli. {path}"
    )
    return Part(f"{measure.title}: {path.parent.name}", "", [remark], [table])


def _transferability(path: Path, document: Document) -> Part:
    warnings = [
        f"WARNING: The performance of {source} on {target}: {text}"
        for target, by_source in document["performance_warnings"].items()
        for source, text in by_source.items()
    ]
    return Part(remarks=[str(path), *warnings], tables=[_scores(target, document) for target in document["scores"]])


def _scores(target: str, document: Document) -> Table:
    scores, ranks = document["scores"][target], document["mean_ranks"][target]
    performances = document.get("performances", {}).get(target, {})
    saturated = document["saturated"].get(target, {})
    titles = [f"{title}{SATURATED if metric in saturated else ''}" for metric, title in document["titles"].items()]

    metrics = [Column(title, is_extra=True) for title in titles]
    columns = [Column("source"), Column("mean rank"), *metrics, *[Column("performance")] * bool(performances)]
    by_rank = sorted(scores, key=lambda source: (ranks.get(source) is None, ranks.get(source)))
    rows = [
        [
            Cell(source),
            number(ranks.get(source), ".2f"),
            *(_score(scores[source][metric]) for metric in document["metrics"]),
            *[number(performances.get(source))] * bool(performances),
        ]
        for source in by_rank
    ]
    return Table(target, columns, rows)


def _score(score: Mapping[str, Any]) -> Cell:
    if score["score"] is None:
        return text(score["reason"])
    rank = "" if score["rank"] is None else f" ({score['rank']:g})"
    ends = score["interval"]
    half = (ends[1] - ends[0]) / 2 if ends else None
    return Cell(f"{format_with_error(score['score'], half)}{rank}")


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
    return Part(remarks=remarks, tables=[_setup_stability(document), _win_rates(document)])


def _setup_stability(document: Document) -> Table:
    stability, pairs = document["setup_stability"], document["setup_stability_pairs"]
    errors = (document.get("standard_error") or {}).get("setup_stability", {})
    rows = [
        [Cell(name), _estimate(stability[name], ".2f", errors.get(name), ".4f"), number(pairs[name], ",.0f")]
        for name in stability
    ]
    return Table("Setup stability", [*map(Column, ("varying", "setup stability", "pairs"))], rows)


def _win_rates(document: Document) -> Table:
    rates = document["win_rate_percent"]
    measures = list(next(iter(rates.values())))
    columns = ["metric", *(measure.replace("_", " ") for measure in measures)]
    errors = (document.get("standard_error") or {}).get(f"win_rate_percent_ties_{document.get('ties')}", {})
    rows = [
        [Cell(title), *(_estimate(rate[each], ".1f", errors.get(name, {}).get(each), ".2f") for each in measures)]
        for title, (name, rate) in zip(metric_titles(list(rates)), rates.items(), strict=True)
    ]
    return Table("Win rate, %", [*map(Column, columns)], rows)


def _estimate(value: float | None, form: str, error: float | None, error_form: str) -> Cell:
    """Return a value with its standard error, if it has one."""
    cell = number(value, form)
    return cell if error is None else Cell(f"{cell.text} ± {error:{error_form}}")


# Kind of the documents, title, definition, and the functions that answer and lay out one of them.
SECTIONS: tuple[tuple[str, str, str, Callable[[Document], str], Callable[[Path, Document], Part]], ...] = (
    (
        "similarity",
        "Similarity of representations",
        "1 where two networks arrange the same pictures alike. Rows and columns are in the order of a hierarchical "
        "clustering; the stronger the colour, the more alike.",
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
        found = contents.documents.get(kind, {})
        for index, (path, document) in enumerate(found.items()):
            try:
                if index < answer.MOST_TOLD:
                    answers.append(f"{path.parent}: " * (len(found) > 1) + give_answer(document))
                parts.append(lay_out(path, document))
            except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
                raise damaged(path, f"{type(error).__name__}: {error}") from error
        if (more := len(found) - answer.MOST_TOLD) > 0:
            answers.append(f"{title}: {more} more below.")
        if parts:
            sections.append(Section(kind, title, [definition], parts))
    return answers, sections

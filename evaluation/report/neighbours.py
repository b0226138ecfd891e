"""Results of other commands that lie in the folders: similarity, transferability, audits, stability."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from scipy.cluster.hierarchy import leaves_list

from headstart.evaluation.alignment.heatmap import cluster
from headstart.evaluation.alignment.scoring import mean_key
from headstart.evaluation.audit.report import ranker_table
from headstart.evaluation.report.material import Document, damaged
from headstart.evaluation.stability.table import metric_titles
from headstart.metrics.similarity.catalogue import DEFAULT_MEASURE, SIMILARITY_MEASURES
from headstart.metrics.transferability.catalogue import METRICS
from headstart.output.page.cells import number, text
from headstart.output.page.layout import Cell, Column, Part, Section, Table

Documents = Mapping[Path, Document]


def similarity(documents: Documents) -> Section | None:
    """Give the matrices of similarity; None where there are none."""
    about = (
        "1 where two networks arrange the same pictures alike. Rows and columns are in the order of a hierarchical "
        "clustering; the stronger the colour, the more alike."
    )
    return _section(documents, "similarity", "Similarity of representations", about, _matrix)


def _section(
    documents: Documents, name: str, title: str, about: str, show: Callable[[Path, Document], Part]
) -> Section | None:
    """Lay out documents of one kind; None where there are none."""
    return Section(name, title, [about], _parts(documents, show)) if documents else None


def _parts(documents: Documents, show: Callable[[Path, Document], Part]) -> list[Part]:
    """Show documents; one whose numbers are not there, or of another kind, is named."""
    parts = []
    for path, document in documents.items():
        try:
            parts.append(show(path, document))
        except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
            raise damaged(path, f"{type(error).__name__}: {error}") from error
    return parts


def _matrix(path: Path, document: Document) -> Part:
    name = str(document.get("measure", DEFAULT_MEASURE))
    measure = SIMILARITY_MEASURES[name]
    names, values = document["pairwise"]["names"], np.array(document["pairwise"]["biased"])
    order = leaves_list(cluster(values)) if len(names) > 1 else [0]
    rows = [[Cell(names[i]), *(Cell(f"{values[i, j]:.3f}", tint=_tint(values[i, j])) for j in order)] for i in order]
    kinds = ["biased", "debiased", *["calibrated"] * ("mean_cka_calibrated" in document)]
    means = [f"{kind} {number(document[mean_key(name, kind)], '.4f').text}" for kind in kinds]
    if not measure.has_debiased:
        means = [number(document[mean_key(name, "biased")], ".4f").text]
    what = "layers" if "n_layers" in document else "models"
    team = f"{document['team'].title()} Team, score {document['score']:.6f}. " if "team" in document else ""
    remark = (
        f"{team}Mean over pairs: {', '.join(means)}; {len(names)} {what} on {document['n_stimuli']} stimuli. {path}"
    )
    table = Table(measure.estimated, [Column(what), *(Column(names[i]) for i in order)], rows)
    return Part(f"{measure.title}: {path.parent.name}", "", [remark], [table])


def _tint(value: float) -> int:
    return round(70 * min(max(value, 0), 1))


def transferability(documents: Documents) -> Section | None:
    """Give the scores of sources by the metrics, best mean rank first; None where there are none."""
    about = (
        "What transferability metrics say of source models before any training; after ±: half the 95 % interval over "
        "photos; in brackets: the rank, 1 being best."
    )
    return _section(documents, "transferability", "Transferability", about, _targets)


def _targets(path: Path, document: Document) -> Part:
    return Part("", "", [str(path)], [_scores(target, document) for target in document["scores"]])


def _scores(target: str, document: Document) -> Table:
    scores, ranks = document["scores"][target], document["mean_ranks"][target]
    performances = document.get("performances", {}).get(target, {})
    titles = [METRICS[metric].title if metric in METRICS else metric for metric in document["metrics"]]
    columns = [
        Column("source"),
        Column("mean rank"),
        *map(Column, titles),
        *([Column("performance")] if performances else []),
    ]
    by_rank = sorted(scores, key=lambda source: (ranks.get(source) is None, ranks.get(source)))
    rows = [
        [
            Cell(source),
            number(ranks.get(source), ".2f"),
            *(_score(scores[source][metric]) for metric in document["metrics"]),
            *([number(performances.get(source))] if performances else []),
        ]
        for source in by_rank
    ]
    return Table(target, columns, rows)


def _score(found: Mapping[str, Any]) -> Cell:
    if found["score"] is None:
        return text(found["reason"])
    rank = "" if found["rank"] is None else f" ({found['rank']:g})"
    # Documents of earlier versions have no intervals.
    ends = found.get("interval")
    half = f" ± {(ends[1] - ends[0]) / 2:.2g}" if ends else ""
    return Cell(f"{found['score']:.4g}{half}{rank}")


def audits(documents: Documents) -> Section | None:
    """Give how well metrics and static orders foretell performance; None where there are no audits."""
    about = (
        "How well transferability metrics foretell performance, beside static orders of the sources, which know "
        "nothing of the target. Mean over targets, in brackets its 95 % t interval over targets."
    )
    return _section(documents, "audit", "Can the metrics be trusted?", about, _audit)


def _audit(path: Path, document: Document) -> Part:
    header, *rows = ranker_table(document)
    told = f"{len(document['sources'])} sources, {len(document['targets'])} targets. {path}"
    return Part("", "", [told], [Table("Rankers", [*map(Column, header)], [[*map(Cell, row)] for row in rows])])


def stability(documents: Documents) -> Section | None:
    """Give the setup stability and the win rates of transferability metrics; None where there are none."""
    about = (
        "How far the evaluation of transferability metrics can be trusted: Kendall's tau-b between rankings of the "
        "metrics that differ in one component of the experiment, and how often each metric wins."
    )
    return _section(documents, "stability", "Stability of transferability metrics", about, _study)


def _study(path: Path, document: Document) -> Part:
    told = f"{document['experiments']:,} experiments. {path}"
    return Part("", "", [told], [_stability(document), _win_rates(document)])


def _stability(document: Document) -> Table:
    columns = [Column("varying"), Column("setup stability"), Column("pairs")]
    pairs = document["setup_stability_pairs"]
    rows = [
        [Cell(name), number(value, ".2f"), number(pairs[name], ",.0f")]
        for name, value in document["setup_stability"].items()
    ]
    return Table("Setup stability", columns, rows)


def _win_rates(document: Document) -> Table:
    rates = document["win_rate_percent"]
    measures = list(next(iter(rates.values())))
    columns = [Column("metric"), *(Column(measure.replace("_", " ")) for measure in measures)]
    rows = [
        [Cell(title), *(number(found[measure], ".1f") for measure in measures)]
        for title, found in zip(metric_titles(list(rates)), rates.values(), strict=True)
    ]
    return Table("Win rate, %", columns, rows)

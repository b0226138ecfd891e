"""Results of other commands in folders, and their sections: similarity, transferability, audits, stability."""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from headstart.contract.tables.table import metric_titles
from headstart.evaluation.audit.tables import ranker_table
from headstart.evaluation.report import answer
from headstart.evaluation.runs import is_run
from headstart.evaluation.sources.source_ranking import SATURATED
from headstart.evaluation.stored_traces import is_ledger
from headstart.metrics.similarity.catalogue import DEFAULT_MEASURE, SIMILARITY_MEASURES
from headstart.output.errors import UserError, reason_of
from headstart.output.page.layout import Part, Section
from headstart.output.tables import Table, format_number, format_with_error

Document = Mapping[str, Any]
SIMILARITY = ("cka.json", "score.json", *(f"{name}.json" for name in SIMILARITY_MEASURES if name != DEFAULT_MEASURE))


def _similarity(path: Path, document: Document) -> Part:
    measure = SIMILARITY_MEASURES[str(document.get("measure", DEFAULT_MEASURE))]
    names, values = document["pairwise"]["names"], document["pairwise"]["biased"]
    items = "layers" if "n_layers" in document else "models"

    rows = [[items, *names]]
    rows += [[name, *(f"{value:.3f}" for value in own)] for name, own in zip(names, values, strict=True)]
    remark = f"{len(names)} {items} on {document['n_stimuli']} stimuli. {path}"
    return Part(f"{measure.title}: {path.parent.name}", remarks=[remark], tables=[Table(measure.biased_title, rows)])


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
    return Table(target, rows)


def _score(score: Mapping[str, Any]) -> str:
    if score["score"] is None:
        return str(score["reason"])
    rank = "" if score["rank"] is None else f" ({score['rank']:g})"
    ends = score["interval"]
    return format_with_error(score["score"], (ends[1] - ends[0]) / 2 if ends else None) + rank


def _audit(path: Path, document: Document) -> Part:
    remark = f"{len(document['sources'])} sources, {len(document['targets'])} targets. {path}"
    return Part(remarks=[remark], tables=[Table("Rankers", ranker_table(document))])


def _stability(path: Path, document: Document) -> Part:
    remark = f"{document['experiments']:,} experiments. {path}"
    if drawn := document.get("drawn_pools"):
        total = document["all_pools"]
        remark += f" Estimates from {drawn:,} pools drawn at random of {total}; after ±: standard error of drawing."
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
        of_metric = of_rates.get(name, {})
        wins.append([title, *(_estimate(rate[measure], of_metric.get(measure), ".1f") for measure in measures)])
    return Part(remarks=[remark], tables=[Table("Setup stability", parts), Table("Win rate, %", wins)])


def _estimate(value: float | None, error: float | None, form: str) -> str:
    return format_number(value, form) if error is None else format_with_error(value, error)


class Kind(NamedTuple):
    """A kind of documents.

    Attributes:
        files: Names of their files.
        title: Title of their section.
        answer: Returns what one of them says first.
        lay_out: Returns one of them as a part of the section.
    """

    files: Sequence[str]
    title: str
    answer: Callable[[Document], str]
    lay_out: Callable[[Path, Document], Part]


KINDS = {
    "similarity": Kind(SIMILARITY, "Similarity of representations", answer.of_similarity, _similarity),
    "transferability": Kind(["transferability.json"], "Transferability", answer.of_transferability, _transferability),
    "audit": Kind(["audit.json"], "Can the metrics be trusted?", answer.of_audit, _audit),
    "stability": Kind(["stability.json"], "Stability of transferability metrics", answer.of_stability, _stability),
}


@dataclass
class FolderContents:
    """Contents of folders.

    Attributes:
        has_traces: Whether there is a run or a ledger.
        answers: What the results of other commands say first.
        sections: A section for each kind of such results.
        skipped: Files with the names of such results that cannot be shown, each with the reason.
    """

    has_traces: bool
    answers: list[str]
    sections: list[Section]
    skipped: list[str]


def find_contents(folders: Sequence[str]) -> FolderContents:
    """Find the runs, ledgers and results of other commands below folders, in each in the order of the names.

    Args:
        folders: The folders; files are ignored, because the shell may have expanded a pattern to them.

    Raises:
        UserError: A folder does not exist, or there is nothing in them that a page shows.
    """
    for folder in folders:
        if not Path(folder).exists():
            raise UserError(f"folder: there is no folder {folder!r}; give one that holds runs")

    contents = FolderContents(False, [], [], [])
    paths: dict[Path, None] = {}
    for folder, below, names in chain.from_iterable(map(os.walk, folders)):
        below.sort()
        contents.has_traces |= is_run(Path(folder), names) or is_ledger(Path(folder))
        paths |= dict.fromkeys(Path(folder, name) for name in sorted(names))

    for kind, its in KINDS.items():
        _add_section(contents, kind, [path for path in paths if path.name in its.files])
    if not (contents.has_traces or contents.sections):
        searched = f"{', '.join(map(repr, folders))} {'holds' if len(folders) == 1 else 'hold'}"
        skipped = "".join(f"; {reason}" for reason in contents.skipped)
        raise UserError(
            f"folder: {searched} no run of headstart train, no ledger, and no results of cka, transferability, "
            f"audit or stability{skipped}"
        )
    return contents


def _add_section(contents: FolderContents, kind: str, paths: Sequence[Path]) -> None:
    """Add the answers and the section of the results of one kind, without those that cannot be shown."""
    _, title, give_answer, lay_out = KINDS[kind]
    answers, parts = [], []
    for path in paths:
        try:
            document = json.loads(path.read_text(encoding="utf-8"))
            part, own_answer = lay_out(path, document), give_answer(document)
        except (AttributeError, IndexError, KeyError, OSError, TypeError, ValueError) as error:
            contents.skipped.append(f"{str(path)!r} cannot be shown ({type(error).__name__}: {reason_of(error)})")
            continue
        parts.append(part)
        answers.append((path, own_answer))

    shown = answers[: answer.MOST_TOLD]
    contents.answers += [f"{path.parent}: " * (len(answers) > 1) + sentence for path, sentence in shown]
    if len(answers) > len(shown):
        contents.answers.append(f"{title}: {len(answers) - len(shown)} more below.")
    if parts:
        contents.sections.append(Section(kind, title, parts=parts))

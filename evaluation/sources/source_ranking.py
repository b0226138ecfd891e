"""The report on ranked sources, with the metrics side by side; parts of it are shared with reports on targets."""

from collections.abc import Mapping, Sequence

import numpy as np

from headstart.contract.tables.grouping import grouped
from headstart.evaluation.sources.results import RankedSources, ScoredCandidates
from headstart.evaluation.sources.targets import SPLITS, Target
from headstart.output.markup import escape_markdown, escape_names
from headstart.output.printable import print_lines
from headstart.output.tables import format_number, markdown_table, print_table

# After the title of a saturated metric.
SATURATED = " (saturated)"


def ranked_table(
    results: ScoredCandidates,
    kind: str,
    columns: Mapping[str, Mapping[str, str]] | None = None,
    form: str = ".2f",
    letters: Mapping[str, Mapping[str, str]] | None = None,
) -> list[list[str]]:
    """Tabulate candidates by their mean rank, with the score and the rank by every metric.

    Args:
        results: The scores of the candidates.
        kind: Kind of the candidates.
        columns: Other columns, by title and candidate.
        form: Format of the mean rank.
        letters: Letters of the groups that a candidate is in, by metric and candidate.

    Returns:
        The header, and a row for every candidate, best first.
    """
    columns, letters = columns or {}, letters or {}
    performances, ranking = results.performances, results.ranking
    saturated = results.saturated
    titles = [metric.title + SATURATED * (name in saturated) for name, metric in results.metrics.items()]
    rows = [[kind, *columns, "mean rank", *titles, *(["performance"] if performances else [])]]

    for name in ranking.names:
        row = [name, *(cells[name] for cells in columns.values()), format_number(ranking.mean_ranks[name], form)]
        for metric, score in results.scores[name].items():
            rank, letter = ranking.ranks.get(metric, {}).get(name), letters.get(metric, {}).get(name, "")
            in_brackets = "" if rank is None else f" ({rank:g})"
            row.append(f"{score.shown}{in_brackets} {letter}".rstrip())
        rows.append(row + ([format_number(performances.get(name))] if performances else []))
    return rows


def shared_remarks(results: ScoredCandidates, kind: str, target: Target, baselines: Mapping[str, str]) -> list[str]:
    """Return the remarks of both reports: on performances, photos, baselines, and metrics that do not count.

    Args:
        results: The scores of the candidates.
        kind: Kind of the candidates, in the plural.
        target: The target, or the data set that targets are made of.
        baselines: What a baseline does here, by the data that it takes.
    """
    remarks = [f"WARNING: The performance of {name}: {warning}" for name, warning in results.warnings.items()]
    remarks += target.remarks()
    remarks += [
        f"{metric.title} {metric.baseline}{effect}"
        for data, effect in baselines.items()
        for metric in results.metrics.values()
        if metric.baseline and data in metric.data
    ]

    for metric, names in results.saturated.items():
        entry, have = results.metrics[metric], "have" if len(names) > 1 else "has"
        every = all(results.scores[name][metric].at_bound for name in names)
        parts = "" if every else f", or {have} it whichever part of the photos is left out"
        them, why = "them", ""
        if entry.features_reach_bound:
            them, why = f"the {kind}", ": many features reach that score, whatever the labels"
        remarks.append(
            f"{entry.title} is saturated: {len(names)} of {len(results.scores)} {kind} {have} the highest possible "
            f"score{parts}. It does not show which of {them} is best, and does not count in the mean rank{why}."
        )
    return remarks


def print_source_ranking(results: Sequence[RankedSources]) -> None:
    """Print the sources of every target, ranked, and why scores are missing."""
    for ranked in results:
        print_table(f"{ranked.target.name}: {_photos(ranked)}", _table(ranked))
        print_lines(_remarks(ranked))
    print_lines([_legend(results)])
    for ranked in results:
        print_lines(f"{ranked.target.name}: {line}" for line in _conclusion(ranked))


def source_report(results: Sequence[RankedSources]) -> str:
    """Write the report in Markdown."""
    lines = ["# Transferability", "", escape_markdown(_legend(results))]
    for ranked in results:
        lines += ["", f"## {escape_markdown(ranked.target.name)}", "", f"{escape_markdown(_photos(ranked))}.", ""]
        lines += [*(f"{escape_markdown(line)}  " for line in _conclusion(ranked)), ""]
        lines += [*markdown_table(escape_names(_table(ranked))), ""]
        lines += [f"- {escape_markdown(line)}" for line in _remarks(ranked)]
    return "\n".join(lines) + "\n"


def _table(ranked: RankedSources) -> list[list[str]]:
    letters = {metric: certainty.letters for metric, certainty in ranked.certainties.items()}
    return ranked_table(ranked, "source", letters=letters)


def _legend(results: Sequence[RankedSources]) -> str:
    lower = [metric.title for metric in results[0].metrics.values() if not metric.higher_is_better]
    but = f", except for {', '.join(lower)}" if lower else ""
    legend = (
        f"Higher scores are better{but}. In brackets: the rank; 1 is the best. The mean rank is over the metrics "
        "that rank all sources and are not saturated."
    )
    if not any(ranked.certainties for ranked in results):
        return legend
    return (
        f"{legend} ± is half the 95 % interval over other photos of these classes, and over random starts. Sources "
        "that share a letter do not differ significantly on these photos (all pairs at 5 %, adjusted by Holm)."
    )


def _conclusion(ranked: RankedSources) -> list[str]:
    """Return sentences: which source is first, and by how many metrics it is significantly better than the others.

    None where no metric ranks the sources.
    """
    first, *others = ranked.ranking.names
    means = ranked.ranking.mean_ranks
    if means[first] is None or not others:
        return []
    alike = [name for name in others if means[name] == means[first]]
    lines = [f"First by mean rank: {', '.join([first, *alike])}{', alike' if alike else ''}."]

    ranked_by = [name for name in ranked.ranking.ranks if not ranked.metrics[name].baseline]
    tested = [ranked.certainties[name] for name in ranked_by if name in ranked.certainties]
    same = []
    for other in others if tested else []:
        signs = [certainty.compare(first, other) for certainty in tested]
        better, worse = signs.count(1), signs.count(-1)
        if better or worse:
            metrics = f"{better} of {len(ranked_by)} metrics" + f", and worse under {worse}" * bool(worse)
            lines.append(f"{first} is significantly better than {other} under {metrics}.")
        else:
            same.append(other)
    if same:
        lines.append(f"No metric shows a significant difference between {first} and {', '.join(same)}.")
    return lines


def _photos(ranked: RankedSources) -> str:
    target, photos = ranked.target, ranked.target.photos
    return f"{len(photos):,} {SPLITS[target.split]} photos of {len(photos.classes)} classes ({target.dataset})"


def _remarks(ranked: RankedSources) -> list[str]:
    """Return remarks on performances, repeated photos, metrics that rank nothing, and missing scores and intervals."""
    baselines = {
        "labels": ": it is the same for all sources, and ranks none.",
        "facts": ", whatever the target: a baseline, which does not count in the mean rank.",
    }
    remarks = shared_remarks(ranked, "sources", ranked.target, baselines)
    photos = ranked.target.photos
    if photos.maps is None and np.bincount(photos.labels).max() == 1:
        remarks.append("There are no intervals: every class has a single photo, and none can be left out.")

    for name, metric in ranked.metrics.items():
        for reason, sources in ranked.missing(name).items():
            remarks.append(f"{metric.title} has no score for {', '.join(sources)}: {reason}.")
        without = [(scores[name].uncertain, source) for source, scores in ranked.scores.items()]
        for reason, sources in grouped(pair for pair in without if pair[0]).items():
            remarks.append(f"{metric.title} has no interval for {', '.join(sources)}: {reason}.")
    return remarks

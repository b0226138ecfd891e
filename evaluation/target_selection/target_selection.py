"""`headstart target-selection`: which of many targets one source model is expected to transfer to best."""

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np
from jsonargparse.typing import PositiveInt
from numpy.typing import NDArray

from headstart.contract.documents import read_registry, registry_path
from headstart.contract.tables.csv_tables import SCORE_COLUMNS
from headstart.datamodules.photos import import_photo_sources
from headstart.datamodules.photos.photo_source import PhotoSource
from headstart.evaluation.embeddings import networks_of
from headstart.evaluation.sources.metric_names import SELECTION_METRICS, MetricName, find_metrics
from headstart.evaluation.sources.results import ScoredCandidates
from headstart.evaluation.sources.scores import score_targets
from headstart.evaluation.sources.scoring_results import REPORT, ScoringResults
from headstart.evaluation.sources.source_features import source_facts, source_features, source_job
from headstart.evaluation.sources.source_ranking import ranked_table, shared_remarks
from headstart.evaluation.sources.targets import Split, Target, read_target
from headstart.metrics.ranking.ranking_measures import kendall
from headstart.metrics.transferability.inputs import ClassShare, Inputs, sample_targets
from headstart.output.errors import UserError
from headstart.output.markup import escape_markdown, escape_names
from headstart.output.printable import print_lines
from headstart.output.seeds import Seed
from headstart.output.tables import format_number, markdown_report, print_table
from headstart.store.cache import cache_folder

import_photo_sources()

PRINTED_TARGETS = 10
LEGEND = (
    "Higher scores are better; NumC has its sign reversed, so that fewer classes are better. In brackets: the rank; 1 "
    "is the best. The mean rank is over the metrics that rank all targets and are not saturated, but for NumC."
)
TAU = "tau with NumC"
TAU_LEGEND = (
    "tau with NumC: Kendall's tau-b between the ranking of the targets by the metric and that by the number of their "
    "classes alone, fewer first; 1 says that both rankings are the same."
)
# Agostinelli et al., How stable are Transferability Metrics evaluations?, ECCV 2022, section 7 and table 4.
VARYING_WARNING = (
    "Warning: the targets have from {least} to {most} classes. Fewer classes make an easier target, so that counting "
    "them predicts performance about as well as the best metrics do: weighted Kendall 0.87 against 0.90 on average in "
    "Agostinelli et al. (ECCV 2022), table 4a. Such a pool rewards a metric for a bias toward few classes, and is not "
    "fit to compare metrics; they advise a fixed number of classes (section 7): --class_share=half."
)


def target_selection(
    source: str,
    dataset: PhotoSource,
    targets: PositiveInt = 100,
    class_share: ClassShare = "half",
    metrics: list[MetricName] | None = None,
    registry: str | None = None,
    split: Split = "train",
    seed: Seed = 0,
    **options: Any,
) -> dict[str, Any]:
    """Score how well one source model is expected to transfer to targets made of classes of one data set.

    Writes scores.csv (the plain table), targets.json (the classes of each target) and report.md, and prints the report.

    Args:
        source: Source model of the registry.
        dataset: The large data set whose classes are sampled, a source of photos.
        targets: How many targets are sampled.
        class_share: Number of classes of a target: always `half` of them, or `varying`, uniformly from 2 % to 100 %.
            With `varying`, the number of classes alone predicts nearly as much as any metric.
        metrics: Names of metrics, or import paths of functions of your own. Options are written as in '[gbc, {gbc:
            {variant: released}}]'. By default those of `transferability` except `n_leep`, `knn`, `parc` and `sfda`,
            which take longer.
        registry: Model registry; by default the file in HACKATHON_MODEL_REGISTRY, else configs/model_registry.json.
        split: Which photos of the data set are used.
        seed: Seed of the targets, and of the metrics that sample.
        **options: Options of `ScoringResults`.

    Returns:
        The content of targets.json.
    """
    start = time.perf_counter()
    results = ScoringResults(default="runs/target_selection", document="targets.json", **options)
    extraction = results.extraction
    registered = read_registry(registry_path(registry))
    registered.require("source", [source])
    used_metrics = find_metrics(SELECTION_METRICS if metrics is None else metrics)
    if comparing := [name for name, metric in used_metrics.items() if metric.combine is not None]:
        raise UserError(f"metrics: {', '.join(comparing)} compare sources, and here there is one; leave them out")

    whole = read_target("dataset", dataset, split, cache_folder(extraction.cache_dir), "dataset", seed)
    names, sizes = whole.photos.classes, np.bincount(whole.photos.labels, minlength=len(whole.photos.classes))
    try:
        pool = sample_targets(len(names), targets, class_share, seed)
    except ValueError as error:
        raise UserError(f"dataset: {error}") from error
    described: dict[str, dict[str, Any]] = {
        f"{dataset.name}-{number:0{len(str(targets))}d}": {
            "classes": [names[label] for label in classes],
            "photos": int(sizes[classes].sum()),
        }
        for number, classes in enumerate(pool, 1)
    }

    settings = {
        "source": source,
        "dataset": dataset.name,
        "split": split,
        "class_share": class_share,
        "seed": seed,
        "metrics": list(used_metrics),
    }
    networks = networks_of([source], registered, extraction)
    photos = {"photos": whole.fingerprint}
    results.check_sources(registered, networks, used_metrics, {**settings, "targets": described}, photos)

    features = source_features(source_job(registered.entries[source], networks[source], whole, extraction), whole)
    facts = source_facts(networks, used_metrics)[source]
    inputs = Inputs(features.features, features.labels, features.logits, seed, facts)
    scores = dict(zip(described, score_targets(inputs, pool, used_metrics), strict=True))
    photos_of = [target["photos"] for target in described.values()]
    ranked = RankedTargets(used_metrics, scores, {}, pool, photos_of, whole)

    digests = {**results.digests, "weights": features.weights}
    config = {**settings, "extraction": asdict(extraction), "digests": digests}
    summary = {
        "titles": {name: metric.title for name, metric in used_metrics.items()},
        "kendall_with_num_classes": ranked.kendall_with_num_classes(),
        "saturated": ranked.saturated,
        "repeated_photos": whole.repeated,
        "total_seconds": time.perf_counter() - start,
    }
    document = {**config, **summary, "targets": described}
    table = SCORE_COLUMNS, [row[: len(SCORE_COLUMNS)] for row in ranked.rows(source=source)]
    results.write(document, {"scores": table}, {REPORT: target_report(ranked, document)})

    print_target_ranking(ranked)
    results.print_written()
    title = f"target selection, {source}, {len(pool)} targets of {dataset.name}"
    results.publish("target-selection", title, config, summary, {"scores": table})
    return document


@dataclass(frozen=True)
class RankedTargets(ScoredCandidates):
    """The targets of a pool with their scores.

    Attributes:
        classes: Classes of each target as indices, ascending.
        photos: Number of photos of each target.
        dataset: The data set that they are made of.
    """

    classes: Sequence[NDArray[np.int64]]
    photos: Sequence[int]
    dataset: Target

    @cached_property
    def sizes(self) -> list[int]:
        """Number of classes of each target."""
        return [len(classes) for classes in self.classes]

    @property
    def repeated(self) -> int:
        """Number of targets that have the same classes as an earlier one."""
        return len(self.classes) - len({tuple(classes.tolist()) for classes in self.classes})

    def kendall_with_num_classes(self) -> dict[str, float | None]:
        """Correlate the ranking of the targets by every metric with that by NumC, fewer classes first.

        Kendall's tau-b by metric; None where the metric or NumC ranks nothing.
        """
        num_classes = [-float(size) for size in self.sizes]
        measured: dict[str, float | None] = dict.fromkeys(self.metrics)
        # A metric that ranks nothing would be measured by its rounding errors.
        for metric in self.ranking.ranks:
            values = [score for scores in self.scores.values() if (score := scores[metric].value) is not None]
            tau = kendall(values, num_classes)
            measured[metric] = tau if math.isfinite(tau) else None
        return measured


def print_target_ranking(results: RankedTargets) -> None:
    """Print the metrics, the targets that rank first, and the warnings."""
    more = len(results.scores) - PRINTED_TARGETS
    print_table("metrics", _metric_table(results))
    title = f"targets by mean rank{f'; {more} more are in report.md' if more > 0 else ''}"
    print_table(title, _target_table(results)[: PRINTED_TARGETS + 1])
    print_lines([LEGEND, TAU_LEGEND, *_remarks(results)])


def target_report(results: RankedTargets, document: Mapping[str, Any]) -> str:
    """Write the report in Markdown; the document is the content of `targets.json`."""
    settings = (
        f"{len(results.scores)} targets of classes of {document['dataset']} ({document['split']} photos, class share "
        f"{document['class_share']}, seed {document['seed']}); source model {document['source']}."
    )
    about = f"{escape_markdown(settings)}\n\n{LEGEND} {TAU_LEGEND}"
    tables = {"Metrics": _metric_table(results), "Targets": _target_table(results)}
    escaped = [(title, "", escape_names(rows)) for title, rows in tables.items()]
    return markdown_report("Target selection", about, _remarks(results), escaped)


def _metric_table(results: RankedTargets) -> list[list[str]]:
    """Tabulate the metrics: the targets they rank first and last, their correlation with NumC, and their time."""
    with_num_classes = results.kendall_with_num_classes()
    rows = [["metric", "best target", "worst target", TAU, "seconds for all targets"]]
    for name, metric in results.metrics.items():
        ranks = results.ranking.ranks.get(name)
        ends = ["–", "–"] if ranks is None else [min(ranks, key=ranks.__getitem__), max(ranks, key=ranks.__getitem__)]
        seconds = sum(scores[name].seconds for scores in results.scores.values())
        rows.append([metric.title, *ends, format_number(with_num_classes[name], ".3f"), f"{seconds:.2f}"])
    return rows


def _target_table(results: RankedTargets) -> list[list[str]]:
    """Tabulate the targets by their mean rank."""
    numbers = {"classes": results.sizes, "photos": results.photos}
    columns = {title: dict(zip(results.scores, map(str, values), strict=True)) for title, values in numbers.items()}
    return ranked_table(results, "target", columns, ".1f")


def _remarks(results: RankedTargets) -> list[str]:
    """Return warnings about the pool, and the reasons for missing scores."""
    least, most = min(results.sizes), max(results.sizes)
    varying = VARYING_WARNING.format(least=least, most=most)
    lines = [varying if least < most else f"All targets have {least} classes, so NumC cannot rank them."]
    if results.repeated:
        lines.append(
            f"Warning: {results.repeated} of {len(results.scores)} targets have the same classes as an earlier one; "
            "the data set has too few classes for that many different targets."
        )
    baselines = {"facts": ": it is the same for all targets, and ranks none."}
    lines += shared_remarks(results, "targets", results.dataset, baselines)
    for name, metric in results.metrics.items():
        if reasons := results.missing(name):
            count = sum(map(len, reasons.values()))
            lines.append(f"{metric.title} has no score for {count} targets: {'; '.join(reasons)}.")
    return lines

"""`headstart target-selection`: which of many targets one source model is expected to transfer to best."""

import time
from dataclasses import asdict
from typing import Any

import numpy as np
from jsonargparse.typing import PositiveInt

from headstart.contract.documents import read_registry, registry_path
from headstart.contract.tables.csv_tables import SCORE_COLUMNS, read_performances
from headstart.datamodules import import_photo_sources
from headstart.datamodules.photos.photo_source import PhotoSource
from headstart.evaluation.embeddings import networks_of
from headstart.evaluation.sources.metric_names import SELECTION_METRICS, MetricName, find_metrics
from headstart.evaluation.sources.scores import score_targets
from headstart.evaluation.sources.scoring_results import REPORT, ScoringResults
from headstart.evaluation.sources.source_features import source_facts, source_features, source_job
from headstart.evaluation.sources.targets import Split, read_target
from headstart.evaluation.target_selection.target_ranking import RankedTargets, print_target_ranking, target_report
from headstart.metrics.transferability.inputs import ClassShare, Inputs, sample_targets
from headstart.output.errors import UserError
from headstart.output.seeds import Seed
from headstart.store.cache import cache_folder

import_photo_sources()


def target_selection(
    source: str,
    dataset: PhotoSource,
    targets: PositiveInt = 100,
    class_share: ClassShare = "half",
    metrics: list[MetricName] | None = None,
    registry: str | None = None,
    split: Split = "train",
    performances: str | None = None,
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
        performances: CSV file with the columns source, target and performance, for the table's last column. If it has
            all targets, the report says how well every metric predicts them.
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
    performed = read_performances(performances, [source], described)

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
    reached = {name: value for (_, name), value in performed.values.items()}
    warnings = {name: warning for (_, name), warning in performed.warnings.items()}
    photos_of = [each["photos"] for each in described.values()]
    ranked = RankedTargets(used_metrics, scores, reached, pool, photos_of, whole, warnings=warnings)

    digests = {**results.digests, "weights": features.weights}
    config = {**settings, "extraction": asdict(extraction), "digests": digests}
    summary = {
        "titles": {name: metric.title for name, metric in used_metrics.items()},
        "kendall_with_num_classes": ranked.kendall_with_num_classes(),
        "measures": ranked.measures(),
        "saturated": ranked.saturated,
        "performance_warnings": warnings,
        "repeated_photos": whole.repeated,
        "total_seconds": time.perf_counter() - start,
    }
    document = {**config, **summary, "targets": described}
    table = SCORE_COLUMNS, [row[: len(SCORE_COLUMNS)] for row in ranked.rows(source=source)]
    results.write(document, {"scores": table}, {REPORT: target_report(ranked, document)})

    print_target_ranking(ranked)
    results.print_written()
    target_rows = [[name, ", ".join(each["classes"]), each["photos"]] for name, each in described.items()]
    measures = [[metric, name, value] for name, of in ranked.measures().items() for metric, value in of.items()]
    tables = {
        "scores": table,
        "targets": (("target", "classes", "photos"), target_rows),
        "metrics": (("metric", "measure", "value"), measures),
    }
    title = f"target selection, {source}, {len(pool)} targets of {dataset.name}"
    results.publish("target-selection", title, config, summary, tables)
    return document

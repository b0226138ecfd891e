"""`headstart target-selection`: which of many targets one source model is expected to transfer to best."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
from jsonargparse.typing import NonNegativeInt, PositiveInt
from numpy.typing import NDArray

from headstart.contract.documents import read_registry, registry_path
from headstart.datamodules import import_photo_sources
from headstart.datamodules.photos.photo_source import PhotoSource
from headstart.evaluation.embeddings import Extraction, networks_of
from headstart.evaluation.sources.known_facts import known_facts
from headstart.evaluation.sources.metric_names import SELECTION_METRICS, MetricName, digest_metrics, find_metrics
from headstart.evaluation.sources.source_features import source_features, source_job
from headstart.evaluation.sources.targets import Split, Target, read_target
from headstart.evaluation.tables import SCORE_COLUMNS, read_performances, write_scores
from headstart.evaluation.target_selection.report import print_target_ranking, target_report
from headstart.evaluation.target_selection.results import RankedTargets
from headstart.evaluation.target_selection.scores import GbcAxes, score_targets
from headstart.metrics.transferability.inputs import Pool
from headstart.metrics.transferability.target_pools import ClassShare, sample_targets
from headstart.output.dashboard import Dashboard, Result, check_dashboard, publish
from headstart.output.errors import UserError
from headstart.output.files import output_folder, refuse_other_results
from headstart.output.printable import print_written
from headstart.store.cache import cache_folder

import_photo_sources()

# The document, the table and the report.
FILES = ("targets.json", "scores.csv", "report.md")


def target_selection(
    source: str,
    dataset: PhotoSource,
    targets: PositiveInt = 100,
    class_share: ClassShare = "half",
    metrics: list[MetricName] | None = None,
    gbc_axes: GbcAxes = "dataset",
    registry: str | None = None,
    split: Split = "train",
    performances: str | None = None,
    output: str = "runs/target_selection",
    overwrite: bool = False,
    seed: NonNegativeInt = 0,
    extraction: Extraction = Extraction(),  # noqa: B008 - frozen
    logger: bool = True,
    dashboard: Dashboard = Dashboard(),  # noqa: B008 - frozen
) -> dict[str, Any]:
    """Score how well one source model is expected to transfer to targets made of classes of one data set.

    Writes scores.csv (the plain table), targets.json (the classes of each target) and report.md, and prints the report.

    Args:
        source: Source model of the registry.
        dataset: The large data set whose classes are sampled, a source of photos.
        targets: How many targets are sampled.
        class_share: How many classes a target has: always `half` of them, or `varying`, uniformly from 2 % to 100 %, on
            which the number of classes alone tells nearly as much as any metric.
        metrics: The metrics, by name, or functions of your own by import path, with options as in
            '[gbc, {gbc: {variant: released}}]'; by default those of `transferability`
            but for `n_leep`, `knn`, `parc` and `sfda`, of which every target takes as long as if it were the only one.
        gbc_axes: Coordinates in which the classes of GBC overlap: the 64 principal components of the whole `dataset`,
            the same for all targets; those of each `target`, as if it were alone, for one decomposition per target;
            or all `features`, without principal components.
        registry: Model registry; by default the file in HACKATHON_MODEL_REGISTRY, else configs/model_registry.json.
        split: Which photos of the data set are taken.
        performances: CSV file with the columns source, target and performance, for the table's last column; where it
            has all targets, the report says how well every metric foretells them.
        output: Folder for the results.
        overwrite: Replace results of another configuration that lie in the folder; known performances are none.
        seed: Seed of the targets, and of the metrics that draw.
        extraction: How features are computed.
        logger: Whether to mirror the result in Weights & Biases.
        dashboard: Where it is mirrored.

    Returns:
        What targets.json holds.
    """
    start = time.perf_counter()
    folder = output_folder("output", output)
    if logger:
        check_dashboard(dashboard)
    known = read_registry(registry_path(registry))
    known.require("source", [source])
    chosen = find_metrics(SELECTION_METRICS if metrics is None else metrics)
    if comparing := [name for name, metric in chosen.items() if metric.combine is not None]:
        raise UserError(f"metrics: {', '.join(comparing)} compare sources, and here there is one; leave them out")
    whole = read_target("dataset", dataset, split, cache_folder(extraction.cache_dir), "dataset")
    try:
        pool = sample_targets(len(whole.photos.classes), int(targets), class_share, int(seed))
    except ValueError as error:
        raise UserError(f"dataset: {error}") from error
    names = [f"{dataset.name}-{place:0{len(str(targets))}d}" for place in range(1, len(pool) + 1)]
    performed = read_performances(performances, [source], names)
    described = _describe_targets(dict(zip(names, pool, strict=True)), whole)
    config: dict[str, Any] = {
        "source": source,
        "dataset": dataset.name,
        "split": split,
        "class_share": class_share,
        "gbc_axes": gbc_axes,
        "seed": int(seed),
        "metrics": list(chosen),
    }
    networks = networks_of([source], known, extraction)
    digests: dict[str, Any] = {
        "registry": known.sha256,
        "networks": {source: networks[source].digest},
        "metrics": digest_metrics(chosen),
        "photos": whole.fingerprint,
    }
    made_from = {
        **{f"digests/{name}": digest for name, digest in digests.items()},
        **config,
        "targets": described,
        "extraction/precision": extraction.precision,
        "extraction/seed": extraction.seed,
    }
    refuse_other_results([folder / name for name in FILES], made_from, overwrite)
    features = source_features(source_job(known.entries[source], networks[source], whole, extraction), whole)
    facts = known_facts(networks, chosen)[source]
    given = Pool(features.features, whole.photos.labels, features.probabilities(), pool, int(seed), facts)
    scores = dict(zip(names, score_targets(given, chosen, gbc_axes), strict=True))
    reached = {name: value for (_, name), value in performed.items()}
    results = RankedTargets(chosen, scores, reached, pool, [each["photos"] for each in described.values()], whole)
    config["extraction"] = asdict(extraction)
    config["digests"] = {**digests, "weights": features.weights}
    summary = {
        "kendall_with_num_classes": results.kendall_with_num_classes(),
        "measures": results.measures(),
        "repeated_photos": whole.repeated,
        "total_seconds": time.perf_counter() - start,
    }
    document = {**config, **summary, "targets": described}
    rows = results.rows(source=source)
    files = write_scores(folder, FILES, document, rows, target_report(results, document))
    print_target_ranking(results)
    print_written(files)
    if logger:
        title = f"target selection, {source}, {len(pool)} targets of {dataset.name}"
        pool_rows = [[name, ", ".join(each["classes"]), each["photos"]] for name, each in described.items()]
        tables = {"scores": (SCORE_COLUMNS, rows), "targets": (("target", "classes", "photos"), pool_rows)}
        publish(dashboard, Result("target-selection", title, config, summary, tables, files), folder)
    return document


def _describe_targets(pool: Mapping[str, NDArray[np.int64]], whole: Target) -> dict[str, dict[str, Any]]:
    """Describe each target by its classes and the number of its photos."""
    names = whole.photos.classes
    sizes = np.bincount(whole.photos.labels, minlength=len(names))
    return {
        target: {"classes": [names[label] for label in classes], "photos": int(sizes[classes].sum())}
        for target, classes in pool.items()
    }

"""`headstart transferability`: scores of source models on target data sets, from frozen features."""

import platform
import time
from collections.abc import Mapping
from dataclasses import asdict
from importlib import metadata
from pathlib import Path
from typing import Any

from jsonargparse.typing import NonNegativeInt, PositiveInt

from headstart.contract.documents import read_registries, registry_path
from headstart.contract.tables.csv_tables import SOURCE_COLUMNS, read_performances
from headstart.datamodules.photos import import_photo_sources
from headstart.datamodules.photos.photo_source import PhotoSource
from headstart.engines.options import EngineOptions
from headstart.evaluation.embeddings import Job, embed_all, networks_of
from headstart.evaluation.sources.metric_names import DEFAULT_METRICS, PIXEL_METRICS, MetricName, find_metrics
from headstart.evaluation.sources.results import RankedSources, describe_ranking
from headstart.evaluation.sources.scores import Metrics, Score, StoredScores, compare_sources, score_source
from headstart.evaluation.sources.scoring_results import REPORT, ScoringResults
from headstart.evaluation.sources.source_features import (
    SourceFeatures,
    pixel_features,
    source_facts,
    source_features,
    source_job,
)
from headstart.evaluation.sources.source_ranking import print_source_ranking, source_report
from headstart.evaluation.sources.targets import Split, Target, read_target
from headstart.metrics.transferability.baselines import SourceFacts
from headstart.metrics.transferability.inputs import Inputs
from headstart.output.errors import UserError, require_different
from headstart.output.progress import Progress
from headstart.output.seeds import Seed
from headstart.store.cache import cache_folder

import_photo_sources()

PACKAGES = ("numpy", "scipy", "torch", "torchvision", "timm")


class SourceResults(EngineOptions, ScoringResults):
    """Results of a command that scores source models, whose networks run on an engine."""


def transferability(
    targets: dict[str, PhotoSource],
    models: list[str] | None = None,
    metrics: list[MetricName] | None = None,
    registry: str | list[str] | None = None,
    split: Split = "train",
    pixels: PositiveInt = 1000,
    performances: str | None = None,
    seed: Seed = 0,
    resamples: NonNegativeInt = 10,
    **options: Any,
) -> dict[str, Any]:
    """Score how well source models are expected to transfer to target data sets, without training.

    Writes scores.csv (the plain table that `headstart stability` reads), transferability.json and report.md, and
    prints the report.

    Args:
        targets: Target data sets by their names in the table, each a source of photos.
        models: Source models of the registry; all of them by default.
        metrics: Names of metrics, or import paths of functions of your own. Options are written as in '[gbc, {gbc:
            {variant: released}}]'. By default the metrics that are fast and need only features of the source. For
            targets with a class for every pixel they are diagonal GBC, LEEP, N-LEEP, LogME and H-score. Source:
            Agostinelli et al., ECCV 2022, section 5.
        registry: Model registry, or a list of several. By default the file in HACKATHON_MODEL_REGISTRY, else
            configs/model_registry.json.
        split: Split of the targets whose photos are used.
        pixels: Maximum number of pixels to sample from each photo, for targets with a class for every pixel. The
            probability of a pixel is inverse to the frequency of its class.
        performances: CSV file with the columns source, target, performance and, optionally, warning. It fills the last
            column of the table; unknown performances stay empty.
        seed: Seed of the metrics that sample, N-LEEP and the linear probe, and of the parts that photos are divided
            into.
        resamples: Number of parts into which the photos of every class are divided for intervals of scores. Scores are
            computed again without each part. At most the number of photos; 0 for no intervals.
        **options: Options of `SourceResults`.

    Returns:
        The content of transferability.json.
    """
    start = time.perf_counter()
    results = SourceResults(default="runs/transferability", document="transferability.json", **options)
    if resamples == 1:
        raise UserError("resamples: one part of the photos has no spread; give 2 or more, or 0 for no intervals")

    registered = read_registries(
        [registry_path(path) for path in (registry if isinstance(registry, list) else [registry])]
    )
    if metrics is not None:
        find_metrics(metrics)
    sources = list(registered.entries) if models is None else models
    require_different("targets", list(targets))
    require_different("models", sources)
    registered.require("models", sources)
    performed = read_performances(performances, sources, targets)

    cache = cache_folder(results.extraction.cache_dir)
    datasets = {
        name: read_target(name, source, split, cache, f"targets.{name}", seed) for name, source in targets.items()
    }
    has_pixels = any(target.photos.maps is not None for target in datasets.values())
    used_metrics = find_metrics((PIXEL_METRICS if has_pixels else DEFAULT_METRICS) if metrics is None else metrics)
    networks = networks_of(sources, registered, results.extraction)

    config: dict[str, Any] = {
        "metrics": list(used_metrics),
        "split": split,
        **({"pixels": pixels} if has_pixels else {}),
        "targets": {name: target.describe() for name, target in datasets.items()},
    }
    settings = {"seed": seed, "resamples": resamples}
    results.check_sources(registered, networks, used_metrics, {**config, **settings})

    jobs = {
        (name, source): source_job(registered.entries[source], network, target, results.extraction)
        for name, target in datasets.items()
        for source, network in networks.items()
    }

    features = _extract(jobs, datasets, results, pixels, seed)
    scores = _score(features, source_facts(networks, used_metrics), used_metrics, resamples, seed, cache)
    ranked = [
        RankedSources(
            used_metrics,
            compare_sources(used_metrics, {source: scores[name, source] for source in networks}),
            {source: value for (source, of), value in performed.values.items() if of == name},
            target,
            warnings={source: warning for (source, of), warning in performed.warnings.items() if of == name},
        )
        for name, target in datasets.items()
    ]

    weights = {source: features[ranked[0].target.name, source].weights for source in networks}
    made_with = {
        **settings,
        "extraction": asdict(results.extraction),
        "digests": {**results.digests, "weights": weights},
        "versions": {"Python": platform.python_version(), **{name: metadata.version(name) for name in PACKAGES}},
    }
    document = {
        **config,
        "titles": {name: metric.title for name, metric in used_metrics.items()},
        **describe_ranking(ranked),
        **made_with,
        "weights_files": {source: network.file_digest for source, network in networks.items()},
        "total_seconds": time.perf_counter() - start,
    }

    table = SOURCE_COLUMNS, [row for result in ranked for row in result.rows(target=result.target.name)]
    results.write(document, {"scores": table}, {REPORT: source_report(ranked)})

    print_source_ranking(ranked)
    results.print_written()
    title = f"transferability, {len(sources)} sources, {len(targets)} targets, {len(used_metrics)} metrics"
    results.publish("transferability", title, {**made_with, **config}, document, {"scores": table})
    return document


def _extract(
    jobs: Mapping[tuple[str, str], Job], targets: Mapping[str, Target], engines: EngineOptions, pixels: int, seed: int
) -> dict[tuple[str, str], SourceFeatures]:
    """Return features by target and source, computed one after the other or on the engine."""
    titles = {(target, source): f"{source} on {target}" for (target, source), job in jobs.items() if job.taps}
    stored = {} if engines.is_serial else embed_all({title: jobs[pair] for pair, title in titles.items()}, engines)

    features: dict[tuple[str, str], SourceFeatures] = {}
    for pair, job in jobs.items():
        target = targets[pair[0]]
        if target.photos.maps is None:
            features[pair] = source_features(job, target, stored.get(titles[pair]))
        else:
            features[pair] = pixel_features(job, target, pixels, seed)
    return features


def _score(
    features: Mapping[tuple[str, str], SourceFeatures],
    facts: Mapping[str, SourceFacts],
    metrics: Metrics,
    resamples: int,
    seed: int,
    cache: Path,
) -> dict[tuple[str, str], dict[str, Score]]:
    """Return scores by target and source, from the cache folder or computed and stored there."""
    scores = {}
    with Progress("metrics", len(features) * len(metrics) * (1 + resamples), "scores") as progress:
        for (target, source), result in features.items():
            inputs = Inputs(result.features, result.labels, result.logits, seed, facts[source])
            parts = result.divide(resamples, seed)
            stored = StoredScores(cache, inputs, parts)
            missing = {name: metric for name, metric in metrics.items() if name not in stored.scores}
            progress.advance((len(metrics) - len(missing)) * (int(parts.max()) + 2))

            computed = score_source(missing, inputs, parts, progress) if missing else {}
            stored.keep(computed)
            scores[target, source] = {name: {**stored.scores, **computed}[name] for name in metrics}
    return scores

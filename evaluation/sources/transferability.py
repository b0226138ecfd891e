"""`headstart transferability`: scores of source models on target data sets, from frozen features."""

from __future__ import annotations

import platform
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from importlib import metadata
from typing import Any

from jsonargparse.typing import NonNegativeInt, PositiveInt

from headstart.contract.documents import read_registries, registry_path
from headstart.datamodules import import_photo_sources
from headstart.datamodules.photos.photo_source import PhotoSource
from headstart.evaluation.embeddings import HERE, Engines, Extraction, Job, embed_all, find_stored, networks_of
from headstart.evaluation.sources.known_facts import known_facts
from headstart.evaluation.sources.metric_names import (
    DEFAULT_METRICS,
    PIXEL_METRICS,
    MetricName,
    digest_metrics,
    find_metrics,
)
from headstart.evaluation.sources.pixel_features import pixel_features
from headstart.evaluation.sources.report import print_source_ranking, source_report
from headstart.evaluation.sources.results import RankedSources
from headstart.evaluation.sources.scores import Metrics, Score, compare_sources, score_source
from headstart.evaluation.sources.source_features import SourceFeatures, source_features, source_job
from headstart.evaluation.sources.stored_scores import StoredScores
from headstart.evaluation.sources.targets import Split, Target, read_target
from headstart.evaluation.tables import SOURCE_COLUMNS, read_performances, write_scores
from headstart.metrics.transferability.inputs import Inputs
from headstart.metrics.transferability.source_facts import SourceFacts
from headstart.output.dashboard import Dashboard, Result, check_dashboard, publish
from headstart.output.errors import UserError, require_different
from headstart.output.files import output_folder, refuse_other_results
from headstart.output.printable import print_written
from headstart.output.progress import Progress
from headstart.store.cache import cache_folder

import_photo_sources()

# The document, the table and the report.
FILES = ("transferability.json", "scores.csv", "report.md")
PACKAGES = ("numpy", "scipy", "torch", "torchvision", "timm")


def transferability(
    targets: dict[str, PhotoSource],
    models: list[str] | None = None,
    metrics: list[MetricName] | None = None,
    registry: str | list[str] | None = None,
    split: Split = "train",
    pixels: PositiveInt = 1000,
    performances: str | None = None,
    output: str = "runs/transferability",
    overwrite: bool = False,
    seed: NonNegativeInt = 0,
    resamples: NonNegativeInt = 10,
    workers: PositiveInt | None = None,
    ray: str | None = None,
    extraction: Extraction = Extraction(),  # noqa: B008 - frozen
    logger: bool = True,
    dashboard: Dashboard = Dashboard(),  # noqa: B008 - frozen
) -> dict[str, Any]:
    """Score how well source models are expected to transfer to target data sets, without any training.

    Writes scores.csv (the plain table that `headstart stability` reads), transferability.json and report.md, and
    prints the report.

    Args:
        targets: Target data sets by the names that the table gives them, each a source of photos.
        models: Source models of the registry; all of them by default.
        metrics: The metrics, by name, or functions of your own by import path, with options as in
            '[gbc, {gbc: {variant: released}}]'; by default those that
            take little time and no facts of the source beside its features, and of targets with a class for every
            pixel those of Agostinelli et al., ECCV 2022, section 5: diagonal GBC, LEEP, N-LEEP, LogME, H-score.
        registry: Model registry, or a list of several; by default the file in HACKATHON_MODEL_REGISTRY, else
            configs/model_registry.json.
        split: Which photos of the targets are taken.
        pixels: Of targets with a class for every pixel: pixels that are sampled from each photo, at most, with
            probability inverse to the frequency of their class.
        performances: CSV file with the columns source, target and performance, for the table's last column; a
            performance that is not known there stays empty.
        output: Folder for the results.
        overwrite: Replace results of another configuration that lie in the folder; known performances are none.
        seed: Seed of the metrics that draw, N-LEEP and the linear probe, and of the parts that photos are divided into.
        resamples: Parts of the photos of every class that are left out in turn for the intervals of scores, and so how
            often these are computed again; at most as many as photos count. 0 for no intervals.
        workers: Run so many sources side by side, each in a process of its own.
        ray: Run sources on the Ray cluster at this address, or on that of this machine with `auto`.
        extraction: How features are computed.
        logger: Whether to mirror the result in Weights & Biases.
        dashboard: Where it is mirrored.

    Returns:
        What transferability.json holds.
    """
    start = time.perf_counter()
    folder = output_folder("output", output)
    if resamples == 1:
        raise UserError("resamples: one part of the photos tells of no spread; give 2 or more, or 0 for no intervals")
    if logger:
        check_dashboard(dashboard)
    given = registry if isinstance(registry, list) else [registry]
    known = read_registries([registry_path(each) for each in given])
    if metrics is not None:
        find_metrics(metrics)
    sources = list(known.entries) if models is None else models
    require_different("targets", list(targets))
    require_different("models", sources)
    known.require("models", sources)
    performed = read_performances(performances, sources, targets)
    cache = cache_folder(extraction.cache_dir)
    found = [read_target(name, source, split, cache, f"targets.{name}") for name, source in targets.items()]
    of_pixels = [target.name for target in found if target.photos.maps is not None]
    chosen = find_metrics((PIXEL_METRICS if of_pixels else DEFAULT_METRICS) if metrics is None else metrics)
    sampled = {"pixels": int(pixels)} if of_pixels else {}
    described = {target.name: target.describe() for target in found}
    config: dict[str, Any] = {"metrics": list(chosen), "split": split, **sampled, "targets": described}
    networks = networks_of(sources, known, extraction)
    digests: dict[str, Any] = {
        "registry": known.sha256,
        "networks": {name: network.digest for name, network in networks.items()},
        "metrics": digest_metrics(chosen),
    }
    made_from = {
        **{f"digests/{name}": digest for name, digest in digests.items()},
        **config,
        "extraction/precision": extraction.precision,
        "extraction/seed": extraction.seed,
        "seed": int(seed),
        "resamples": int(resamples),
    }
    refuse_other_results([folder / name for name in FILES], made_from, overwrite)
    jobs = {
        (target.name, source): source_job(known.entries[source], network, target, extraction)
        for target in found
        for source, network in networks.items()
    }
    of_target = {target.name: target for target in found}
    features, seconds = _find_features(jobs, of_target, Engines(workers, ray), int(pixels), int(seed))
    facts = known_facts(networks, chosen)
    stored, results = StoredScores(cache), []
    with Progress("metrics", len(jobs) * len(chosen) * (1 + resamples), "scores") as progress:
        for target in found:
            its = {source: features[target.name, source] for source in networks}
            scores = {
                source: _score(each, facts[source], chosen, int(resamples), int(seed), stored, progress)
                for source, each in its.items()
            }
            known_there = {source: value for (source, name), value in performed.items() if name == target.name}
            weights = {source: each.weights for source, each in its.items()}
            compared = compare_sources(chosen, scores)
            results.append(RankedSources(chosen, compared, known_there, target, weights, seconds[target.name]))
    _require_scores(results)
    made_with = {
        "seed": int(seed),
        "resamples": int(resamples),
        "extraction": asdict(extraction),
        "digests": {**digests, "weights": dict(results[0].weights)},
        "versions": {"Python": platform.python_version(), **{name: metadata.version(name) for name in PACKAGES}},
    }
    document = {
        **config,
        "scores": {each.target.name: each.describe_scores() for each in results},
        "mean_ranks": {each.target.name: dict(each.ranking.mean_ranks) for each in results},
        "groups": {each.target.name: {name: its.groups for name, its in each.certainties.items()} for each in results},
        "performances": {each.target.name: dict(each.performances) for each in results},
        "repeated_photos": {target.name: target.repeated for target in found},
        "features_seconds": {each.target.name: dict(each.features_seconds) for each in results},
        **made_with,
        "total_seconds": time.perf_counter() - start,
    }
    rows = [row for each in results for row in each.interval_rows()]
    files = write_scores(folder, FILES, document, rows, source_report(results, document), SOURCE_COLUMNS)
    print_source_ranking(results)
    print_written(files)
    if logger:
        title = f"transferability, {len(sources)} sources, {len(targets)} targets, {len(chosen)} metrics"
        tables = {"scores": (SOURCE_COLUMNS, rows)}
        publish(dashboard, Result("transferability", title, {**made_with, **config}, document, tables, files), folder)
    return document


def _score(
    source: SourceFeatures,
    facts: SourceFacts,
    metrics: Metrics,
    resamples: int,
    seed: int,
    stored: StoredScores,
    progress: Progress,
) -> dict[str, Score]:
    """Score one source on one target, and keep the scores that were not there."""
    given = Inputs(source.features, source.labels, source.probabilities(), seed, facts=facts)
    parts = source.divide(resamples, seed)
    identity = stored.identity(given, parts)
    known = stored.find(identity, list(metrics))
    progress.advance(len(known) * (int(parts.max()) + 2))
    missing = {name: metric for name, metric in metrics.items() if name not in known}
    computed = score_source(missing, given, parts, progress) if missing else {}
    stored.keep(identity, computed)
    return {name: {**known, **computed}[name] for name in metrics}


def _find_features(
    jobs: Mapping[tuple[str, str], Job], targets: Mapping[str, Target], engines: Engines, pixels: int, seed: int
) -> tuple[dict[tuple[str, str], SourceFeatures], dict[str, dict[str, float]]]:
    """Give features by target and source, and the seconds that they took by target, then source."""
    titled = {_title(*pair): job for pair, job in jobs.items() if job.taps}
    stored = find_stored(titled) if engines == HERE else embed_all(titled, engines)
    # Sampled pixels have a progress of their own.
    waiting = {pair: len(job.pictures) if job.taps and _title(*pair) not in stored else 0 for pair, job in jobs.items()}
    found: dict[tuple[str, str], SourceFeatures] = {}
    seconds: dict[str, dict[str, float]] = {name: {} for name in targets}
    for (target, source), job in jobs.items():
        start = time.perf_counter()
        before = sum(waiting[pair] for pair in found)
        after = sum(waiting.values()) - before - waiting[target, source]
        rows = stored.get(_title(target, source))
        if targets[target].photos.maps is None:
            found[target, source] = source_features(job, targets[target], rows, before, after)
        else:
            found[target, source] = pixel_features(job, targets[target], pixels, seed)
        seconds[target][source] = time.perf_counter() - start
    return found, seconds


def _title(target: str, source: str) -> str:
    return f"{source} on {target}"


def _require_scores(results: Sequence[RankedSources]) -> None:
    """Refuse to write a table without any score."""
    scores = [
        (f"{metric}, {source}, {found.target.name}", score)
        for found in results
        for source, scores in found.scores.items()
        for metric, score in scores.items()
    ]
    if all(score.value is None for _, score in scores):
        name, score = scores[0]
        raise UserError(f"metrics: none of the {len(scores)} scores can be computed; {name}: {score.reason}")

"""`evaluate.py transferability`: scores of source models on target data sets, from frozen features."""

from __future__ import annotations

import platform
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from importlib import metadata
from typing import Any

from jsonargparse.typing import NonNegativeInt, PositiveInt

from contract.documents import read_registries, registry_path
from datamodules import import_photo_sources
from datamodules.photos.photo_source import PhotoSource
from evaluation.embeddings import HERE, Engines, Extraction, Job, embed_all
from evaluation.sources.known_facts import known_facts
from evaluation.sources.metric_names import DEFAULT_METRICS, MetricName, digest_metrics, find_metrics
from evaluation.sources.report import print_source_ranking, source_report
from evaluation.sources.results import RankedSources
from evaluation.sources.scores import Metrics, Score, score_one
from evaluation.sources.source_features import source_features, source_job
from evaluation.sources.targets import Split, Target, read_target
from evaluation.tables import SCORE_COLUMNS, read_performances, write_scores
from metrics.transferability.inputs import Inputs
from metrics.transferability.source_facts import SourceFacts
from output.dashboard import Dashboard, Result, check_dashboard, publish
from output.errors import UserError, require_different
from output.files import output_folder, refuse_other_results
from store.cache import cache_folder
from store.row_store import StoredRows

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
    performances: str | None = None,
    output: str = "runs/transferability",
    overwrite: bool = False,
    seed: NonNegativeInt = 0,
    workers: PositiveInt | None = None,
    ray: str | None = None,
    extraction: Extraction = Extraction(),  # noqa: B008 - frozen
    logger: bool = True,
    dashboard: Dashboard = Dashboard(),  # noqa: B008 - frozen
) -> dict[str, Any]:
    """Score how well source models are expected to transfer to target data sets, without any training.

    Writes scores.csv (the plain table that `evaluate.py stability` reads), transferability.json and report.md, and
    prints the report.

    Args:
        targets: Target data sets by the names that the table gives them, each a source of photos.
        models: Source models of the registry; all of them by default.
        metrics: The metrics, by name, or functions of your own by import path, with options as in
            '[gbc, {gbc: {variant: released}}]'; by default those that
            take little time and no facts of the source beside its features.
        registry: Model registry, or a list of several; by default the file in HACKATHON_MODEL_REGISTRY, else
            configs/model_registry.json.
        split: Which photos of the targets are taken.
        performances: CSV file with the columns source, target and performance, for the table's last column; a
            performance that is not known there stays empty.
        output: Folder for the results.
        overwrite: Replace results of another configuration that lie in the folder; known performances are none.
        seed: Seed of the metrics that draw, N-LEEP and the linear probe.
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
    if logger:
        check_dashboard(dashboard)
    given = registry if isinstance(registry, list) else [registry]
    known = read_registries([registry_path(each) for each in given])
    chosen = find_metrics(DEFAULT_METRICS if metrics is None else metrics)
    sources = list(known.entries) if models is None else models
    require_different("targets", list(targets))
    require_different("models", sources)
    known.require("models", sources)
    performed = read_performances(performances, sources, targets)
    cache = cache_folder(extraction.cache_dir)
    found = [read_target(name, source, split, cache, f"targets.{name}") for name, source in targets.items()]
    config = {"metrics": list(chosen), "split": split, "targets": {target.name: target.describe() for target in found}}
    networks = known.networks(sources, extraction.seed, extraction.allow_modules)
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
    }
    refuse_other_results([folder / name for name in FILES], made_from, overwrite)
    jobs = {
        (target.name, source): source_job(known.entries[source], network, target, extraction)
        for target in found
        for source, network in networks.items()
    }
    stored: dict[str, StoredRows] = {}
    if (engines := Engines(workers, ray)) != HERE:
        stored = embed_all({_title(*pair): job for pair, job in jobs.items()}, engines)
    facts = known_facts(networks, chosen)
    results = [_score(target, facts, jobs, stored, chosen, int(seed), performed) for target in found]
    _require_scores(results)
    made_with = {
        "seed": int(seed),
        "extraction": asdict(extraction),
        "digests": {**digests, "weights": dict(results[0].weights)},
        "versions": {"Python": platform.python_version(), **{name: metadata.version(name) for name in PACKAGES}},
    }
    document = {
        **config,
        "scores": {each.target.name: each.describe_scores() for each in results},
        "mean_ranks": {each.target.name: dict(each.ranking.mean_ranks) for each in results},
        "performances": {each.target.name: dict(each.performances) for each in results},
        "repeated_photos": {target.name: target.repeated for target in found},
        "features_seconds": {each.target.name: dict(each.features_seconds) for each in results},
        **made_with,
        "total_seconds": time.perf_counter() - start,
    }
    rows = [row for each in results for row in each.rows(target=each.target.name)]
    files = write_scores(folder, FILES, document, rows, source_report(results, document))
    print_source_ranking(results)
    print(f"wrote {', '.join(map(str, files))}")
    if logger:
        title = f"transferability, {len(sources)} sources, {len(targets)} targets, {len(chosen)} metrics"
        tables = {"scores": (SCORE_COLUMNS, rows)}
        publish(dashboard, Result("transferability", title, {**made_with, **config}, document, tables, files), folder)
    return document


def _score(
    target: Target,
    sources: Mapping[str, SourceFacts],
    jobs: Mapping[tuple[str, str], Job],
    stored: Mapping[str, StoredRows],
    metrics: Metrics,
    seed: int,
    performances: Mapping[tuple[str, str], float],
) -> RankedSources:
    """Score all sources on one target."""
    scores: dict[str, dict[str, Score]] = {}
    seconds: dict[str, float] = {}
    weights: dict[str, str] = {}
    for source, facts in sources.items():
        start = time.perf_counter()
        found = source_features(jobs[target.name, source], target, stored.get(_title(target.name, source)))
        seconds[source], weights[source] = time.perf_counter() - start, found.weights
        given = Inputs(found.features, target.photos.labels, found.probabilities(), seed, facts=facts)
        scores[source] = {name: score_one(metric.compute, given) for name, metric in metrics.items()}
    known = {source: value for (source, name), value in performances.items() if name == target.name}
    return RankedSources(metrics, scores, known, target, weights, seconds)


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

"""`evaluate.py transferability`: scores of source models on target data sets, from frozen features."""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from importlib import metadata
from pathlib import Path
from typing import Any

from jsonargparse.typing import NonNegativeInt

from contract.documents import Registry, read_registry, registry_path
from datamodules import import_photo_sources
from datamodules.photos.photo_source import PhotoSource
from evaluation.extraction import Extraction
from evaluation.sources.metric_names import DEFAULT_METRICS, MetricName, find_metrics
from evaluation.sources.report import print_source_ranking, write_markdown
from evaluation.sources.results import RankedSources, Results, describe_target
from evaluation.sources.scores import Metrics, Score, score_source
from evaluation.sources.source_features import source_features
from evaluation.sources.targets import Split, Target, read_target
from evaluation.tables import SCORE_COLUMNS, csv_text, read_performances
from metrics.transferability.inputs import Inputs
from modules.networks.spec import NetworkSpec
from output.dashboard import Dashboard, Result, check_dashboard, publish
from output.errors import UserError
from output.files import output_folder, refuse_other_results, write_texts
from store.cache import cache_folder

import_photo_sources()

# The document, the table and the report.
FILES = ("transferability.json", "scores.csv", "report.md")
PACKAGES = ("numpy", "scipy", "torch", "torchvision", "timm")


def transferability(
    targets: dict[str, PhotoSource],
    models: list[str] | None = None,
    metrics: list[MetricName] | None = None,
    registry: str | None = None,
    split: Split = "train",
    performances: str | None = None,
    output: str = "runs/transferability",
    overwrite: bool = False,
    seed: NonNegativeInt = 0,
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
        metrics: The metrics, by name, or functions of your own by import path; by default all but `linear_probe`, the
            slow reference.
        registry: Model registry; by default the file in HACKATHON_MODEL_REGISTRY, else configs/model_registry.json.
        split: Which photos of the targets are taken.
        performances: CSV file with the columns source, target and performance, for the table's last column; a
            performance that is not known there stays empty.
        output: Folder for the results.
        overwrite: Replace results of another configuration that lie in the folder; known performances are none.
        seed: Seed of the metrics that draw, N-LEEP and the linear probe.
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
    known = read_registry(registry_path(registry))
    chosen = find_metrics(DEFAULT_METRICS if metrics is None else metrics)
    sources = list(known.entries) if models is None else models
    _require_different({"targets": list(targets), "models": sources}, known)
    performed = {} if performances is None else read_performances(Path(performances), sources, targets)
    cache = cache_folder(extraction.cache_dir)
    found = [read_target(name, source, split, cache, f"targets.{name}") for name, source in targets.items()]
    made_from = {
        "digests/weights": sources,
        "digests/registry": known.sha256,
        "targets": {target.name: describe_target(target) for target in found},
        "extraction/precision": extraction.precision,
        "extraction/seed": extraction.seed,
        **{"metrics": list(chosen), "split": split, "seed": int(seed)},
    }
    refuse_other_results([folder / name for name in FILES], made_from, overwrite)
    networks = known.networks(sources, extraction.seed, extraction.allow_modules)
    weights: dict[str, str] = {}
    scored = [_score(target, networks, known, extraction, chosen, int(seed), performed, weights) for target in found]
    results = Results(chosen, split, scored)
    _require_scores(results)
    digests = {"registry": known.sha256, "weights": weights}
    config = {"seed": int(seed), "extraction": asdict(extraction), "digests": digests, "versions": _versions()}
    document = {**results.document(), **config, "total_seconds": time.perf_counter() - start}
    files = _write(folder, results, document)
    print_source_ranking(results)
    print(f"wrote {', '.join(map(str, files))}")
    if logger:
        title = f"transferability, {len(sources)} sources, {len(targets)} targets, {len(chosen)} metrics"
        settings = {**config, "split": split, "targets": document["targets"], "metrics": list(chosen)}
        tables = {"scores": (SCORE_COLUMNS, results.rows())}
        publish(dashboard, Result("transferability", title, settings, document, tables, files), folder)
    return document


def _require_different(given: Mapping[str, Sequence[str]], registry: Registry) -> None:
    """Check that there is something of everything, nothing twice, and that the models are known."""
    for option, values in given.items():
        if not values or len(set(values)) < len(values):
            raise UserError(
                f"{option}: {', '.join(values) or 'none'} given; one or more are needed, none of them twice"
            )
    unknown = [name for name in given["models"] if name not in registry.entries]
    if unknown:
        raise UserError(
            f"models: {', '.join(map(repr, unknown))} not in the registry; it has {', '.join(registry.entries)}"
        )


def _score(
    target: Target,
    sources: Mapping[str, NetworkSpec],
    registry: Registry,
    extraction: Extraction,
    metrics: Metrics,
    seed: int,
    performances: Mapping[tuple[str, str], float],
    weights: dict[str, str],
) -> RankedSources:
    """Score all sources on one target; note the digests of their weights."""
    scores: dict[str, dict[str, Score]] = {}
    seconds: dict[str, float] = {}
    for source, network in sources.items():
        start = time.perf_counter()
        found = source_features(registry.entries[source], network, target, extraction)
        seconds[source] = time.perf_counter() - start
        weights[source] = found.weights
        given = Inputs(found.features, target.photos.labels, found.probabilities(), seed)
        scores[source] = score_source(given, metrics)
    known = {source: value for (source, name), value in performances.items() if name == target.name}
    return RankedSources(metrics, scores, known, target, seconds)


def _require_scores(results: Results) -> None:
    """Refuse to write a table without any score."""
    reasons = [
        f"{metric}, {source}, {found.target.name}: {score.reason}"
        for found in results.targets
        for source, scores in found.scores.items()
        for metric, score in scores.items()
        if score.value is None
    ]
    if len(reasons) == len(results.rows()):
        raise UserError(f"metrics: none of the {len(reasons)} scores can be computed; {reasons[0]}")


def _versions() -> dict[str, str]:
    return {"Python": platform.python_version(), **{name: metadata.version(name) for name in PACKAGES}}


def _write(folder: Path, results: Results, document: Mapping[str, Any]) -> list[Path]:
    contents = (
        json.dumps(document, indent=1, allow_nan=False) + "\n",
        csv_text(SCORE_COLUMNS, results.rows()),
        write_markdown(results, document),
    )
    return write_texts(folder, dict(zip(FILES, contents, strict=True)))

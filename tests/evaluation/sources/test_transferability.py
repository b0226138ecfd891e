"""From a registry and folders of photos to the table of scores."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats
from torch import nn

from headstart import evaluate
from headstart.contract.documents import read_registry
from headstart.datamodules.photos.class_folders import ClassFolders
from headstart.evaluation.embeddings import Extraction
from headstart.evaluation.sources.source_features import SourceFeatures, source_features, source_job
from headstart.evaluation.sources.targets import Target, read_target
from headstart.metrics.transferability.baselines import SourceFacts
from headstart.metrics.transferability.catalogue import METRICS
from headstart.metrics.transferability.discriminant_metrics import etran
from headstart.metrics.transferability.inputs import Inputs
from headstart.modules.networks.build import build
from headstart.modules.networks.normalization import Normalization
from headstart.modules.networks.preprocessing import Preprocessing
from headstart.output.markup import escape_markdown
from headstart.output.results_folder import DashboardResults
from headstart.tests.conftest import write_photos
from headstart.tests.evaluation.sources.conftest import Scored, score, write_registry
from headstart.tests.material.arena import ENTRIES, Arena
from headstart.tests.material.prepared_pictures import stack
from headstart.tests.material.root import ROOT

SOURCES = ["squeezenet1_1", "resnet18", "headless"]
ALL = (
    "[gbc, leep, n_leep, log_me, h_score, h_score_shrunk, nce, trans_rate, linear_probe, num_classes, "
    "knn, parc, sfda, etran, pactran, parameters, source_accuracy]"
)
WARNING = "predicts 'ants' for all validation photos."


@dataclass
class Whole:
    """A run of all metrics on all sources, the cache of its features, and what went to the dashboard."""

    scored: Scored
    photos: Path
    cache: Path
    published: list[tuple[Any, ...]]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Whole:
    folder, published = tmp_path_factory.mktemp("whole"), []
    photos, registry = write_photos(folder / "pictures"), write_registry(folder)
    performances = f"squeezenet1_1,photos,0.875,{WARNING}\nsqueezenet1_1,elsewhere,0.5,\n"
    (folder / "performances.csv").write_text(f"source,target,performance,warning\n{performances}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HEADSTART_CACHE", str(folder / "cache"))
        patch.setattr(DashboardResults, "publish", lambda *arguments: published.append(arguments))
        options = [f"--metrics={ALL}", "--seed=3", "--resamples=4", f"--performances={folder / 'performances.csv'}"]
        options += ["--logger=true", "--dashboard.project=mine"]
        scored = score(registry.parent, photos, *options, models=f"[{', '.join(SOURCES)}]", output="out")
    return Whole(scored, photos, folder / "cache", published)


def read_features(whole: Whole) -> tuple[Target, dict[str, SourceFeatures]]:
    """Read the features of all sources, which the run has stored."""
    target = read_target("photos", ClassFolders(str(whole.photos)), "train", whole.photos, "targets.photos")
    known, options = read_registry(whole.scored.folder.parent / "registry.json"), Extraction(device="cpu")
    networks = known.networks(SOURCES, options.seed)
    jobs = {name: source_job(known.entries[name], network, target, options) for name, network in networks.items()}
    return target, {name: source_features(job, target) for name, job in jobs.items()}


def test_scores_are_those_of_the_metrics(whole: Whole, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADSTART_CACHE", str(whole.cache))
    target, results = read_features(whole)
    # ResNet-18 as torchvision documents it, with 7 classes in place of 1,000.
    facts = SourceFacts(parameters=11_689_512 - 993 * 513)
    of_source = {
        name: Inputs(rows.features, target.photos.labels, rows.logits, seed=3, facts=facts)
        for name, rows in results.items()
    }
    cells = whole.scored.cells["resnet18"]
    computed = [name for name in cells if name not in ("etran", "source_accuracy")]
    expected = {name: METRICS[name].compute(of_source["resnet18"]) for name in computed}
    pool = np.array([METRICS["etran"].compute(inputs) for inputs in of_source.values()])
    expected["etran"] = etran(pool)[SOURCES.index("resnet18")]

    rows = [row for row in whole.scored.rows if row["source"] == "resnet18"]
    table = {row["metric"]: float(row["score"]) for row in rows if row["score"]}
    assert table == pytest.approx(expected, rel=1e-9, abs=1e-12)
    assert {name: cell["score"] for name, cell in cells.items() if cell["score"] is not None} == table


def test_features_and_logits_are_those_of_a_direct_pass(whole: Whole, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADSTART_CACHE", str(whole.cache))
    target, results = read_features(whole)
    registry = read_registry(whole.scored.folder.parent / "registry.json")
    network, _ = build(registry.networks(["resnet18"], seed=0)["resnet18"])
    body, preprocessing = nn.Sequential(*list(network.children())[:-1]), Preprocessing(resize=32, crop=32)
    photos = ClassFolders(str(whole.photos)).train()
    np.testing.assert_array_equal(target.photos.labels, photos.labels)
    for index in range(len(photos)):
        image = Normalization(preprocessing)(stack([preprocessing.prepare(photos.read(index))]))
        with torch.no_grad():
            entered, left = body(image).flatten(), network(image)[0]
        np.testing.assert_allclose(results["resnet18"].features[index], entered, atol=1e-5)
        np.testing.assert_allclose(results["resnet18"].logits[index], left, atol=1e-5)
    assert np.ptp(results["resnet18"].logits, axis=0).min() > 1e-3


def test_every_pair_has_a_row_with_its_known_performance(whole: Whole) -> None:
    scored = whole.scored
    columns = ["metric", "source", "target", "score", "performance", "seconds", "warning", "low", "high"]
    assert list(scored.rows[0]) == columns
    assert len(scored.rows) == 17 * 3
    known = {("squeezenet1_1", "0.875", WARNING), *((name, "", "") for name in SOURCES[1:])}
    assert {(row["source"], row["performance"], row["warning"]) for row in scored.rows} == known
    assert scored.document["performances"] == {"photos": {"squeezenet1_1": 0.875}}
    assert scored.document["performance_warnings"] == {"photos": {"squeezenet1_1": WARNING}}
    remark = f"- {escape_markdown(f'WARNING: The performance of squeezenet1_1: {WARNING}')}"
    assert remark in scored.report.splitlines()
    target = scored.document["targets"]["photos"]
    assert (target["photos"], target["classes"]) == (24, ["dark", "light"])


def test_baselines_and_saturated_metrics_do_not_count(whole: Whole) -> None:
    cells, document = whole.scored.cells, whole.scored.document
    ranked = {name for name, cell in cells["resnet18"].items() if cell["rank"] is not None}
    # Fewer photos than features, which all tell both classes apart.
    assert document["saturated"]["photos"]["h_score"] == SOURCES
    assert {"gbc", "log_me", "trans_rate", "parameters"} <= ranked
    assert not {"h_score", "leep", "num_classes", "source_accuracy"} & ranked
    counted = ranked - {"parameters", *document["saturated"]["photos"]}
    means = {source: np.mean([cells[source][metric]["rank"] for metric in counted]) for source in SOURCES}
    assert document["mean_ranks"]["photos"] == pytest.approx(means)
    for remark in (
        "parameters counts the parameters of the source, whatever the target",
        "H-score is saturated: 3 of 3",
    ):
        assert f"- {remark}" in whole.scored.report


def test_intervals_are_those_of_the_metrics_without_each_part(
    whole: Whole, monkeypatch: pytest.MonkeyPatch, run: Callable[..., Scored]
) -> None:
    document, result = whole.scored.document, whole.scored.cells["resnet18"]
    assert document["resamples"] == 4
    assert (result["num_classes"]["interval"], result["num_classes"]["left_out"]) == (None, [])
    left_out = np.array(result["log_me"]["left_out"])
    assert left_out.shape == (4,)
    half = stats.t(3).ppf(0.975) * np.sqrt(3 / 4 * ((left_out - left_out.mean()) ** 2).sum())
    value = result["log_me"]["score"]
    assert result["log_me"]["interval"] == pytest.approx([value - half, value + half])
    [row] = [row for row in whole.scored.rows if (row["metric"], row["source"]) == ("log_me", "resnet18")]
    assert [float(row["low"]), float(row["high"])] == result["log_me"]["interval"]
    assert {row["low"] for row in whole.scored.rows if row["metric"] == "num_classes"} == {""}
    assert {name for group in document["groups"]["photos"]["log_me"] for name in group} == set(SOURCES)
    assert len(result["n_leep"]["starts"]) == 8
    assert "First by mean rank: " in whole.scored.report
    assert f" ± {half:.2g} (" in whole.scored.report

    none = run("--metrics=[log_me]", "--resamples=0", output="none")
    assert none.cells["resnet18"]["log_me"]["score"] == value
    assert none.document["groups"] == {"photos": {}}
    assert {row["low"] for row in none.rows} == {""}
    assert "±" not in none.report


def test_dashboard_mirrors_scores_and_files(whole: Whole) -> None:
    [(results, job_type, title, config, document, tables)] = whole.published
    assert (results.dashboard.project, job_type, results.path) == ("mine", "transferability", whole.scored.folder)
    assert title == "transferability, 3 sources, 1 targets, 17 metrics"
    assert (document, config["metrics"][:2]) == (whole.scored.document, ["gbc", "leep"])
    columns, rows = tables["scores"]
    assert list(columns) == list(whole.scored.rows[0])
    assert ["" if row[3] is None else str(row[3]) for row in rows] == [row["score"] for row in whole.scored.rows]
    assert sorted(path.name for path in results.written) == ["report.md", "scores.csv", "transferability.json"]


def test_shipped_config_runs(arena: Arena, photo_folder: Path) -> None:
    target = {"class_path": "headstart.datamodules.ClassFolders", "init_args": {"root": str(photo_folder)}}
    own = {
        "targets": {"held_out": target},
        "registry": str(arena.registry),
        "models": None,
        "split": "validation",
        "output": str(arena.folder / "out"),
        "extraction": {"num_workers": 0, "device": "cpu"},
        "logger": False,
    }
    config = ROOT / "configs" / "evaluation" / "transferability.yaml"
    evaluate.main(["transferability", f"--config={config}", f"--config={arena.write('own.yaml', own)}"])
    document = json.loads((arena.folder / "out" / "transferability.json").read_text())
    assert {name: target["photos"] for name, target in document["targets"].items()} == {"held_out": 12}
    assert {source: len(cells) for source, cells in document["scores"]["held_out"].items()} == dict.fromkeys(
        [entry["model_name"] for entry in ENTRIES], 10
    )


def test_a_photo_that_is_there_twice_is_named_and_counted_once(run: Callable[..., Scored], photo_folder: Path) -> None:
    alone = run("--metrics=[log_me]", output="alone")
    photo = photo_folder / "train" / "dark" / "3.jpg"
    photo.with_name("zz.jpg").write_bytes(photo.read_bytes())
    scored = run("--metrics=[log_me]")
    assert [row["score"] for row in scored.rows] == [row["score"] for row in alone.rows]
    assert scored.document["targets"] == alone.document["targets"]
    [names] = scored.document["repeated_photos"]["photos"]
    assert [Path(name).name for name in names] == ["3.jpg", "zz.jpg"]
    assert f"counted once, which leaves out 1: {' = '.join(names)}." in scored.report
    (photo_folder / "train" / "light" / "zz.jpg").write_bytes(photo.read_bytes())
    assert "- Warning: 1 photos are in more than one class" in run("--metrics=[log_me]", output="both").report


def test_why_there_are_no_scores_or_intervals_is_reported(
    run: Callable[..., Scored], photo_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = "def fussy(features, labels):\n    assert len(labels) == 24, 'too few'\n    return 1.5\n"
    (tmp_path / "fussy_metrics.py").write_text(code)
    monkeypatch.syspath_prepend(str(tmp_path))
    scored = run("--metrics=[h_score, fussy_metrics.fussy]", output="several")
    result = scored.cells["resnet18"]["fussy_metrics.fussy"]
    assert (result["score"], result["interval"]) == (1.5, None)
    assert result["no_interval"].startswith("without part 1 of the photos: AssertionError: too few")
    assert "fussy\\_metrics.fussy has no interval for squeezenet1\\_1, resnet18: " in scored.report

    remark = "There are no intervals: every class has a single photo"
    assert remark not in scored.report
    for path in (photo_folder / "train").glob("*/*.jpg"):
        if int(path.stem) > 0:
            path.unlink()
    scored = run("--metrics=[log_me, n_leep]")
    assert {row["low"] for row in scored.rows} == {""}
    assert {row["metric"] for row in scored.rows if not row["score"]} == {"n_leep"}
    assert "5 for each of 2 classes" in scored.cells["squeezenet1_1"]["n_leep"]["reason"]
    assert remark in scored.report

"""From a registry and folders of photos to the table of scores."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torchvision
from scipy import stats

from headstart import evaluate
from headstart.contract.documents import read_registry
from headstart.datamodules.photos.class_folders import ClassFolders
from headstart.evaluation.embeddings import Extraction
from headstart.evaluation.sources.source_features import source_features, source_job
from headstart.evaluation.sources.targets import read_target
from headstart.metrics.transferability.etran import etran, etran_terms
from headstart.metrics.transferability.gbc import gbc
from headstart.metrics.transferability.h_score import h_score
from headstart.metrics.transferability.knn import knn_accuracy
from headstart.metrics.transferability.leep import leep, nce
from headstart.metrics.transferability.linear_probe import linear_probe_accuracy
from headstart.metrics.transferability.log_me import log_me
from headstart.metrics.transferability.n_leep import n_leep
from headstart.metrics.transferability.pactran import pactran
from headstart.metrics.transferability.parc import parc
from headstart.metrics.transferability.sfda import sfda
from headstart.metrics.transferability.trans_rate import trans_rate
from headstart.output.markup import escape_markdown
from headstart.output.results_folder import DashboardResults

ALL = (
    "[gbc, leep, n_leep, log_me, h_score, h_score_shrunk, nce, trans_rate, linear_probe, num_classes, "
    "knn, parc, sfda, etran, pactran, parameters]"
)


def test_scores_are_those_of_the_metrics(run: Callable[..., Any], registry: Path, photo_folder: Path) -> None:
    scored = run(f"--metrics={ALL}", "--seed=3")
    target = read_target("photos", ClassFolders(str(photo_folder)), "train", photo_folder, "targets.photos")
    known, options = read_registry(registry), Extraction(device="cpu")
    network = known.networks(["resnet18"], options.seed)["resnet18"]
    result = source_features(source_job(known.entries["resnet18"], network, target, options), target)
    assert result.computed == 0
    assert result.logits is not None
    features, labels = result.features.astype(np.float64), target.photos.labels
    probabilities = torch.from_numpy(result.logits.copy()).double().softmax(1).numpy()
    other = known.networks(["squeezenet1_1"], options.seed)["squeezenet1_1"]
    others = source_features(source_job(known.entries["squeezenet1_1"], other, target, options), target)
    pool = features, others.features.astype(np.float64)
    compared = etran(np.array([etran_terms(each, labels) for each in pool])).tolist()
    expected = {
        "gbc": gbc(features, labels),
        "leep": leep(probabilities, labels),
        "n_leep": n_leep(features, labels, seed=3),
        "log_me": log_me(features, labels),
        "h_score": h_score(features, labels),
        "h_score_shrunk": h_score(features, labels, shrinkage=True),
        "nce": nce(probabilities.argmax(1), labels),
        "trans_rate": trans_rate(features, labels),
        "linear_probe": linear_probe_accuracy(features, labels, seed=3),
        "num_classes": 2.0,
        "knn": knn_accuracy(features, labels),
        "parc": parc(features, labels, seed=3),
        "sfda": sfda(features, labels),
        "etran": compared[0],
        "pactran": pactran(features, labels),
        # ResNet-18 as torchvision documents it, with 7 classes in place of 1,000.
        "parameters": 11_689_512 - 993 * 513,
    }
    table = {row["metric"]: float(row["score"]) for row in scored.rows if row["source"] == "resnet18"}
    assert list(table) == list(expected)
    assert table == pytest.approx(expected, rel=1e-9, abs=1e-12)
    assert {name: cell["score"] for name, cell in scored.document["scores"]["photos"]["resnet18"].items()} == table
    assert len(scored.rows) == 32
    assert {row["target"] for row in scored.rows} == {"photos"}
    assert all(row["performance"] == "" and float(row["seconds"]) >= 0 for row in scored.rows)
    assert scored.document["targets"]["photos"]["photos"] == 24
    assert scored.document["targets"]["photos"]["classes"] == ["dark", "light"]


def test_models_without_a_head_have_no_leep(run: Callable[..., Any], capsys: pytest.CaptureFixture[str]) -> None:
    scored = run("--metrics=[leep, h_score, log_me, nce]", models="[squeezenet1_1, headless]")
    empty = {(row["source"], row["metric"]) for row in scored.rows if not row["score"]}
    assert empty == {("headless", "leep"), ("headless", "nce")}
    reason = "the model has no source head, whose probabilities are needed"
    cell = scored.document["scores"]["photos"]["headless"]["leep"]
    assert (cell["score"], cell["rank"], cell["reason"]) == (None, None, reason)
    assert scored.document["scores"]["photos"]["squeezenet1_1"]["leep"]["rank"] is None
    for text in ((scored.folder / "report.md").read_text(), capsys.readouterr().out):
        assert f"LEEP has no score for headless: {reason}." in " ".join(text.split())


def test_metric_that_fails_leaves_its_cell_empty(run: Callable[..., Any], photo_folder: Path) -> None:
    for path in (photo_folder / "train").glob("*/*.jpg"):
        if int(path.stem) > 3:
            path.unlink()
    scored = run("--metrics=[n_leep, h_score]")
    assert {row["metric"] for row in scored.rows if row["score"] == ""} == {"n_leep"}
    assert "5 for each of 2 classes" in scored.document["scores"]["photos"]["squeezenet1_1"]["n_leep"]["reason"]


def test_baselines_for_sources_rank_them_without_a_part_in_the_mean(run: Callable[..., Any]) -> None:
    scored = run("--metrics=[trans_rate, parameters, source_accuracy]")
    cells = scored.document["scores"]["photos"]
    assert {source: actual["parameters"]["rank"] for source, actual in cells.items()} == {
        "squeezenet1_1": 2,
        "resnet18": 1,
    }
    for source, actual in cells.items():
        assert scored.document["mean_ranks"]["photos"][source] == actual["trans_rate"]["rank"]
        assert actual["source_accuracy"]["reason"] == "the accuracy of the source on its own task is not known"
    report = (scored.folder / "report.md").read_text()
    assert "- parameters counts the parameters of the source, whatever the target: a baseline" in report


def test_a_photo_that_is_there_twice_is_named_and_counted_once(run: Callable[..., Any], photo_folder: Path) -> None:
    alone = run("--metrics=[log_me, h_score]", output="alone")
    dark, light = photo_folder / "train" / "dark", photo_folder / "train" / "light"
    (dark / "zz.jpg").write_bytes((dark / "3.jpg").read_bytes())
    document = run("--metrics=[log_me, h_score]")
    assert [row["score"] for row in document.rows] == [row["score"] for row in alone.rows]
    assert all(row["score"] for row in document.rows)
    [names] = document.document["repeated_photos"]["photos"]
    assert [Path(name).name for name in names] == ["3.jpg", "zz.jpg"]
    assert document.document["targets"] == alone.document["targets"]
    report = (document.folder / "report.md").read_text()
    assert f"counted once, which leaves out 1: {' = '.join(names)}." in report
    assert "more than once" not in (alone.folder / "report.md").read_text()
    (light / "zz.jpg").write_bytes((dark / "3.jpg").read_bytes())
    report = (run("--metrics=[log_me, h_score]", output="both").folder / "report.md").read_text()
    assert "- Warning: 1 photos are in more than one class" in report


def test_a_saturated_metric_is_named(run: Callable[..., Any]) -> None:
    # Fewer photos than features, which all tell both classes apart.
    scored = run("--metrics=[h_score, log_me]")
    report = (scored.folder / "report.md").read_text()
    assert "- H-score is saturated: 2 of 2 sources have the highest possible score. It does not show which" in report
    assert "- H-score has no interval for squeezenet1\\_1, resnet18: it is the highest possible" in report
    assert "| source | mean rank | H-score (saturated) | LogME |" in report
    assert "all sources the same" not in report
    assert "± 0 " not in report
    assert scored.document["saturated"] == {"photos": {"h_score": ["squeezenet1_1", "resnet18"]}}
    assert list(scored.document["groups"]["photos"]) == ["log_me"]
    assert all(cells["h_score"]["rank"] is None for cells in scored.document["scores"]["photos"].values())


def test_ranks(run: Callable[..., Any]) -> None:
    scored = run("--metrics=[h_score_shrunk, trans_rate, log_me, num_classes]")
    ranks: dict[str, list[int]] = {"squeezenet1_1": [], "resnet18": []}
    for metric in ("h_score_shrunk", "trans_rate", "log_me"):
        cells = {source: scored.document["scores"]["photos"][source][metric] for source in ranks}
        best = max(cells, key=lambda source: cells[source]["score"])
        for source, cell in cells.items():
            assert cell["rank"] == (1 if source == best else 2)
            ranks[source].append(cell["rank"])
    assert all(scored.document["scores"]["photos"][source]["num_classes"]["rank"] is None for source in ranks)
    assert scored.document["mean_ranks"]["photos"] == pytest.approx({s: np.mean(r) for s, r in ranks.items()})


def test_known_performances_fill_the_last_column(run: Callable[..., Any], tmp_path: Path) -> None:
    known = tmp_path / "performances.csv"
    warning = "predicts 'ants' for all validation photos."
    lines = [f"squeezenet1_1,photos,0.875,{warning}", "squeezenet1_1,elsewhere,0.5,"]
    known.write_text("\n".join(["source,target,performance,warning", *lines]))
    scored = run("--metrics=[h_score, log_me]", f"--performances={known}")
    columns = ["metric", "source", "target", "score", "performance", "seconds", "warning", "low", "high"]
    assert list(scored.rows[0]) == columns
    assert {(row["source"], row["warning"]) for row in scored.rows} == {("squeezenet1_1", warning), ("resnet18", "")}
    assert scored.document["performance_warnings"] == {"photos": {"squeezenet1_1": warning}}
    remark = f"- {escape_markdown(f'WARNING: The performance of squeezenet1_1: {warning}')}"
    assert remark in (scored.folder / "report.md").read_text().splitlines()
    assert {(row["source"], row["performance"]) for row in scored.rows} == {
        ("squeezenet1_1", "0.875"),
        ("resnet18", ""),
    }
    assert scored.document["performances"] == {"photos": {"squeezenet1_1": 0.875}}


@pytest.mark.slow
def test_table_goes_into_the_stability_study(run: Callable[..., Any], tmp_path: Path) -> None:
    known = tmp_path / "performances.csv"
    lines = [f"{name},photos,{value}\n" for name, value in (("squeezenet1_1", 0.9), ("resnet18", 0.8))]
    known.write_text("".join(["source,target,performance\n", *lines]))
    scored = run("--metrics=[h_score_shrunk, log_me, gbc]", f"--performances={known}")
    options = [
        f"--table={scored.folder / 'scores.csv'}",
        "--pool_size=2",
        f"--output={tmp_path / 'study'}",
        "--logger=false",
    ]
    evaluate.main(["stability", *options])
    study = json.loads((tmp_path / "study" / "stability.json").read_text())
    assert study["sources"] == ["squeezenet1_1", "resnet18"]
    assert study["targets"] == ["photos"]
    assert set(study["metrics"]) == {"h_score_shrunk", "log_me", "gbc"}


def test_configuration_file_names_the_targets(tmp_path: Path, registry: Path, photo_folder: Path) -> None:
    target = {"class_path": "headstart.datamodules.ClassFolders", "init_args": {"root": str(photo_folder)}}
    config = tmp_path / "config.yaml"
    config.write_text(
        json.dumps(
            {
                "targets": {"held_out": target},
                "models": ["squeezenet1_1"],
                "metrics": ["h_score"],
                "registry": str(registry),
                "split": "validation",
                "output": str(tmp_path / "out"),
                "extraction": {"num_workers": 0, "device": "cpu"},
                "logger": False,
            }
        )
    )
    evaluate.main(["transferability", f"--config={config}"])
    document = json.loads((tmp_path / "out" / "transferability.json").read_text())
    assert document["targets"]["held_out"]["photos"] == 12


def test_origin_of_the_scores_is_reported(run: Callable[..., Any]) -> None:
    scored = run("--metrics=[h_score]", models="[squeezenet1_1]")
    assert scored.document["versions"]["torchvision"] == torchvision.__version__.partition("+")[0]
    assert len(scored.document["digests"]["weights"]["squeezenet1_1"]) == 64


def test_dashboard_mirrors_scores_and_files(run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    published: list[tuple[Any, ...]] = []
    monkeypatch.setattr(DashboardResults, "publish", lambda *arguments: published.append(arguments))
    scored = run("--metrics=[h_score, leep]", "--logger=true", "--dashboard.project=mine")
    [(results, job_type, title, config, document, tables)] = published
    assert (results.dashboard.project, job_type, results.path) == ("mine", "transferability", scored.folder)
    assert title == "transferability, 2 sources, 1 targets, 2 metrics"
    assert document == scored.document
    assert config["metrics"] == ["h_score", "leep"]
    columns, logged = tables["scores"]
    assert list(columns) == list(scored.rows[0])
    assert [str(row[3]) for row in logged] == [row["score"] for row in scored.rows]
    assert sorted(path.name for path in results.written) == ["report.md", "scores.csv", "transferability.json"]
    assert sorted(path.name for path in scored.folder.iterdir()) == sorted(path.name for path in results.written)


def test_intervals_are_those_of_the_metrics_without_each_part(
    run: Callable[..., Any], photo_folder: Path, tmp_path: Path
) -> None:
    scored = run("--metrics=[h_score, log_me, n_leep, num_classes]", "--resamples=4", "--seed=2")
    result = scored.document["scores"]["photos"]["resnet18"]
    assert scored.document["resamples"] == 4
    assert result["num_classes"]["interval"] is None
    assert result["num_classes"]["left_out"] == []
    left_out = np.array(result["log_me"]["left_out"])
    assert left_out.shape == (4,)
    half = stats.t(3).ppf(0.975) * np.sqrt(3 / 4 * ((left_out - left_out.mean()) ** 2).sum())
    value = result["log_me"]["score"]
    assert result["log_me"]["interval"] == pytest.approx([value - half, value + half])
    [row] = [row for row in scored.rows if (row["metric"], row["source"]) == ("log_me", "resnet18")]
    assert [float(row["low"]), float(row["high"])] == result["log_me"]["interval"]
    assert {row["low"] for row in scored.rows if row["metric"] == "num_classes"} == {""}
    groups = scored.document["groups"]["photos"]
    # With as few photos the others have the highest possible score, whichever part is left out.
    assert set(groups) == {"log_me"}
    assert len(result["n_leep"]["starts"]) == 8
    assert set(result["n_leep"]["starts"]) == {0.0}
    assert {name for group in groups["log_me"] for name in group} == {"squeezenet1_1", "resnet18"}
    report = (scored.folder / "report.md").read_text()
    assert "First by mean rank: " in report
    assert f" ± {half:.2g} (" in report
    # The same parts of photos again; and none, which gives the same scores.
    again = run("--metrics=[h_score, log_me]", "--resamples=4", "--seed=2", output="again")
    assert again.document["scores"]["photos"]["resnet18"]["log_me"]["left_out"] == result["log_me"]["left_out"]
    none = run("--metrics=[log_me]", "--resamples=0", output="none")
    assert none.document["scores"]["photos"]["resnet18"]["log_me"]["score"] == value
    assert none.document["groups"] == {"photos": {}}
    assert {row["low"] for row in none.rows} == {""}
    assert "±" not in (none.folder / "report.md").read_text()


def test_why_there_are_no_intervals_of_single_photos_is_reported(run: Callable[..., Any], photo_folder: Path) -> None:
    remark = "There are no intervals: every class has a single photo"
    assert remark not in (run("--metrics=[log_me]", output="several").folder / "report.md").read_text()
    for path in (photo_folder / "train").glob("*/*.jpg"):
        if path.stem != "0":
            path.unlink()
    scored = run("--metrics=[log_me]")
    assert {row["low"] for row in scored.rows} == {""}
    assert remark in (scored.folder / "report.md").read_text()


def test_a_metric_that_fails_without_a_part_has_no_interval(
    run: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = "def fussy(features, labels):\n    assert len(labels) == 24, 'too few'\n    return 1.5\n"
    (tmp_path / "fussy_metrics.py").write_text(code)
    monkeypatch.syspath_prepend(str(tmp_path))
    scored = run("--metrics=[h_score, fussy_metrics.fussy]")
    result = scored.document["scores"]["photos"]["resnet18"]["fussy_metrics.fussy"]
    assert (result["score"], result["interval"]) == (1.5, None)
    assert "without part 1 of the photos" in result["no_interval"]
    assert "too few" in result["no_interval"]
    assert (
        "fussy\\_metrics.fussy has no interval for squeezenet1\\_1, resnet18: "
        in (scored.folder / "report.md").read_text()
    )

"""The dashboard's mirror of a run, read back with the dashboard's own reader; nothing is sent."""

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import wandb
import yaml
from scipy import stats

from headstart.callbacks import ComparisonRun, DashboardLogger
from headstart.callbacks.dashboard import _summary, describe_run
from headstart.output.errors import UserError
from headstart.tests.material.arena import make_entry
from headstart.tests.material.offline_runs import OfflineRun
from headstart.train import compare, main

SERIES = ["val/accuracy/{}", "val/accuracy/{}/p10", "val/accuracy/{}/p90", "reached/{}"]
METHODS = ["baseline", "mean"]
ACCOUNT = ("WANDB_API_KEY", "WANDB_MODE")


class Mirror(OfflineRun):
    """A finished run and what the dashboard's files say of it.

    Args:
        folder: Folder of the run.
        printed: What the run printed.
    """

    def __init__(self, folder: Path, printed: str = "") -> None:
        self.folder, self.printed = folder, printed
        self.results = json.loads((folder / "results.json").read_text())
        super().__init__(folder)


@pytest.fixture(scope="module")
def mirror(tmp_path_factory: pytest.TempPathFactory, small_comparison: Callable[[Path], list[str]]) -> Iterator[Mirror]:
    """Run a comparison with the default logger and without an account."""
    folder = tmp_path_factory.mktemp("mirror")
    with pytest.MonkeyPatch.context() as patch:
        (folder / "netrc").touch()
        patch.setenv("NETRC", str(folder / "netrc"))
        patch.setenv("HEADSTART_CACHE", str(folder / "cache"))
        for name in ("CACHE", "CONFIG", "DATA"):
            patch.setenv(f"WANDB_{name}_DIR", str(folder / "dashboard"))
        for name in ACCOUNT:
            patch.delenv(name, raising=False)
        options = [option for option in small_comparison(folder) if not option.startswith("--trainer.logger")]
        main([*options, f"--trainer.default_root_dir={folder / 'run'}"])
        yield Mirror(folder / "run")


def without_none(value: Any) -> Any:
    """Leave out what is not set, as the reader does."""
    if not isinstance(value, dict):
        return value
    return {key: without_none(part) for key, part in value.items() if part is not None and part != {}}


@pytest.mark.slow
def test_configuration_is_logged_whole_and_once(mirror: Mirror) -> None:
    (logged,) = mirror.of_type("config")
    saved = yaml.safe_load((mirror.folder / "config.yaml").read_text())
    assert without_none(logged["update"]) == without_none(saved)
    assert without_none(mirror.whole["config"]) == without_none(saved)


def test_run_is_named_after_what_it_compares(mirror: Mirror) -> None:
    (run,) = mirror.of_type("run")
    assert run["display_name"] == "mobilenet_v2, random, mean, batch 1, seed 0"
    assert re.fullmatch(r"pictures, mobilenet_v2, random, [0-9a-f]{8}", run["run_group"])
    assert run["tags"] == ["pictures", "mobilenet_v2", "random", "batch 1"]
    assert (run["project"], run["job_type"]) == ("headstart", "comparison")


def test_summary_tells_how_sure_its_scores_are() -> None:
    generator = np.random.default_rng(0)
    baseline, mean = generator.integers(40, 120, 60).astype(float), generator.integers(10, 60, 60).astype(float)
    counts = {"median": 1, "restricted_mean": 2, "reached": 3}
    scores = {
        name: {"samples_to_criterion": [None if x > 100 else x for x in values], **counts}
        for name, values in (("baseline", baseline), ("mean", mean))
    }
    baseline = np.minimum(baseline, 100)
    percents = [100 * (1 - np.delete(mean, i).mean() / np.delete(baseline, i).mean()) for i in range(60)]
    percent = 100 * (1 - mean.mean() / baseline.mean())
    comparison = {"relative_improvement_percent": percent, "ci95": [None, 9.0], "p_value_holm": 0.01}
    document = {"complete": True, "stopped_because": "", "restricted_at": 100, "methods": scores}
    summary = _summary({**document, "comparisons": {"mean": comparison}})
    for name, values in (("baseline", baseline), ("mean", mean)):
        error = stats.sem(values)
        expected = {"n": 60, "standard_error": error}
        expected |= dict(zip(("low", "high"), stats.t.interval(0.95, 59, values.mean(), error), strict=True))
        assert {key: summary[f"samples_to_criterion/{name}/{key}"] for key in expected} == pytest.approx(expected)
    assert [summary[f"samples_to_criterion/baseline/median_{end}"] for end in ("low", "high")] == [
        float(end) for end in stats.quantile_test(baseline, p=0.5).confidence_interval(0.95)
    ]
    wilson = stats.binomtest(3, 60).proportion_ci(method="wilson")
    share = [summary[f"samples_to_criterion/mean/reached_share{key}"] for key in ("", "_low", "_high")]
    assert share == pytest.approx([0.05, wilson.low, wilson.high])
    assert summary["samples_to_criterion/mean/reached_share_standard_error"] == pytest.approx((0.05 * 0.95 / 60) ** 0.5)
    improvement = {key: summary[f"relative_improvement/mean/{key}"] for key in ("n", "low", "high")}
    assert improvement == {"n": 60, "low": None, "high": 9.0}
    # The jackknife agrees with the delta method to first order.
    jackknife = (59 * np.var(percents)) ** 0.5
    assert summary["relative_improvement/mean/standard_error"] == pytest.approx(jackknife, rel=0.02)


def test_every_evaluation_is_in_the_history(mirror: Mirror) -> None:
    rows = [record["item"] for record in mirror.of_type("history") if "samples_seen" in record["item"]]
    assert [row["samples_seen"] for row in rows] == list(range(1, mirror.results["samples_seen"] + 1))
    names = {key.format(method) for key in SERIES for method in METHODS}
    assert all({key for key in row if not key.startswith("_")} == {*names, "samples_seen"} for row in rows)
    for name, scores in mirror.results["methods"].items():
        accuracies = scores["accuracy_at"]["10"]
        assert rows[9][f"val/accuracy/{name}"] == pytest.approx(sum(accuracies) / len(accuracies))


def test_samples_seen_is_the_only_axis(mirror: Mirror) -> None:
    defined = mirror.of_type("metric")
    axes = {metric["glob_name"]: metric["step_metric"] for metric in defined if "glob_name" in metric}
    assert axes == {"val/*": "samples_seen", "reached/*": "samples_seen"}
    assert [metric["name"] for metric in defined if "glob_name" not in metric] == ["samples_seen"]


def test_summary_holds_the_scores(mirror: Mirror) -> None:
    summary, results = mirror.whole["summary"], mirror.results
    assert summary["complete"] is True
    assert summary["stopped_because"] == results["stopped_because"]
    for name, scores in results["methods"].items():
        for key in ("median", "reached", "restricted_mean"):
            assert summary.get(f"samples_to_criterion/{name}/{key}") == scores[key]
        assert summary[f"samples_to_criterion/{name}/n"] == len(scores["samples_to_criterion"])
    comparison = results["comparisons"]["mean"]
    prefix = "relative_improvement/mean"
    assert summary[f"{prefix}/percent"] == pytest.approx(comparison["relative_improvement_percent"])
    assert [summary[f"{prefix}/{end}"] for end in ("low", "high")] == pytest.approx(comparison["ci95"])
    assert summary[f"{prefix}/p_value_holm"] == comparison["p_value_holm"]
    assert all(set(summary[key.format(m)]) == {"max" if key[0] == "v" else "last"} for key in SERIES for m in METHODS)


def test_table_has_a_row_per_ordering(mirror: Mirror) -> None:
    table = json.loads((mirror.run / "files" / mirror.whole["summary"]["orderings"]["path"]).read_text())
    assert table["columns"] == [
        "ordering",
        *(f"{m}: {what}" for m in METHODS for what in ("samples to criterion", "onset")),
    ]
    scores = [mirror.results["methods"][m][key] for m in METHODS for key in ("samples_to_criterion", "onset")]
    assert table["data"] == [[ordering, *(values[ordering] for values in scores)] for ordering in (0, 1)]


@pytest.mark.parametrize("name", ["learning_curves", "criterion_reached"])
def test_pictures_are_those_of_the_run(mirror: Mirror, name: str) -> None:
    picture = mirror.run / "files" / mirror.whole["summary"][name]["path"]
    assert picture.read_bytes() == (mirror.folder / f"{name}.png").read_bytes()


def test_files_are_an_artifact(mirror: Mirror) -> None:
    (artifact,) = (a for a in mirror.of_type("artifact") if a["type"] == "results")
    files = {content["path"]: int(content["size"]) for content in artifact["manifest"]["contents"]}
    written = {path.name: path.stat().st_size for path in mirror.folder.iterdir() if path.is_file()}
    assert files == written
    assert mirror.of_type("exit")[0].get("exit_code", 0) == 0


@pytest.mark.slow
def test_run_that_is_cut_off_is_marked(script: Callable[..., Any], tmp_path: Path) -> None:
    logger = DashboardLogger(save_dir=str(tmp_path / "run"), mode="offline")
    script([[[0] * 12]], results=ComparisonRun(), logger=logger, fail_at=6)
    mirror = Mirror(tmp_path / "run")
    assert mirror.of_type("exit")[0]["exit_code"] == 1
    assert mirror.whole["summary"]["complete"] is False
    assert mirror.whole["summary"]["stopped_because"] == "error: RuntimeError: scripted failure"


def test_failing_dashboard_leaves_the_results_complete(
    script: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: Any) -> None:
        raise RuntimeError("no connection")

    logger = DashboardLogger(save_dir=str(tmp_path / "run"), mode="offline")
    monkeypatch.setattr(DashboardLogger, "log_metrics", lambda *args, **kwargs: None)
    monkeypatch.setattr(DashboardLogger, "publish", fail)
    run = script([[[20] * 12]], results=ComparisonRun(), logger=logger)
    logger.experiment.finish()
    assert str(run.error) == "no connection"
    document = json.loads((run.folder / "results.json").read_text())
    assert document["complete"]
    assert document["stopped_because"] == "every method met the criterion in every ordering"


@pytest.mark.parametrize(("mode", "chosen"), [("auto", "offline"), ("offline", "offline"), ("online", "online")])
def test_mode(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, mode: Any, chosen: str) -> None:
    begun: list[dict[str, Any]] = []

    def begin(**options: Any) -> None:
        begun.append(options)
        raise wandb.Error("that is far enough\nand more")

    monkeypatch.setattr(wandb, "init", begin)
    logger = DashboardLogger(mode=mode, save_dir=str(tmp_path / "made"), entity="team", tags=["a"])
    assert not (tmp_path / "made").exists()
    with pytest.raises(UserError, match=r"^trainer\.logger: .* cannot start a run \(that is far enough\); wandb login"):
        logger.log_hyperparams({})
    assert (begun[0]["mode"], begun[0]["entity"], begun[0]["tags"]) == (chosen, "team", ["a"])
    assert (tmp_path / "made").is_dir()


def test_a_run_of_a_sweep_has_its_values(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    begun: list[dict[str, Any]] = []

    def begin(**options: Any) -> None:
        begun.append(options)
        raise wandb.Error("that is far enough")

    monkeypatch.setattr(wandb, "init", begin)
    defaults = {"dir": str(tmp_path), "name": "n", "group": "default", "tags": []}
    for group in (None, "mine"):
        logger = DashboardLogger(mode="offline", group=group)
        logger.fill_in(defaults, {"group": "sweep" * 40, "project": "pets", "entity": "team"})
        with pytest.raises(UserError):
            logger.log_hyperparams({})
    assert [each["group"] for each in begun] == [("sweep" * 40)[:128], "mine"]
    assert {(each["project"], each["entity"]) for each in begun} == {("pets", "team")}


def test_unknown_mode_of_the_environment_is_reported_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WANDB_MODE", "bogus")
    with pytest.raises(UserError, match=r"^WANDB_MODE: 'bogus'"):
        DashboardLogger()


def options_of_a_run(methods: list[str]) -> Any:
    backbone = SimpleNamespace(name="timm/vit_tiny_patch16_224")
    stream = SimpleNamespace(backbone=backbone, batch_size=4)
    model = SimpleNamespace(methods=dict.fromkeys(methods))
    return SimpleNamespace(data=SimpleNamespace(init_args=stream), model=model, seed_everything=3)


def test_names_of_runs_are_distinct_and_fit_the_dashboard() -> None:
    described = describe_run(options_of_a_run(["lda", "mean"]), "my pets", "some/birds.pth", "12ab34cd")
    assert described["name"] == "timm/vit_tiny_patch16_224, birds, lda + mean, batch 4, seed 3"
    assert described["group"] == "my pets, timm/vit_tiny_patch16_224, birds, 12ab34cd"
    assert described["tags"] == ["my pets", "timm/vit_tiny_patch16_224", "birds", "batch 4"]
    many = describe_run(options_of_a_run([f"method_{i}" for i in range(30)]), "pets", "w" * 60, "12ab34cd")
    assert len(many["name"]) <= 128
    assert many["name"].endswith("…, batch 4, seed 3")
    longest = describe_run(options_of_a_run([]), "p" * 90, "w" * 300, "12ab34cd")
    assert len(longest["name"]) <= 128
    assert len(longest["group"]) == 128
    assert longest["group"].endswith(", 12ab34cd")
    assert max(map(len, longest["tags"])) <= 64
    assert "baseline alone" in describe_run(options_of_a_run([]), "pets", "random", "")["name"]


def test_weights_are_those_of_the_registrys_entry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(config: Any, dataset: str, weights: str, comparison: str) -> None:
        raise UserError(f"weights: {weights}")

    entry = make_entry("mine", "classifier", "flatten", 1280, model_parameters={"name": "mobilenet_v2"})
    (tmp_path / "registry.json").write_text(json.dumps([entry, {**entry, "model_name": "other", "weights": "a.pth"}]))
    monkeypatch.setattr("headstart.cli.comparison.describe_run", refuse)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.pth").touch()
    options = {
        "model.baseline": "headstart.modules.GradientDescent",
        "trainer.logger": "headstart.callbacks.DashboardLogger",
    }
    for name, weights in (("mine", "random"), ("other", "a.pth")):
        stream = {
            "photos": {"class_path": "headstart.datamodules.DrawnPets"},
            "backbone": {"name": name, "registry": "registry.json"},
        }
        (tmp_path / "run.yaml").write_text(
            yaml.safe_dump({"data": {"class_path": "headstart.datamodules.FeatureStream", "init_args": stream}})
        )
        with pytest.raises(UserError, match=f"^weights: {weights}$"):
            compare("run.yaml", options)


def test_missing_wandb_is_reported_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headstart.output.dashboard.find_spec", lambda name: None)
    with pytest.raises(UserError) as caught:
        DashboardLogger()
    message = "wandb is not installed; pip install wandb, or go without: --trainer.logger=false"
    assert str(caught.value) == f"trainer.logger: {message}"


WITHOUT_WANDB = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "wandb":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Blocked())
from headstart.train import main
main(sys.argv[1:])
assert "wandb" not in sys.modules
"""


@pytest.mark.slow
def test_no_wandb_is_needed_without_the_logger(tmp_path: Path, small_comparison: Callable[[Path], list[str]]) -> None:
    command = [sys.executable, "-c", WITHOUT_WANDB, *small_comparison(tmp_path), "--trainer.default_root_dir=run"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    assert (tmp_path / "run" / "results.json").is_file()

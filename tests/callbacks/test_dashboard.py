"""The dashboard's mirror of a run, read back with the dashboard's own reader; nothing is sent."""

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import yaml
from scipy import stats

import headstart
from headstart.callbacks import DashboardLogger
from headstart.callbacks.dashboard import _summary, describe_run
from headstart.metrics.sample_efficiency.curves import Curves
from headstart.tests.material.offline_runs import OfflineRun
from headstart.train import main

METHODS = ["baseline", "mean"]
ACCOUNT = ("WANDB_API_KEY", "WANDB_MODE")


class Mirror(OfflineRun):
    """A run and what the dashboard's files say of it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
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


def test_run_is_named_after_what_it_compares(mirror: Mirror) -> None:
    run, pictures = mirror.settings, {"learning_curves", "criterion_reached"}
    assert mirror.panels == {"results", *pictures, *(f"charts/{name}" for name in pictures)}
    assert re.fullmatch(r"pictures, mobilenet_v2, random, mean, batch 1, seed 0, [0-9a-f]{8}", run["display_name"])
    assert re.fullmatch(r"pictures, mobilenet_v2, random, [0-9a-f]{8}", run["run_group"])
    assert (run["project"], run["job_type"]) == ("headstart", "comparison")
    (logged,) = (each["update"] for each in mirror.of_type("config") if "criterion" in each["update"])
    saved = yaml.safe_load((mirror.folder / "config.yaml").read_text())
    assert logged["criterion"] == saved["criterion"]
    assert logged["run"].items() >= {"dataset": "pictures", "headstart": headstart.__version__}.items()


def test_table_of_methods_can_be_pooled_over_runs(mirror: Mirror) -> None:
    rows, results = mirror.table("results"), mirror.results
    assert {(row["setting"], row["seed"]) for row in rows} == {(mirror.settings["run_group"], 0)}
    for row, (name, scores) in zip(rows, results["methods"].items(), strict=True):
        known = (name, scores["reached"], scores["restricted_mean"])
        assert (row["method"], row["reached"], row["restricted mean"]) == known
        assert row["accuracy at 10"] == pytest.approx(np.mean(scores["accuracy_at"]["10"]))
    assert rows[1]["p"] == results["comparisons"]["mean"]["p_value_holm"]


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
    improvement = {key: summary[f"relative_improvement/mean/{key}"] for key in ("n", "low", "high")}
    assert improvement == {"n": 60, "low": None, "high": 9.0}
    # The jackknife agrees with the delta method to first order.
    jackknife = (59 * np.var(percents)) ** 0.5
    assert summary["relative_improvement/mean/standard_error"] == pytest.approx(jackknife, rel=0.02)


def test_curves_are_logged_where_all_orderings_are_evaluated(mirror: Mirror) -> None:
    rows = [row for row in mirror.history if "samples_seen" in row]
    assert [row["samples_seen"] for row in rows] == list(range(1, mirror.results["samples_seen"] + 1))
    curves = Curves.load(mirror.folder / "curves.npz")
    for name, correct in zip(METHODS, curves.correct, strict=True):
        whole = int((correct >= 0).all(0).sum())
        accuracy = correct[:, :whole] / curves.all_correct
        assert [row[f"val/accuracy/{name}"] for row in rows[:whole]] == pytest.approx(accuracy.mean(0))
        for end in (10, 90):
            band = [row[f"band/accuracy/{name}/p{end}"] for row in rows[:whole]]
            assert band == pytest.approx(np.percentile(accuracy, end, axis=0))
        assert not any(f"val/accuracy/{name}" in row for row in rows[whole:])
        assert all(f"reached/{name}" in row for row in rows)

        lines = mirror.table("Custom Chart Tables/charts/learning_curves_table")
        assert [row["lineVal"] for row in lines if row["lineKey"] == name] == pytest.approx(accuracy.mean(0))


def test_summary_holds_the_scores(mirror: Mirror) -> None:
    for key in ("val/accuracy/mean", "band/accuracy/mean/p10", "reached/mean"):
        assert mirror.axis(key) == ("samples_seen", True)
    # What a method logs itself.
    assert mirror.axis("mean/norm") == ("samples_seen", False)
    summary, results = mirror.whole["summary"], mirror.results
    expected = _summary(results)
    assert {key: summary.get(key) for key in expected} == pytest.approx(expected)
    assert (summary["computed_traces"], summary["reused_traces"]) == (4, 0)


def test_pictures_and_files_are_those_of_the_run(mirror: Mirror) -> None:
    for name in ("learning_curves", "criterion_reached"):
        assert mirror.file(name).read_bytes() == (mirror.folder / f"{name}.png").read_bytes()
    written = {path.name: path.stat().st_size for path in mirror.folder.iterdir() if path.is_file()}
    del written["wandb_run.json"]
    assert mirror.artifact("results") == written
    assert mirror.exit_code == 0


def test_a_run_of_a_sweep_is_tagged_and_keeps_its_group(tmp_path: Path) -> None:
    defaults = {"dir": str(tmp_path), "name": "n", "group": "setting", "tags": ["pets"], "notes": ""}
    logger = DashboardLogger(mode="offline")
    parameters = {"data.batch_size": 4, "seed_everything": 1}
    logger.fill_in(defaults, {"sweep": "ours", "project": "pets", "entity": "team", "parameters": parameters})
    logger.log_hyperparams({"seed_everything": 1})
    logger.experiment.finish()
    mirror = OfflineRun(tmp_path)
    assert (mirror.settings["run_group"], mirror.settings["tags"]) == ("setting", ["pets", "ours"])
    assert (mirror.settings["project"], mirror.settings["entity"]) == ("pets", "team")
    assert mirror.whole["config"] == {"data.batch_size": 4, "seed_everything": 1, "sweep": "ours"}


def namespace(values: dict[str, Any]) -> Any:
    return json.loads(json.dumps(values), object_hook=lambda each: SimpleNamespace(**each))


def options_of_a_run(methods: Mapping[str, Any] | Iterable[str]) -> Any:
    stream = {"backbone": {"name": "timm/vit_tiny_patch16_224"}, "batch_size": 4, "orderings": 2, "max_samples": 8}
    options = namespace(
        {
            "data": {"init_args": stream},
            "criterion": {"threshold": 0.8, "measure": "accuracy", "consecutive": 10},
            "model": {"baseline": None},
            "seed_everything": 3,
        }
    )
    options.model.methods = methods if isinstance(methods, Mapping) else dict.fromkeys(methods)
    return options


def test_names_of_runs_are_distinct_and_fit_the_dashboard() -> None:
    optimizer = {"class_path": "torch.optim.SGD", "init_args": {"lr": 0.5, "momentum": 0}}
    fast = {"class_path": "headstart.modules.GradientDescent", "init_args": {"optimizer": optimizer}}
    methods = {"lda": None, "fast": namespace(fast)}
    described = describe_run(options_of_a_run(methods), "my pets", "some/birds.pth", "12ab34cd")
    setting, changed = "my pets, timm/vit_tiny_patch16_224, birds", "lda + fast(optimizer.lr=0.5)"
    assert described["name"] == f"{setting}, {changed}, batch 4, seed 3, 12ab34cd"
    assert described["group"] == "my pets, timm/vit_tiny_patch16_224, birds, 12ab34cd"
    assert described["tags"] == ["my pets", "timm/vit_tiny_patch16_224", "birds", "batch 4"]
    many = describe_run(options_of_a_run([f"method_{i}" for i in range(30)]), "pets", "w" * 60, "12ab34cd")
    assert len(many["name"]) <= 128
    assert many["name"].endswith("…, batch 4, seed 3, 12ab34cd")
    longest = describe_run(options_of_a_run([]), "p" * 90, "w" * 300, "12ab34cd")
    assert len(longest["name"]) <= 128
    assert len(longest["group"]) == 128
    assert longest["group"].endswith(", 12ab34cd")
    assert max(map(len, longest["tags"])) <= 64
    assert "baseline alone" in describe_run(options_of_a_run([]), "pets", "random", "")["name"]


WITHOUT_WANDB = "import sys; sys.modules['wandb'] = None; from headstart.train import main; main(sys.argv[1:])"


@pytest.mark.slow
def test_no_wandb_is_needed_without_the_logger(tmp_path: Path, small_comparison: Callable[[Path], list[str]]) -> None:
    command = [sys.executable, "-c", WITHOUT_WANDB, *small_comparison(tmp_path), "--trainer.default_root_dir=run"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    assert (tmp_path / "run" / "results.json").is_file()

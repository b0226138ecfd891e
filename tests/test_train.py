"""End-to-end tests of headstart train through its command line, in process."""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from lightning.pytorch import LightningModule, Trainer
from scipy import stats

from headstart import train
from headstart.callbacks import SampleEfficiency, checkpoints
from headstart.cli.commands import COMPARISON
from headstart.cli.task import find_task
from headstart.modules.comparison import Comparison
from headstart.output.errors import INCOMPLETE
from headstart.tests.material.root import ROOT, require_checkout
from headstart.tests.material.training import run

CONFIGS = ROOT / "configs"
DEMO = ["--config", str(CONFIGS / "demo.yaml")]
SMALL = [*DEMO, "--trainer.logger=false", "--data.orderings=3", "--data.max_samples=40", "--data.validation_size=100"]


@pytest.fixture(autouse=True)
def shared_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compute the features of the drawings once for all tests of this file."""
    monkeypatch.setenv("HEADSTART_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))


@pytest.mark.slow
def test_demo_is_a_real_instance(tmp_path: Path) -> None:
    results = run(tmp_path / "demo", *DEMO, "--trainer.logger=false")
    baseline = results["methods"]["baseline"]
    assert results["complete"]
    assert baseline["reached"] >= 15
    assert 30 <= baseline["median"] <= 600
    assert max(comparison["ci95"][0] for comparison in results["comparisons"].values()) > 0


@pytest.mark.slow
def test_same_command_twice_gives_the_same_results(tmp_path: Path) -> None:
    first, second = (run(tmp_path / name, *SMALL) for name in ("first", "second"))
    for results in (first, second):
        del results["times"]
    assert first == second
    names = ("curves.npz", "learning_curves.png", "criterion_reached.png")
    for name in names:
        assert (tmp_path / "first" / name).read_bytes() == (tmp_path / "second" / name).read_bytes(), name


def test_results_do_not_depend_on_where_the_photos_lie(
    fit: Callable[..., Path], photo_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (photo_folder / "train" / "dark" / "3.jpg").write_bytes(b"no photo")
    light = photo_folder / "validation" / "light" / "4.jpg"
    light.write_bytes(light.read_bytes()[:200])
    shutil.copytree(photo_folder, tmp_path / "elsewhere" / photo_folder.name)
    documents = []
    for root in (photo_folder, tmp_path / "elsewhere" / photo_folder.name):
        monkeypatch.setenv("HEADSTART_CACHE", str(tmp_path / f"cache of {root.parent.name}"))
        monkeypatch.setenv("HEADSTART_LEDGER", str(tmp_path / f"ledger of {root.parent.name}"))
        options = (f"--data.photos.root={root}", "--data.on_bad_image=skip", "--data.max_samples=12")
        documents.append(json.loads((fit(*options, folder=root.parent.name) / "results.json").read_text()))
    for document in documents:
        del document["times"], document["environment"]
    assert documents[0] == documents[1]
    assert set(documents[0]["protocol"]["unreadable_photos"]) == {"train/dark/3.jpg", "validation/light/4.jpg"}


def test_a_run_without_a_folder_is_named_by_its_photos(
    small_comparison: Callable[[Path], list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    options = small_comparison(tmp_path)
    named = (tmp_path / "pictures").rename(tmp_path / f"my pets, {'x' * 90}")
    train.main([*options, f"--data.photos.root={named}", "--data.max_samples=6"])
    (folder,) = (path for path in (tmp_path / "runs").iterdir() if path.name != "ledger")
    assert re.fullmatch(rf"my-pets-{'x' * 52}-mobilenet_v2-s0-[0-9a-f]{{8}}", folder.name)
    assert json.loads((folder / "results.json").read_text())["protocol"]["dataset"] == named.name


@pytest.mark.slow
def test_saved_configuration_gives_the_results_again(tmp_path: Path) -> None:
    options = ["--data.batch_size=2", "--seed_everything=3", "--model.baseline.optimizer.lr=0.003"]
    first = run(tmp_path / "first", *SMALL, *options)
    again = run(tmp_path / "again", "--config", str(tmp_path / "first" / "config.yaml"))
    assert again["methods"] == first["methods"]
    assert again["protocol"] == first["protocol"]


@pytest.mark.slow
def test_ordering_alone_gives_what_it_gives_among_many(tmp_path: Path) -> None:
    model = f"--model={CONFIGS / 'model' / 'all_methods.yaml'}"
    many = run(tmp_path / "many", *SMALL, model, "--data.max_samples=60")
    alone = run(
        tmp_path / "alone", *SMALL, model, "--data.max_samples=60", "--data.orderings=1", "--data.first_ordering=2"
    )
    with np.load(tmp_path / "many" / "curves.npz") as m, np.load(tmp_path / "alone" / "curves.npz") as a:
        together, separate = m["correct"][:, 2:], a["correct"]
        common = min(together.shape[-1], separate.shape[-1])
    assert np.abs(together[..., :common] - separate[..., :common]).max() <= 1
    for name, scores in alone["methods"].items():
        assert scores["samples_to_criterion"] == many["methods"][name]["samples_to_criterion"][2:], name


@pytest.mark.slow
def test_seed_changes_the_orderings(tmp_path: Path) -> None:
    first = run(tmp_path / "0", *SMALL)
    second = run(tmp_path / "1", *SMALL, "--seed_everything=1")
    assert first["methods"] != second["methods"]


@pytest.mark.slow
def test_scores_follow_from_the_curves_alone(tmp_path: Path) -> None:
    results = run(tmp_path, *SMALL, "--data.orderings=12", "--data.max_samples=120", "--criterion.threshold=0.7")
    curves = dict(np.load(tmp_path / "curves.npz"))
    accuracy = curves["correct"] / curves["validation_size"]
    limit = int(curves["limit"])
    cut = {}
    for name, traces in zip(curves["methods"].tolist(), accuracy, strict=True):
        met = [_first_streak(trace, float(curves["threshold"]), int(curves["consecutive"])) for trace in traces]
        seen = curves["samples_seen"]
        samples = [None if m is None else int(seen[m[1]]) for m in met]
        scores = results["methods"][name]
        assert scores["samples_to_criterion"] == samples
        assert scores["onset"] == [None if m is None else int(seen[m[0]]) for m in met]
        cut[name] = np.array([limit if s is None else min(s, limit) for s in samples], dtype=float)
        assert scores["restricted_mean"] == pytest.approx(cut[name].mean())
    for name, comparison in results["comparisons"].items():
        difference = cut["baseline"] - cut[name]
        interval = stats.ttest_1samp(difference, 0).confidence_interval(0.95)
        assert comparison["difference_samples"]["ci95"] == pytest.approx(list(interval))
        percent = 100 / cut["baseline"].mean()
        assert comparison["relative_improvement_percent"] == pytest.approx(difference.mean() * percent)
        for end in comparison["ci95"]:
            shifted = cut[name] - (1 - end / 100) * cut["baseline"]
            assert stats.ttest_1samp(shifted, 0).pvalue == pytest.approx(0.05)
        signs = np.array(np.meshgrid(*[[-1, 1]] * len(difference))).reshape(len(difference), -1)
        null = np.abs(difference @ signs)
        assert comparison["p_value"] == pytest.approx((null >= abs(difference.sum()) - 1e-9).mean())


def _first_streak(trace: np.ndarray[Any, Any], threshold: float, length: int) -> tuple[int, int] | None:
    streak = 0
    for i, accuracy in enumerate(trace):
        streak = streak + 1 if accuracy >= threshold else 0
        if streak == length:
            return i - length + 1, i
    return None


@pytest.mark.slow
def test_readme_method(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require_checkout()
    text = (ROOT / "README.md").read_text()
    (code,) = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    assert len(code.strip().splitlines()) <= 25
    (tmp_path / "my_method.py").write_text(code)
    (command,) = re.findall(r"headstart train (.*MovingPrototypes.*)", text)
    monkeypatch.chdir(tmp_path)
    options = command.replace("configs/", f"{CONFIGS}/").split()
    train.main([*options, "--data.orderings=2", "--data.max_samples=40", "--trainer.logger=false"])
    results = json.loads((tmp_path / "runs" / "mine" / "results.json").read_text())
    accuracy = results["methods"]["mine"]["accuracy_at"]["10"]
    assert min(accuracy) > 0.6


@pytest.mark.slow
def test_arguments_of_an_agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sweep = yaml.safe_load((CONFIGS / "sweep" / "demo.yaml").read_text())
    monkeypatch.chdir(tmp_path)
    options = [part for part in sweep["command"] if part.startswith("--") and not part.startswith("--config")]
    assert "--trainer.logger.mode=auto" in options
    fixed = [option for option in options if not option.startswith("--trainer.logger")]
    chosen = [f"--{key}={parameter['values'][-1]}" for key, parameter in sweep["parameters"].items()]
    # An agent that resumes a run adds the last one.
    train.main([*SMALL, *fixed, *chosen, "--_wandb={'desired': 1}"])
    (path,) = tmp_path.glob("runs/*/results.json")
    results = json.loads(path.read_text())
    assert (results["protocol"]["weights"], results["protocol"]["seed"]) == ("random", 1)
    # Every run has all methods, so that the baseline is computed once for each backbone and seed.
    assert set(results["comparisons"]) == {"nearest_class_mean", "recursive_least_squares"}


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (["--data.bach_size=2"], 2, ["bach_size", "batch_size"]),
        (["--data.batch_size=-2"], 2, ["batch_size", "-2"]),
        (["--criterion.threshold=1.5"], 2, ["threshold", "1.5"]),
        (["--config=nowhere.yaml"], 2, ["nowhere.yaml"]),
        (["--data.max_samples=5000"], 1, ["data.max_samples", "5000", "1000"]),
        (["--data.max_samples=5"], 1, ["data.max_samples", "5"]),
        (["--data.backbone.weights=nowhere.pth"], 1, ["backbone.weights", "nowhere.pth"]),
        (["--data.backbone.weights=IMAGENET"], 1, ["backbone.weights", "IMAGENET1K_V1"]),
        (["--data.backbone.name=mobilenet"], 1, ["backbone.name", "mobilenet"]),
        (
            ["--data.photos=headstart.datamodules.CatsAndDogs", "--data.photos.root=nowhere"],
            1,
            ["data.photos.root", "nowhere"],
        ),
        (["--model.methods.mine=nowhere.Mine"], 2, ["nowhere.Mine"]),
        (["--model.methods={a.b: headstart.modules.Replay}"], 1, ["model.methods", "a.b"]),
        (["--trainer.max_epochs=2"], 1, ["trainer.max_epochs", "2"]),
        (["--trainer.limit_train_batches=20"], 1, ["trainer.limit_train_batches", "20"]),
        (["--trainer.fast_dev_run=true"], 1, ["trainer.fast_dev_run", "True"]),
        (["--trainer.accelerator=cpu", "--trainer.devices=2"], 1, ["trainer.devices", "2"]),
        (["--data.cache_dir=/dev/null/cache"], 1, ["data.cache_dir", "/dev/null/cache"]),
        (["--trainer.default_root_dir=/dev/null"], 1, ["trainer.default_root_dir", "/dev/null"]),
    ],
)
def test_a_users_mistake_is_one_line(
    options: list[str], code: int, words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as exit_info:
        train.main([*SMALL, f"--trainer.default_root_dir={tmp_path / 'run'}", *options])
    error = capsys.readouterr().err.strip()
    assert exit_info.value.code == code
    lines = [line for line in error.splitlines() if line.startswith("error:")]
    assert len(lines) == 1
    assert "Traceback" not in error
    assert all(word in lines[0] for word in words), lines[0]
    assert not (tmp_path / "run" / "results.json").exists()


@pytest.mark.slow
@pytest.mark.parametrize(("name", "code", "reason"), [("SIGINT", 130, "interrupted"), ("SIGTERM", 143, "terminated")])
def test_interrupt_keeps_what_was_measured(name: str, code: int, reason: str, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    script = (
        "import os, signal, train\n"
        "from headstart.callbacks import SampleEfficiency\n"
        "log = SampleEfficiency.on_validation_end\n"
        "def interrupt(self, trainer, module):\n"
        "    log(self, trainer, module)\n"
        "    if module.samples_seen == 7:\n"
        f"        os.kill(os.getpid(), signal.{name})\n"
        "SampleEfficiency.on_validation_end = interrupt\n"
        f"train.main({[*SMALL, f'--trainer.default_root_dir={folder}']!r})\n"
    )
    command = [sys.executable, "-c", script]
    process = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert process.returncode == code
    assert process.stderr.splitlines()[-1] == f"error: {reason}"
    assert "Traceback" not in process.stderr
    results = json.loads((folder / "results.json").read_text())
    assert not results["complete"]
    assert results["stopped_because"] == reason
    assert results["evaluations"] == results["samples_seen"] == results["restricted_at"] == 7
    complete = run(folder, *SMALL)
    assert complete["complete"]
    command[-1] = script.replace("train.main([", "train.main(['--results.recompute=true', ")
    process = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert process.returncode == code
    assert "are kept" in process.stdout
    assert json.loads((folder / "results.json").read_text()) == complete


@pytest.mark.slow
def test_run_that_the_trainer_stops_early_is_incomplete(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measure = SampleEfficiency.on_validation_end

    def stop(self: SampleEfficiency, trainer: Trainer, pl_module: LightningModule) -> None:
        measure(self, trainer, pl_module)
        assert isinstance(pl_module, Comparison)
        trainer.should_stop = pl_module.samples_seen == 7

    monkeypatch.setattr(SampleEfficiency, "on_validation_end", stop)
    with pytest.raises(SystemExit) as caught:
        run(tmp_path, *SMALL, "--criterion.threshold=1.0")
    assert caught.value.code == INCOMPLETE
    results = json.loads((tmp_path / "results.json").read_text())
    assert not results["complete"]
    assert "trainer" in results["stopped_because"]
    assert results["evaluations"] == results["samples_seen"] == results["restricted_at"] == 7


@pytest.mark.slow
@pytest.mark.parametrize("limit", [6, 8])
def test_evaluations_off_the_grid_do_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: int) -> None:
    adapt = Comparison.training_step

    def stop(self: Comparison, *batch: Any) -> None:
        adapt(self, *batch)
        # Lightning evaluates once more where it stops between two evaluations.
        self.trainer.should_stop = self.samples_seen == limit

    monkeypatch.setattr(Comparison, "training_step", stop)
    with pytest.raises(SystemExit):
        run(tmp_path, *SMALL, "--criterion.evaluate_every=3", "--criterion.consecutive=3")
    with np.load(tmp_path / "curves.npz") as curves:
        assert curves["samples_seen"].tolist() == [3, 6]


def test_run_without_time_writes_nothing(tmp_path: Path) -> None:
    with pytest.raises(SystemExit) as caught:
        train.main([*SMALL, "--trainer.max_time=00:00:00:00", f"--trainer.default_root_dir={tmp_path / 'run'}"])
    assert caught.value.code == INCOMPLETE
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_a_run_that_is_killed_again_and_again_gives_what_an_undisturbed_one_gives(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    options = [*SMALL, "--data.orderings=100", "--data.max_samples=300", "--data.validation_size=400"]
    options += ["--criterion.threshold=0.99", "--model=configs/model/all_methods.yaml"]

    def start(name: str) -> subprocess.Popen[bytes]:
        run = tmp_path / name / "run"
        arguments = [*options, f"--trainer.default_root_dir={run}"]
        script = (
            "from headstart import train\nfrom headstart.modules.comparison import Comparison\n"
            "step = Comparison.training_step\n"
            "def count(self, batch, batch_idx):\n    step(self, batch, batch_idx)\n"
            f"    print(self.samples_seen, file=open({str(tmp_path / name)!r} + '.txt', 'a'))\n"
            f"Comparison.training_step = count\ntrain.main({arguments!r})"
        )
        environment = {**os.environ, "HEADSTART_LEDGER": str(tmp_path / name / "ledger")}
        command = [sys.executable, "-c", script]
        return subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.DEVNULL)

    assert start("whole").wait() == 0
    fed = tmp_path / "killed.txt"
    for _ in range(30):
        process, before = start("killed"), fed.stat().st_size if fed.exists() else 0
        # One in six while it starts, the others while it measures.
        moment = generator.uniform(0, 6)
        while moment > 1 and process.poll() is None and (not fed.exists() or fed.stat().st_size == before):
            time.sleep(0.05)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(moment)
        process.kill()
        process.wait()
    assert start("killed").wait() == 0
    whole, killed = (json.loads((tmp_path / name / "run" / "results.json").read_text()) for name in ("whole", "killed"))
    assert whole.pop("times")["computed_traces"] == 100 * 9
    killed.pop("times")
    assert whole == killed
    once, again = (
        [int(line) for line in (tmp_path / f"{name}.txt").read_text().split()] for name in ("whole", "killed")
    )
    # Every start continues from a checkpoint, but for those that a kill met before the first one.
    assert set(again) == set(once)
    assert again.count(1) < 10
    assert len(again) - len(once) < len(once)
    print(f"{len(again)} batches fed in pieces, {len(once)} in one")


@pytest.mark.slow
def test_fine_tuning_that_was_cut_off_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoints, "SECONDS_BETWEEN", 0.0)
    monkeypatch.setattr(checkpoints, "SHARE", 1e9)
    backbone = "{name: mobilenet_v2, weights: embedded, model_args: {width_mult: 0.35}}"
    options = ["--config", str(CONFIGS / "fine_tuning.yaml"), "--data.photos=headstart.datamodules.DrawnPets"]
    options += ["--data.photos.train_size=100", f"--data.backbone={backbone}", "--data.max_samples=24"]
    options += ["--data.validation_size=40", "--criterion.threshold=1.0", "--criterion.consecutive=3"]
    options += ["--data.batch_size=2", "--data.orderings=1", "--criterion.evaluate_every=2", "--trainer.logger=false"]
    whole = run(tmp_path / "whole", *options, f"--results.ledger={tmp_path / 'ledger of the whole'}")
    measure, step, fed = SampleEfficiency.on_validation_end, Comparison.training_step, list[int]()

    def interrupt(self: SampleEfficiency, trainer: Trainer, pl_module: LightningModule) -> None:
        measure(self, trainer, pl_module)
        if pl_module.samples_seen == 12 and not fed:
            raise KeyboardInterrupt

    def note(self: Comparison, *batch: Any) -> None:
        step(self, *batch)
        fed.append(self.samples_seen)

    monkeypatch.setattr(SampleEfficiency, "on_validation_end", interrupt)
    with pytest.raises(SystemExit):
        run(tmp_path / "cut", *options)
    monkeypatch.setattr(Comparison, "training_step", note)
    cut = run(tmp_path / "cut", *options)
    # Evaluated every two batches, it continues from the last checkpoint but one evaluation.
    assert fed == [*range(10, 26, 2)]
    assert {**cut, "times": None} == {**whole, "times": None}


@pytest.mark.parametrize(
    "config",
    sorted(path for path in CONFIGS.glob("*.yaml") if path.stem != "base" and "task:" not in path.read_text()),
    ids=lambda path: path.stem,
)
def test_every_shipped_config_runs(
    config: Path, tmp_path: Path, photo_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A registry that a configuration names lies in the checkout.
    monkeypatch.chdir(ROOT)
    options = ["--trainer.logger=false", "--data.max_samples=12", "--data.orderings=1", "--data.validation_size=8"]
    if config.stem not in ("demo", "demo_source"):
        photos = ["--data.photos=headstart.datamodules.ClassFolders", f"--data.photos.root={photo_folder}"]
        backbone = "--data.backbone={name: mobilenet_v2, weights: embedded, model_args: {width_mult: 0.35}}"
        options += [*photos, backbone, "--data.batch_size=1", "--criterion.evaluate_every=1"]
    results = run(tmp_path, "--config", str(config), *options)
    assert results["complete"]
    assert results["evaluations"] >= 10
    assert all(len(scores["accuracy_at"]["10"]) == 1 for scores in results["methods"].values())


@pytest.mark.parametrize("sweep", sorted((CONFIGS / "sweep").glob("*.yaml")), ids=lambda path: path.stem)
def test_every_sweep_names_options_that_exist(sweep: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = yaml.safe_load(sweep.read_text())
    monkeypatch.chdir(ROOT)
    fixed = [part for part in content["command"] if part.startswith("--")]
    chosen = [f"--{key}={parameter['values'][-1]}" for key, parameter in content["parameters"].items()]
    with pytest.raises(SystemExit) as exit_info:
        train.main([*fixed, *chosen, "--print_config"])
    assert exit_info.value.code in (0, None)
    # One group holds all runs, which differ by what is varied.
    grouped = [option.split("=")[0] for option in fixed if "group" in option]
    assert grouped == ["--trainer.logger.group"] * (find_task(fixed) == COMPARISON)
    assert all(len(set(map(str, parameter["values"]))) > 1 for parameter in content["parameters"].values())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "code", "line"),
    [
        (signal.SIGINT, 130, "error: interrupted"),
        (signal.SIGTERM, 143, "error: terminated"),
    ],
)
def test_shutdown_while_features_are_computed_keeps_those_that_are_there(
    number: signal.Signals, code: int, line: str, tmp_path: Path
) -> None:
    environment = {"HEADSTART_CACHE": str(tmp_path / "cache"), "PATH": "", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(ROOT / "train.py"), *SMALL, "--data.photos.train_size=100000"]
    command += ["--data.num_workers=2", f"--trainer.default_root_dir={tmp_path / 'run'}"]
    process = subprocess.Popen(command, env=environment, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    tables = tmp_path / "cache" / "rows"
    deadline = time.monotonic() + 120
    # Rows are complete once they are in the journal.
    while not any(path.read_bytes().count(b"\n") > 1 for path in tables.glob("*/*.journal")):
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(number)
    # The stream is at its end when no process is left that decodes.
    _, output = process.communicate(timeout=60)
    assert process.returncode == code
    assert "Traceback" not in output
    assert [text for text in output.splitlines() if "error" in text.lower()] == [line]
    (table,) = tables.iterdir()
    (journal,) = table.glob("*.journal")
    assert {path.name for path in table.iterdir()} == {"lock", journal.name, f"{journal.stem}.rows"}
    # The journal names the expected rows, their form, and the rows written so far.
    assert len(journal.read_text().splitlines()) >= 2
    assert not (tmp_path / "run").exists()

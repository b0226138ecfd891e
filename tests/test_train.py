"""What `headstart train` computes: results are the same whenever, wherever and with whatever else they are computed."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import yaml

from headstart import train
from headstart.tests.material.training import CONFIGS, SMALL_DEMO, run

pytestmark = pytest.mark.usefixtures("shared_cache")


@pytest.mark.slow
def test_same_command_twice_gives_the_same_results(tmp_path: Path) -> None:
    first, second = (run(tmp_path / name, *SMALL_DEMO) for name in ("first", "second"))
    for results in (first, second):
        # The folder's name is in the configuration.
        del results["times"], results["sha256"], results["files_sha256"]
    assert first == second
    for name in ("curves.npz", "learning_curves.png", "criterion_reached.png"):
        assert (tmp_path / "first" / name).read_bytes() == (tmp_path / "second" / name).read_bytes(), name


@pytest.mark.slow
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
        del document["times"], document["environment"], document["sha256"], document["files_sha256"]
    assert documents[0] == documents[1]
    assert set(documents[0]["protocol"]["unreadable_photos"]) == {"train/dark/3.jpg", "validation/light/4.jpg"}


@pytest.mark.slow
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


def test_saved_configuration_gives_the_results_again(tmp_path: Path) -> None:
    options = ["--data.batch_size=2", "--seed_everything=3", "--model.baseline.optimizer.lr=0.003"]
    first = run(tmp_path / "first", *SMALL_DEMO, *options)
    again = run(tmp_path / "again", "--config", str(tmp_path / "first" / "config.yaml"))
    assert again["methods"] == first["methods"]
    assert again["protocol"] == first["protocol"]


@pytest.mark.slow
def test_ordering_alone_gives_what_it_gives_among_many(tmp_path: Path) -> None:
    options = [*SMALL_DEMO, f"--model={CONFIGS / 'model' / 'all_methods.yaml'}", "--data.max_samples=60"]
    many = run(tmp_path / "many", *options)
    alone = run(tmp_path / "alone", *options, "--data.orderings=1", "--data.first_ordering=2")
    with np.load(tmp_path / "many" / "curves.npz") as m, np.load(tmp_path / "alone" / "curves.npz") as a:
        together, separate = m["correct"][:, 2:], a["correct"]
        common = min(together.shape[-1], separate.shape[-1])
    assert np.abs(together[..., :common] - separate[..., :common]).max() <= 1
    for name, scores in alone["methods"].items():
        assert scores["samples_to_criterion"] == many["methods"][name]["samples_to_criterion"][2:], name


@pytest.mark.slow
def test_arguments_of_an_agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sweep = yaml.safe_load((CONFIGS / "sweep" / "demo.yaml").read_text())
    monkeypatch.chdir(tmp_path)
    options = [part for part in sweep["command"] if part.startswith("--") and not part.startswith("--config")]
    assert "--trainer.logger.mode=auto" in options
    fixed = [option for option in options if not option.startswith("--trainer.logger")]
    values = [f"--{key}={parameter['values'][-1]}" for key, parameter in sweep["parameters"].items()]
    # An agent that resumes a run adds the last one.
    train.main([*SMALL_DEMO, *fixed, *values, "--_wandb={'desired': 1}"])
    (path,) = tmp_path.glob("runs/*/results.json")
    results = json.loads(path.read_text())
    assert (results["protocol"]["weights"], results["protocol"]["seed"]) == ("random", 1)
    # Every run has all methods, so that the baseline is computed once for each backbone and seed.
    assert set(results["comparisons"]) == {"nearest_class_mean", "recursive_least_squares"}

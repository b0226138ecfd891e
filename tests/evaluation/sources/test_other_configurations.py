"""Scores of other photos, weights, metrics or options do not replace those that are there, unless that is asked for."""

import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torchvision

from headstart import evaluate
from headstart.tests.material.arena import ENTRIES, Arena


@pytest.mark.slow
def test_results_of_another_configuration_are_not_replaced_unasked(
    run: Callable[..., Any], refused: Callable[..., str], tmp_path: Path
) -> None:
    first = run("--metrics=[h_score]", "--seed=0")
    known = tmp_path / "performances.csv"
    known.write_text("source,target,performance\nresnet18,photos,0.5\n")
    run("--metrics=[h_score]", "--extraction.num_workers=1", f"--performances={known}")
    for options, key in (
        (["--metrics=[log_me]"], "metrics"),
        (["--metrics=[h_score]", "--split=validation"], "split, targets"),
        (["--metrics=[h_score]", "--models=[resnet18]"], "digests/networks"),
        (["--metrics=[h_score]", "--seed=1"], "seed"),
    ):
        message = refused(lambda options=options: run(*options))
        assert f"holds results of another configuration ({key}); choose another folder" in message
    assert [row["metric"] for row in first.rows] == ["h_score", "h_score"]
    assert {row["metric"] for row in run("--metrics=[log_me]", "--overwrite=true").rows} == {"log_me"}


@pytest.mark.slow
def test_other_photos_of_the_same_folder_are_another_configuration(
    run: Callable[..., Any], refused: Callable[..., str], photo_folder: Path
) -> None:
    options = [
        "--metrics=[h_score]",
        "--targets.photos=UnsplitClassFolders",
        "--targets.photos.validation_fraction=0.5",
    ]
    options += [f"--targets.photos.root={photo_folder / 'train'}"]
    prints = {
        seed: run(*options, f"--targets.photos.split_seed={seed}", output=f"seed-{seed}").document["targets"]["photos"]
        for seed in (0, 1)
    }
    assert prints[0].pop("fingerprint") != prints[1].pop("fingerprint")
    assert prints[0] == prints[1]
    shutil.copytree(photo_folder.parent / "seed-0", photo_folder.parent / "out")
    assert "(targets)" in refused(lambda: run(*options, "--targets.photos.split_seed=1"))
    run(*options, "--targets.photos.split_seed=0")


@pytest.mark.slow
@pytest.mark.parametrize("command", ["transferability", "target-selection", "cka", "cka-search"])
def test_an_altered_file_of_weights_is_another_configuration(
    command: str, arena: Arena, photo_folder: Path, refused: Callable[..., str]
) -> None:
    torch.manual_seed(0)
    network = torchvision.models.squeezenet1_1()
    arena.write("registry.json", [{**ENTRIES[0], "weights": "own.pth"}, *ENTRIES[1:]])
    own = ["--metrics=[num_classes]", "--logger=false", f"--registry={arena.registry}", "--extraction.num_workers=0"]
    own += [f"--output={arena.folder / 'out'}"]
    photos = [f"--targets.own.root={photo_folder}"]
    pool = ["--source=squeezenet1_1", "--dataset=DrawnObjects", "--dataset.train_size=120", "--targets=2"]
    options = {
        "transferability": [*own, "--models=[squeezenet1_1]", "--targets.own=ClassFolders", *photos],
        "target-selection": [*own, *pool],
        "cka": ["--models=[squeezenet1_1, shufflenet_v2_x0_5]", "--logger=false"],
        "cka-search": ["--team=blue", "--size=2"],
    }[command]

    def score(*more: str) -> None:
        torch.save(network.state_dict(), arena.folder / "own.pth")
        if command.startswith("cka"):
            arena.evaluate(command, *options, *more)
        else:
            evaluate.main([command, *options, *more])

    score()
    score()
    with torch.no_grad():
        network.features[0].bias += 1
    assert "holds results of another configuration (digests/networks);" in refused(score)
    score("--overwrite=true")
    score()


def test_an_edited_metric_is_another_configuration(
    run: Callable[..., Any], refused: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"edited_{tmp_path.name.replace('-', '_')}"
    path = tmp_path / f"{name}.py"
    monkeypatch.syspath_prepend(tmp_path)
    path.write_text("def own(features, labels):\n    return 1.0\n")
    run(f"--metrics=[{name}.own]")
    # Another process imports the module again.
    monkeypatch.delitem(sys.modules, name)
    run(f"--metrics=[{name}.own]")
    path.write_text("def own(features, labels):\n    return 2.0\n")
    monkeypatch.delitem(sys.modules, name)
    assert "(digests/metrics)" in refused(lambda: run(f"--metrics=[{name}.own]"))

"""A mistake is one line, and leaves nothing behind."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from headstart import evaluate

SIDE = 32
ENTRY = {
    "model_name": "squeezenet1_1",
    "source": "torchvision",
    "weights": None,
    "layer": "features",
    "embedding": "pool",
    "input_size": [SIDE, SIDE],
    "preprocess": {"mean": [0.5, 0.5, 0.5], "std": [0.2, 0.2, 0.2], "resize": SIDE, "crop": SIDE},
    "output_dim": 512,
}

Refuse = Callable[..., str]


@pytest.fixture
def refuse(tmp_path: Path, photo_folder: Path, capsys: pytest.CaptureFixture[str]) -> Refuse:
    registry = tmp_path / "registry.json"
    registry.write_text(json.dumps([ENTRY]))

    def run(*options: str, target: str = "ClassFolders", root: Path | None = photo_folder) -> str:
        arguments = [f"--targets.pets={target}", f"--registry={registry}", f"--output={tmp_path / 'out'}"]
        arguments += [] if root is None else [f"--targets.pets.root={root}"]
        arguments += [
            "--extraction.num_workers=0",
            "--extraction.device=cpu",
            "--logger=false",
            "--metrics=[h_score, leep]",
        ]
        with pytest.raises(SystemExit) as end:
            evaluate.main(["transferability", *arguments, *options])
        text = capsys.readouterr().err
        assert end.value.code in (1, 2)
        assert text.startswith("error: ")
        assert text.count("\n") == 1, text
        assert not (tmp_path / "out").exists()
        return text

    return run


def test_options(refuse: Refuse, tmp_path: Path) -> None:
    assert "headstart.datamodules.Cats" in refuse(target="headstart.datamodules.Cats", root=None)
    assert "(closest: targets.pets.root)" in refuse("--targets.pets.rot=here")
    assert "guess" in refuse("--metrics=[h_score, guess]")
    assert "metrics: leep, leep given" in refuse("--metrics=[leep, leep]")
    assert "metrics: none given" in refuse("--metrics=[]")
    assert "models: 'resnet50' not in the registry; it has squeezenet1_1" in refuse("--models=[resnet50]")
    assert "seed" in refuse("--seed=-1")
    assert "resamples: one part of the photos has no spread; give 2 or more" in refuse("--resamples=1")
    (tmp_path / "file").touch()
    assert "output: " in refuse(f"--output={tmp_path / 'file'}")
    assert f"model registry {tmp_path / 'none.json'}" in refuse(f"--registry={tmp_path / 'none.json'}")


@pytest.mark.skipif(torch.backends.mps.is_available(), reason="it has the device")
def test_device_that_is_not_there(refuse: Refuse) -> None:
    message = refuse("--extraction.device=mps")
    assert message == "error: extraction.device: torch cannot use mps on this machine; choose another\n"


def test_photos(refuse: Refuse, photo_folder: Path, tmp_path: Path) -> None:
    message = refuse(root=tmp_path / "nowhere")
    assert message.startswith(f"error: targets.pets.root: there is no folder {tmp_path / 'nowhere'}; ")
    subset = json.dumps(
        {
            "class_path": "ClassSubset",
            "init_args": {
                "source": {"class_path": "ClassFolders", "init_args": {"root": str(photo_folder)}},
                "classes": ["dark", "grey"],
            },
        }
    )
    message = refuse(target=subset, root=None)
    assert message == "error: targets.pets.classes: grey not in pictures, whose classes are dark, light\n"
    (photo_folder / "train" / "dark" / "3.jpg").write_bytes(b"no photo")
    message = refuse()
    assert message.startswith("error: target 'pets': photo 'train/dark/3.jpg' cannot be decoded: ")


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (None, "cannot be read"),
        ("source,target\n", "no column performance"),
        ("source,target,performance\nsqueezenet1_1,pets,high\n", "line 2: performance is 'high'"),
        ("source,target,performance\nsqueezenet1_1,pets,\n", "line 2: performance is ''"),
        ("source,target,performance\n" + "squeezenet1_1,pets,1\n" * 2, "line 3: source 'squeezenet1_1' on target"),
        ("source,target,performance\nsqueezenet,pets,1\n", "no pair of the sources squeezenet1_1 and the targets pets"),
    ],
)
def test_performances(refuse: Refuse, tmp_path: Path, content: str | None, expected: str) -> None:
    path = tmp_path / "performances.csv"
    if content is not None:
        path.write_text(content)
    message = refuse(f"--performances={path}")
    assert message.startswith("error: performances: ")
    assert expected in message


def test_run_without_any_score_fails(refuse: Refuse, photo_folder: Path) -> None:
    for path in (photo_folder / "train").glob("*/*.jpg"):
        if int(path.stem) > 3:
            path.unlink()
    message = refuse("--metrics=[n_leep]")
    assert message.startswith("error: metrics: none of the 1 scores can be computed; n_leep, squeezenet1_1, pets: ")

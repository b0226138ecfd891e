"""A mistake is one line, and leaves nothing behind."""

import json
from functools import partial
from pathlib import Path

import pytest
import torch

from headstart.tests.evaluation.sources.conftest import score, write_registry
from headstart.tests.material.mistakes import error_line

KNOWN = "source,target,performance\n"
SUBSET = {"classes": ["dark", "grey"], "source": {"class_path": "ClassFolders", "init_args": {"root": "pictures"}}}
# Options, the content of the table of performances, and what the message has.
MISTAKES: list[tuple[str, str | None, str]] = [
    ("--targets.pets=headstart.datamodules.Cats", None, "headstart.datamodules.Cats"),
    ("--targets.photos.rot=here", None, "(closest: targets.photos.root)"),
    ("--targets.photos.root=nowhere", None, "error: targets.photos.root: there is no folder nowhere; "),
    (
        f"--targets.pets={json.dumps({'class_path': 'ClassSubset', 'init_args': SUBSET})}",
        None,
        "error: targets.pets.classes: grey not in pictures, whose classes are dark, light",
    ),
    ("--metrics=[h_score, guess]", None, "guess"),
    ("--metrics=[leep, leep]", None, "metrics: leep, leep given"),
    ("--metrics=[]", None, "metrics: none given"),
    ("--models=[resnet50]", None, "models: 'resnet50' not in the registry; it has squeezenet1_1"),
    ("--seed=-1", None, "seed"),
    ("--resamples=1", None, "resamples: one part of the photos has no spread; give 2 or more"),
    ("--output=registry.json", None, "output: "),
    ("--registry=none.json", None, "model registry none.json"),
    ("--performances=known.csv", None, "performances: "),
    (
        "--performances=known.csv",
        "source,target\n",
        "performances: no column performance in the first line",
    ),
    (
        "--performances=known.csv",
        f"{KNOWN}squeezenet1_1,photos,high\nsqueezenet1_1,photos,1\nsqueezenet1_1,photos,1\n",
        "2 wrong entries: row 2, performance is 'high' and not a finite number; row 4, source 'squeezenet1_1' on",
    ),
    ("--performances=known.csv", f"{KNOWN}squeezenet,photos,1\n", "no pair of the sources squeezenet1_1 and the"),
]


def test_mistakes_are_one_line(
    tmp_path: Path, photo_folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_registry(tmp_path)
    run = partial(score, tmp_path, photo_folder, "--metrics=[h_score, leep]", models="[squeezenet1_1]", output="out")
    wrong = []
    for option, known, message in MISTAKES:
        Path("known.csv").unlink(missing_ok=True)
        if known is not None:
            Path("known.csv").write_text(known)
        line = error_line(capsys, partial(run, option))
        if message not in line or Path("out").exists():
            wrong.append((option, line))
    assert wrong == [], wrong

    (photo_folder / "train" / "dark" / "3.jpg").write_bytes(b"no photo")
    line = error_line(capsys, run, 1)
    assert line.startswith("error: target 'photos': photo 'train/dark/3.jpg' cannot be decoded: ")
    assert not Path("out").exists()


@pytest.mark.skipif(torch.backends.mps.is_available(), reason="it has the device")
def test_device_that_is_not_there(tmp_path: Path, photo_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_registry(tmp_path)
    options = ("--metrics=[h_score]", "--extraction.device=mps")
    run = partial(score, tmp_path, photo_folder, *options, models="[squeezenet1_1]", output="out")
    message = "error: extraction.device: torch cannot use mps on this machine; choose another"
    assert error_line(capsys, run) == message

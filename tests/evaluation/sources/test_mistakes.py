"""A mistake is one line, and leaves nothing behind."""

import json
from functools import partial
from pathlib import Path

import pytest

from headstart.tests.evaluation.sources.conftest import score, write_registry
from headstart.tests.material.mistakes import error_line

KNOWN = "source,target,performance\n"
SUBSET = {"classes": ["dark", "grey"], "source": {"class_path": "ClassFolders", "init_args": {"root": "pictures"}}}
PETS = json.dumps({"class_path": "ClassSubset", "init_args": SUBSET})
# Options, and what the message has.
MISTAKES = {
    "--targets.photos.root=nowhere": "error: targets.photos.root: there is no folder nowhere; ",
    f"--targets.pets={PETS}": "error: targets.pets.classes: grey not in pictures, whose classes are dark, light",
    "--metrics=[h_score, guess]": "guess",
    "--metrics=[leep, leep]": "metrics: leep, leep given",
    "--models=[resnet50]": "models: 'resnet50' not in the registry; it has squeezenet1_1",
    "--resamples=1": "resamples: one part of the photos has no spread; give 2 or more",
    "--output=registry.json": "output: ",
    "--registry=none.json": "model registry none.json",
    "--performances=0.csv": "performances: no column performance in the first line",
    "--performances=1.csv": "2 wrong entries: row 2, performance is 'high' and not a finite number; row 4, source 'sq",
    "--performances=2.csv": "no pair of the sources squeezenet1_1 and the",
}
# Content of the numbered files.
TABLES = [
    "source,target\n",
    f"{KNOWN}squeezenet1_1,photos,high\nsqueezenet1_1,photos,1\nsqueezenet1_1,photos,1\n",
    f"{KNOWN}squeezenet,photos,1\n",
]


def test_mistakes_are_one_line(
    tmp_path: Path, photo_folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_registry(tmp_path)
    for number, text in enumerate(TABLES):
        Path(f"{number}.csv").write_text(text)
    run = partial(score, tmp_path, photo_folder, "--metrics=[h_score, leep]", models="[squeezenet1_1]", output="out")
    lines = {option: error_line(capsys, partial(run, option)) for option in MISTAKES}
    assert [(option, line) for option, line in lines.items() if MISTAKES[option] not in line] == []

    (photo_folder / "train" / "dark" / "3.jpg").write_bytes(b"no photo")
    line = error_line(capsys, run, 1)
    assert line.startswith("error: target 'photos': photo 'train/dark/3.jpg' cannot be decoded: ")
    assert not Path("out").exists()

"""The validator as operators and machines call it."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from headstart.__main__ import main
from headstart.tests.material.arena import make_entry
from headstart.tests.material.mistakes import error_line


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write documents and submissions into the current folder; the variables name the documents."""
    models = ["small", "large", "huge"]
    stimuli = [{"dataset_name": "photos", "image_identifier": f"{i}.png"} for i in range(3)]
    documents = {
        "registry.json": [make_entry(name, "head", "pool", 8) for name in models],
        "blue.json": {"models": models},
        "red.json": {"differentiating_images": stimuli[:2]},
        "bad.json": {"contract_version": "2.0", "models": ["small", "smal", "small\x1b[2J"]},
        "broken.json": [{"model_name": 1}],
        "broken.jsonl": {"dataset_name": 1},
        "broken.yaml": {"name": "ours", "teams": {}},
        "ours.yaml": {"name": "ours", "title": "Ours", "teams": {"blue": {"count": {"exactly": 2}}}},
    }
    for name, document in documents.items():
        (tmp_path / name).write_text(json.dumps(document))
    (tmp_path / "catalog.jsonl").write_text("\n".join(json.dumps(stimulus) for stimulus in stimuli))
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("HACKATHON_DATASET_ROOT")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HACKATHON_MODEL_REGISTRY", "registry.json")
    monkeypatch.setenv("HACKATHON_STIMULI_CATALOG", "catalog.jsonl")
    return tmp_path


@pytest.fixture
def validate(folder: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    """Run the validator in this process; give its exit code and its lines."""

    def run(*args: str) -> tuple[int, list[str]]:
        code = 0
        try:
            main(["validate", *args])
        except SystemExit as ended:
            code = int(ended.code or 0)
        printed = capsys.readouterr()
        assert printed.err == ""
        return code, printed.out.splitlines()

    return run


# What is typed, and the line that answers.
VALID: dict[tuple[str, ...], str] = {
    ("blue.json",): "valid: Blue Team submission of 3 models under contract 1.0",
    ("red.json", "--team=red"): "valid: Red Team submission of 2 stimuli under contract 1.0",
}
# What is typed, and the beginnings of the lines, one for each problem.
INVALID: dict[tuple[str, ...], tuple[str, ...]] = {
    ("bad.json",): (
        'submission bad.json: /contract_version "2.0": contract version "2.0" is not accepted; the accepted versions',
        'submission bad.json: /models/1 "smal": not in the model registry (closest: "small")',
        'submission bad.json: /models/2 "small\\u001b[2J": must contain no control characters, no square brackets, no ',
    ),
    ("red.json", "--team=blue"): ("submission red.json: /differentiating_images: this is a Red Team submission",),
    ("blue.json", "--challenge=ours.yaml"): ("submission blue.json: /models: must have exactly 2 models in this",),
    ("red.json", "--check_files"): ('stimuli: "photos": set HACKATHON_DATASET_ROOT_PHOTOS to the dataset\'s folder',),
}
# Mistakes of the operator, and the beginning of the one line on the other stream.
REFUSED: dict[tuple[str, ...], str] = {
    ("blue.json", "--challenge=broken.yaml"): "challenge broken.yaml: 2 problems: /title: is required; /teams {}: ",
    ("blue.json", "--registry=broken.json"): "model registry broken.json: 6 problems: /0/model_name 1: must be a valid",
    ("blue.json", "--catalog=broken.jsonl"): "stimuli catalog broken.jsonl: 2 problems: /dataset_name 1: line 1: must",
}


def test_submissions_and_documents(validate: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert {args: validate(*args) for args in VALID} == {args: (0, [line]) for args, line in VALID.items()}
    wrong: list[Any] = []
    for args, expected in INVALID.items():
        code, lines = validate(*args)
        begins = [line.startswith(words) for line, words in zip(lines, expected, strict=False)]
        if code != 1 or len(lines) != len(expected) or not all(begins):
            wrong.append((args, lines))
    for args, words in REFUSED.items():
        line = error_line(capsys, lambda args=args: main(["validate", *args]))  # type: ignore[misc]
        if not line.startswith(f"error: {words}"):
            wrong.append((args, line))
    assert not wrong, wrong


def test_files_are_looked_for(validate: Any, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HACKATHON_DATASET_ROOT", str(folder))
    (folder / "photos").mkdir()
    for i in range(2):
        (folder / "photos" / f"{i}.png").touch()
    assert validate("red.json", "--check_files")[0] == 0
    code, lines = validate("blue.json", "--check_files")
    assert (code, lines) == (1, [f'stimuli: "photos/2.png": there is no file {folder / "photos" / "2.png"}'])


def test_loads_nothing_heavy() -> None:
    program = "import sys, headstart.scripts.validate_submission; print(*{name.split('.')[0] for name in sys.modules})"
    loaded = subprocess.check_output([sys.executable, "-c", program], text=True).split()
    heavy = {"torch", "numpy", "lightning", "torchvision", "timm", "PIL", "scipy", "matplotlib", "wandb"}
    assert "pydantic" in loaded
    assert heavy.isdisjoint(loaded)

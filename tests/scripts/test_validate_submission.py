"""The validator as operators and machines call it."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from headstart.contract.schema import CONTRACT_VERSION
from headstart.scripts import validate_submission
from headstart.scripts.validate_submission import main
from headstart.tests.material.arena import make_entry

SCRIPT = Path(__file__).parents[2] / "scripts" / "validate_submission.py"
VARIABLES = {"registry": "HACKATHON_MODEL_REGISTRY", "catalog": "HACKATHON_STIMULI_CATALOG"}


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
    }
    for name, document in documents.items():
        (tmp_path / name).write_text(json.dumps(document))
    (tmp_path / "catalog.jsonl").write_text("\n".join(json.dumps(stimulus) for stimulus in stimuli))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(VARIABLES["registry"], "registry.json")
    monkeypatch.setenv(VARIABLES["catalog"], "catalog.jsonl")
    return tmp_path


@pytest.fixture
def validate(folder: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    """Run the validator in this process; give its exit code and its lines."""

    def run(*args: str) -> tuple[int, list[str]]:
        with pytest.raises(SystemExit) as caught:
            main(args)
        printed = capsys.readouterr()
        assert printed.err == "" or caught.value.code == 2
        return int(caught.value.code or 0), printed.out.splitlines()

    return run


def test_valid_submissions_in_one_line(validate: Any) -> None:
    assert validate("blue.json") == (0, ["valid: Blue Team submission of 3 models under contract 1.0"])
    assert validate("red.json") == (0, ["valid: Red Team submission of 2 stimuli under contract 1.0"])


def test_every_problem_on_its_line(validate: Any) -> None:
    code, lines = validate("bad.json")
    assert code == 1
    assert lines == [
        'submission bad.json: /contract_version "2.0": '
        'contract version "2.0" is not accepted; the accepted versions are "1.0" and "1.1"',
        'submission bad.json: /models/1 "smal": not in the model registry (closest: "small")',
        'submission bad.json: /models/2 "small\\u001b[2J": must contain no control characters, no square brackets, no '
        "letters but Latin ones, no signs beyond ASCII, and only single spaces between words",
    ]


def test_json_for_machines(validate: Any) -> None:
    code, lines = validate("blue.json", "--json")
    valid = {"valid": True, "contract_version": CONTRACT_VERSION, "team": "blue", "submission": "blue.json"}
    assert (code, json.loads("\n".join(lines))) == (0, {**valid, "problems": []})
    code, lines = validate("bad.json", "--json", "--team=blue")
    document = json.loads("\n".join(lines))
    assert (code, document["valid"], document["team"], document["contract_version"]) == (1, False, "blue", "1.0")
    assert document["problems"][1] == {
        "document": "submission",
        "pointer": "/models/1",
        "value": '"smal"',
        "rule": 'not in the model registry (closest: "small")',
    }
    assert len(document["problems"]) == 3


NOBODY = "~nobody-of-that-name/a"
# What is typed after a submission, and the beginnings of the lines that answer.
REFUSED: dict[tuple[str, ...], tuple[str, ...]] = {
    ("",): ("submission: nothing is given; name a file or a data set",),
    (NOBODY,): (f"submission {NOBODY}: there is no such file",),
    ("red.json", "--team=blue"): ("submission red.json: /differentiating_images: this is a Red Team submission",),
    ("blue.json", "--challenge="): ("challenge: 1 problem: no file is given; name one, or a challenge of",),
    ("blue.json", "--challenge=none"): ("challenge none: 1 problem: there is no such file",),
    ("blue.json", "--challenge=broken.yaml"): ("challenge broken.yaml: 2 problems: /title: is required; /teams {}: ",),
    ("blue.json", "--challenge=ours.yaml"): ("submission blue.json: /models: must have exactly 2 models in this",),
    ("blue.json", f"--registry={NOBODY}"): (f"model registry {NOBODY}: 1 problem: there",),
    ("blue.json", f"--catalog={NOBODY}"): (f"stimuli catalog {NOBODY}: 1 problem: there",),
    ("bad.json", "--registry=broken.json", "--catalog=broken.jsonl"): (
        "model registry broken.json: 6 problems: /0/model_name 1: must be a valid string; ",
        "stimuli catalog broken.jsonl: 2 problems: /dataset_name 1: line 1: must be a valid string; ",
    ),
    ("blue.json", "--max_catalog_bytes=9"): (
        "stimuli catalog catalog.jsonl: 1 problem: is larger than the limit of 9 bytes; max_catalog_bytes raises it",
    ),
    ("blue.json", "--max_bytes=9"): ("submission blue.json: is larger than the limit of 9 bytes",),
    ("red.json", "--check_files"): ('stimuli: "photos": set HACKATHON_DATASET_ROOT_PHOTOS to the dataset\'s folder',),
}
# Mistakes in the options are told on the other stream.
MISTYPED = ((), ("blue.json", "--tem=blue"), ("blue.json", "--team=green"), ("blue.json", "--max_bytes=0"), ("a", "b"))


def test_what_is_refused(validate: Any, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("HACKATHON_DATASET_ROOT")]:
        monkeypatch.delenv(name)
    (folder / "broken.json").write_text('[{"model_name": 1}]')
    (folder / "broken.jsonl").write_text('{"dataset_name": 1}')
    (folder / "broken.yaml").write_text("name: ours\nteams: {}\n")
    (folder / "ours.yaml").write_text("name: ours\ntitle: Ours\nteams: {blue: {count: {exactly: 2}}}\n")
    wrong = []
    for args, expected in REFUSED.items():
        code, lines = validate(*args)
        told = [line.startswith(words) for line, words in zip(lines, expected, strict=False)]
        if code != 1 or len(lines) != len(expected) or not all(told):
            wrong.append((args, lines))
    wrong += [(args, found) for args in MISTYPED if (found := validate(*args)) != (2, [])]
    assert not wrong, wrong
    for args in (("red.json", "--team=red"), ("blue.json", "--challenge=contract")):
        assert validate(*args)[0] == 0

    # Each problem names its document, for machines.
    _, lines = validate("bad.json", "--registry=broken.json", "--catalog=broken.jsonl", "--json")
    document = json.loads("\n".join(lines))
    assert (document["valid"], document["team"]) == (False, None)
    assert [problem["document"] for problem in document["problems"]] == ["registry"] * 6 + ["catalog"] * 2
    for args, name in ((("absent.json",), "submission"), (("blue.json", "--check_files"), "stimuli")):
        code, lines = validate(*args, "--json")
        (problem,) = json.loads("\n".join(lines))["problems"]
        assert (code, problem["document"]) == (1, name)


def test_files_are_looked_for_where_asked(validate: Any, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HACKATHON_DATASET_ROOT", str(folder))
    (folder / "photos").mkdir()
    for i in range(2):
        (folder / "photos" / f"{i}.png").touch()
    assert validate("red.json", "--check_files")[0] == 0
    code, lines = validate("blue.json", "--check_files")
    assert (code, lines) == (1, [f'stimuli: "photos/2.png": there is no file {folder / "photos" / "2.png"}'])


def test_runs_by_its_path_from_any_folder_without_an_installation(folder: Path) -> None:
    command = [sys.executable, "-I", str(SCRIPT), "blue.json"]
    finished = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert (finished.returncode, finished.stderr) == (0, "")
    assert finished.stdout == "valid: Blue Team submission of 3 models under contract 1.0\n"


def test_loads_nothing_heavy() -> None:
    loaded_by = "print(*sorted({name.split('.')[0] for name in sys.modules}))"
    program = f"import sys, headstart.scripts.validate_submission; {loaded_by}"
    loaded = subprocess.check_output([sys.executable, "-c", program], text=True).split()
    heavy = {"torch", "numpy", "lightning", "torchvision", "timm", "PIL"}
    heavy |= {"scipy", "matplotlib", "wandb", "jsonargparse"}
    assert "pydantic" in loaded
    assert heavy.isdisjoint(loaded)


def test_interrupted(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(validate_submission, "read_catalog", interrupt)
    with pytest.raises(SystemExit) as caught:
        main(["blue.json"])
    assert caught.value.code == 130
    assert capsys.readouterr() == ("", "error: interrupted\n")


def test_data_set_as_a_submission(folder: Path, validate: Any) -> None:
    pytest.importorskip("datasets")
    (folder / "entry").mkdir()
    rows = [{"model_name": name, "layer_name": "head"} for name in ("small", "large")]
    (folder / "entry" / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert validate("entry") == (0, ["valid: Blue Team submission of 2 models under contract 1.1"])

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

SCRIPT = Path(__file__).parents[2] / "scripts" / "validate_submission.py"
VARIABLES = {"registry": "HACKATHON_MODEL_REGISTRY", "catalog": "HACKATHON_STIMULI_CATALOG"}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write documents and submissions into the current folder; the variables name the documents."""
    preprocess = {"mean": [0.5, 0.5, 0.5], "std": [0.5, 0.5, 0.5], "resize": 64, "crop": 64}
    entry = {"source": "timm", "weights": None, "layer": "head", "embedding": "pool", "output_dim": 8}
    models = ["small", "large", "huge"]
    registry = [{"model_name": name, **entry, "input_size": [64, 64], "preprocess": preprocess} for name in models]
    stimuli = [{"dataset_name": "photos", "image_identifier": f"{i}.png"} for i in range(3)]
    documents = {
        "registry.json": registry,
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


def test_team(validate: Any) -> None:
    assert validate("red.json", "--team", "red")[0] == 0
    code, (line,) = validate("red.json", "--team", "blue")
    assert code == 1
    assert "this is a Red Team submission" in line


@pytest.mark.parametrize(("option", "variable"), VARIABLES.items())
def test_options_win_over_variables(
    validate: Any, monkeypatch: pytest.MonkeyPatch, option: str, variable: str, folder: Path
) -> None:
    chosen = os.environ[variable]
    monkeypatch.setenv(variable, "absent")
    code, (line,) = validate("blue.json")
    assert code == 1
    assert line.endswith(" absent: 1 problem: there is no such file")
    assert validate("blue.json", f"--{option}={chosen}")[0] == 0


@pytest.mark.parametrize(
    ("args", "line"),
    [
        ([""], "submission: nothing is given; name a file or a data set"),
        (["~nobody-of-that-name/a.json"], "submission ~nobody-of-that-name/a.json: there is no such file"),
        (["blue.json", "--challenge="], "challenge: 1 problem: no file is given; name one, or a challenge of"),
        (["blue.json", "--registry=~nobody-of-that-name/a"], "model registry ~nobody-of-that-name/a: 1 problem: there"),
        (["blue.json", "--catalog=~nobody-of-that-name/a"], "stimuli catalog ~nobody-of-that-name/a: 1 problem: there"),
    ],
)
def test_paths_that_lead_nowhere(validate: Any, args: list[str], line: str) -> None:
    code, lines = validate(*args)
    assert code == 1
    assert lines[0].startswith(line)
    assert len(lines) == 1


def test_broken_documents_of_the_operator_are_one_line(validate: Any, folder: Path) -> None:
    (folder / "broken.json").write_text("[{}]")
    code, (line,) = validate("bad.json", "--registry=broken.json")
    assert code == 1
    assert line.startswith("model registry broken.json: 6 problems: /0/model_name: is required; ")
    (folder / "broken.jsonl").write_text('{"dataset_name": "photos", "image_identifier": "a"}\n{"dataset_name": 1}')
    code, lines = validate("bad.json", "--registry=broken.json", "--catalog=broken.jsonl")
    assert (code, lines[0]) == (1, line)
    assert lines[1:] == [
        "stimuli catalog broken.jsonl: 2 problems: /dataset_name 1: line 2: must be a valid string; "
        "/image_identifier: line 2: is required"
    ]


def test_broken_documents_of_the_operator_for_machines(validate: Any, folder: Path) -> None:
    (folder / "broken.json").write_text('[{"model_name": 1}]')
    (folder / "broken.jsonl").write_text('{"dataset_name": "photos"}')
    code, lines = validate("bad.json", "--registry=broken.json", "--catalog=broken.jsonl", "--json")
    document = json.loads("\n".join(lines))
    assert (code, document["valid"], document["team"]) == (1, False, None)
    problems = document["problems"]
    assert problems[0] == {
        "document": "registry",
        "pointer": "/0/model_name",
        "value": "1",
        "rule": "must be a valid string",
    }
    assert [problem["document"] for problem in problems] == ["registry"] * 6 + ["catalog"]
    assert problems[-1]["pointer"] == "/image_identifier"
    code, lines = validate("bad.json", "--catalog=absent", "--json")
    (problem,) = json.loads("\n".join(lines))["problems"]
    assert problem == {"document": "catalog", "pointer": "", "value": "", "rule": "there is no such file"}


def test_missing_submission(validate: Any) -> None:
    assert validate("absent.json") == (1, ["submission absent.json: there is no such file"])
    code, lines = validate("absent.json", "--json")
    document = json.loads("\n".join(lines))
    assert (code, document["team"], document["problems"]) == (
        1,
        None,
        [{"document": "submission", "pointer": "", "value": "", "rule": "there is no such file"}],
    )


def test_files_are_looked_for_where_asked(validate: Any, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("HACKATHON_DATASET_ROOT")]:
        monkeypatch.delenv(name)
    for submission in ("blue.json", "red.json"):
        assert validate(submission)[0] == 0
    code, (line,) = validate("red.json", "--check_files")
    assert code == 1
    assert line.startswith('stimuli: "photos": set HACKATHON_DATASET_ROOT_PHOTOS to the dataset\'s folder')
    assert line.endswith("(2 stimuli of data set photos)")
    monkeypatch.setenv("HACKATHON_DATASET_ROOT", str(folder))
    (folder / "photos").mkdir()
    for i in range(2):
        (folder / "photos" / f"{i}.png").touch()
    assert validate("red.json", "--check_files")[0] == 0
    code, lines = validate("blue.json", "--check_files")
    assert (code, lines) == (1, [f'stimuli: "photos/2.png": there is no file {folder / "photos" / "2.png"}'])
    code, lines = validate("blue.json", "--check_files", "--json")
    document = json.loads("\n".join(lines))
    assert (code, document["valid"]) == (1, False)
    assert document["problems"][0]["document"] == "stimuli"
    (folder / "photos" / "2.png").symlink_to("/etc/passwd")
    assert "leads out of the dataset's root" in validate("blue.json", "--check_files")[1][0]


def test_size_limit_of_a_catalog(validate: Any, folder: Path) -> None:
    size = (folder / "catalog.jsonl").stat().st_size
    assert validate("blue.json", f"--max_catalog_bytes={size}")[0] == 0
    code, (line,) = validate("blue.json", f"--max_catalog_bytes={size - 1}")
    assert (code, line.endswith("bytes; max_catalog_bytes raises it")) == (1, True)


def test_size_limit(validate: Any, folder: Path) -> None:
    size = (folder / "blue.json").stat().st_size
    assert validate("blue.json", f"--max_bytes={size}")[0] == 0
    assert validate("blue.json", f"--max_bytes={size - 1}") == (
        1,
        [f"submission blue.json: is larger than the limit of {size - 1} bytes"],
    )


@pytest.mark.parametrize(
    "args",
    [
        [],
        ["blue.json", "--tem=blue"],
        ["blue.json", "--team=green"],
        ["blue.json", "--max_bytes=0"],
        ["a", "b"],
        ["a", "--js"],
    ],
)
def test_wrong_options(validate: Any, args: list[str]) -> None:
    assert validate(*args) == (2, [])


def test_runs_by_its_path_from_any_folder_without_an_installation(folder: Path) -> None:
    command = [sys.executable, "-I", str(SCRIPT), "blue.json"]
    finished = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert (finished.returncode, finished.stderr) == (0, "")
    assert finished.stdout == "valid: Blue Team submission of 3 models under contract 1.0\n"


def test_loads_nothing_heavy() -> None:
    loaded_by = "print(*sorted({name.split('.')[0] for name in sys.modules}))"
    program = f"import sys, headstart.scripts.validate_submission; {loaded_by}"
    loaded = subprocess.check_output([sys.executable, "-c", program], text=True).split()
    heavy = {
        "torch",
        "numpy",
        "lightning",
        "torchvision",
        "timm",
        "PIL",
        "scipy",
        "matplotlib",
        "wandb",
        "jsonargparse",
    }
    assert "pydantic" in loaded
    assert heavy.isdisjoint(loaded)


def test_a_challenges_own_rules(folder: Path, validate: Any) -> None:
    rules = "name: ours\ntitle: Ours\nteams: {blue: {count: {exactly: 2}}}\n"
    (folder / "ours.yaml").write_text(rules)
    assert validate("blue.json", "--challenge=contract")[0] == 0
    code, lines = validate("blue.json", "--challenge=ours.yaml")
    rule = "must have exactly 2 models in this challenge, not 3"
    assert (code, lines) == (1, [f"submission blue.json: /models: {rule}"])
    code, lines = validate("red.json", "--challenge=realign_2026", "--json")
    (problem,) = json.loads("\n".join(lines))["problems"]
    assert (code, problem["pointer"]) == (1, "/differentiating_images")
    assert problem["rule"] == "must have exactly 1000 stimuli in this challenge, not 2"


def test_a_challenge_that_is_none(folder: Path, validate: Any) -> None:
    (folder / "ours.yaml").write_text("name: ours\nteams: {}\n")
    code, lines = validate("blue.json", "--challenge=ours.yaml")
    assert code == 1
    assert lines == ["challenge ours.yaml: 2 problems: /title: is required; /teams {}: needs blue or red"]
    assert validate("blue.json", "--challenge=")[0] == 1
    code, lines = validate("blue.json", "--challenge=none")
    assert code == 1
    assert lines[0].startswith("challenge none: 1 problem: there is no such file")


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
    rows[1]["layer_name"] = "body"
    (folder / "entry" / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    rule = 'disagrees with the registry: "head"'
    assert validate("entry") == (1, [f'submission entry: /models/1/layer_name "body": {rule}'])

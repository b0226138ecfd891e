"""The command: the same bytes each time, an own wheel, one line for each mistake and nothing half-written."""

import io
import json
import shutil
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

from headstart.__main__ import main
from headstart.evaluation.challenge_bundle import scoring_program, wheel
from headstart.evaluation.challenge_bundle.material import read_yaml
from headstart.evaluation.challenge_bundle.wheel import INSTALLED, WHEEL, pack_wheel
from headstart.tests.material.bundles import REGISTRY, Host
from headstart.tests.material.mistakes import error_line
from headstart.tests.material.root import ROOT, require_checkout

# Stands for the suite: it writes a score that has undefined numbers.
COMMAND = """
import json, pathlib, sys
(folder,) = [pathlib.Path(option[9:]) for option in sys.argv if option.startswith("--output=")]
folder.mkdir()
document = {"scores": {"score": 0.25, "debiased": None, "calibrated": 0.5, "low": None, "high": None}}
(folder / "score.json").write_text(json.dumps(document))
"""


def test_the_program_runs_its_own_wheel_and_gives_the_numbers_of_the_leaderboards(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with ZipFile(tmp_path / "another.whl", "w") as archive:
        archive.writestr("headstart/__init__.py", "")
        archive.writestr("headstart/__main__.py", COMMAND)
    monkeypatch.setattr(scoring_program, "HERE", tmp_path)
    scores = scoring_program.score(tmp_path / "a.json", "red", tmp_path)
    assert scores == {"score": 0.25, "debiased": None, "calibrated": 0.5, "low": None, "high": None}
    assert [column["key"] for column in read_yaml("codabench.yaml")["leaderboards"][0]["columns"]] == list(scores)
    assert read_yaml("evalai.yaml")["leaderboard"][0]["schema"]["labels"] == list(scores)


def test_hidden_files_of_a_checkout_are_not_in_the_wheel(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("__init__.py", "portal/serve.py", "portal/.env", "configs/.own/held_out.jsonl"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    monkeypatch.setattr(wheel, "ROOT", tmp_path)
    with ZipFile(io.BytesIO(pack_wheel())) as archive:
        names = {name for name in archive.namelist() if name.startswith("headstart/")}
    assert names == {"headstart/__init__.py", "headstart/portal/serve.py"}


@pytest.mark.slow
def test_the_wheel_has_the_files_of_one_that_is_built(tmp_path: Path) -> None:
    require_checkout()
    source = tmp_path / "source"
    source.mkdir()
    for path in ROOT.iterdir():
        if path.name.partition(".")[0] in INSTALLED | {"pyproject", "README", "LICENSE"}:
            (shutil.copytree if path.is_dir() else shutil.copy)(path, source / path.name)
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*command, f"--wheel-dir={tmp_path}", str(source)], check=True, capture_output=True)
    (tmp_path / "ours").mkdir()
    (tmp_path / "ours" / WHEEL).write_bytes(pack_wheel())
    built, ours = (
        {name for name in ZipFile(path).namelist() if name.startswith("headstart/")}
        for path in (tmp_path / WHEEL, tmp_path / "ours" / WHEEL)
    )
    # What a checkout has beside the code, such as the portal's Containerfile and compose.yaml, does no harm.
    assert built - ours == set()
    others = {name for name in ours - built if name.endswith((".py", ".yaml", ".json"))}
    assert others <= {"headstart/portal/compose.yaml"}


def test_containers_have_the_versions_of_this_machine(host: Host, tmp_path: Path) -> None:
    import torch

    text = (host.write_bundle("codabench", tmp_path / "out") / "Containerfile").read_text()
    assert f" torch=={torch.__version__.partition('+')[0]}" in text
    assert not any(line.startswith(("ENTRYPOINT", "USER")) for line in text.splitlines())


def write_registry(host: Host, **fields: object) -> str:
    entries = json.loads((ROOT / REGISTRY).read_text())["models"]
    path = host.folder / "registry.json"
    path.write_text(json.dumps([entries[2] | fields, entries[3]]))
    return f"--registry={path}"


def test_a_registry_without_files_stays_as_it_is(host: Host, tmp_path: Path) -> None:
    registry = write_registry(host, weights="IMAGENET1K_V1")
    options = ["--platform=codabench", *host.options()[1:], registry, f"--output={tmp_path}"]
    main(["challenge-bundle", *options])
    with ZipFile(tmp_path / "demonstration-red.zip") as archive:
        (tmp_path / "public.zip").write_bytes(archive.read("public_data.zip"))
    with ZipFile(tmp_path / "public.zip") as archive:
        assert archive.read("registry.json") == (host.folder / "registry.json").read_bytes()


CUSTOM = {"source": "custom", "model_parameters": {"name": "mine.net"}}


def test_mistakes_take_one_line_and_write_nothing(
    host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    present = tmp_path / "taken" / "demonstration-red.zip"
    present.parent.mkdir()
    present.write_text("mine")
    mistakes = {
        "--platform=kaggle": "platform: ",
        "--rules=gone.yaml": "challenge gone.yaml: 1 problem: there is no such file",
        f"--rules={host.write_rules(deadline='2020-01-01T00:00:00Z')}": "is over; set a later one",
        "--catalog=gone.jsonl": "stimuli catalog gone.jsonl: ",
        "--registry=gone.json": "model registry gone.json: ",
        f"--output={__file__}": "output: ",
        f"--output={present.parent}": f"output: {str(present)!r} exists; choose another folder",
    }
    options = ["--platform=codabench", *host.options(), f"--output={tmp_path / 'out'}"]

    def refuse(option: str) -> str:
        return error_line(capsys, lambda: main(["challenge-bundle", *options, option]))

    lines = [(problem, refuse(option)) for option, problem in mistakes.items()]
    gone = refuse(write_registry(host, weights="gone.pth"))
    lines.append(("registry: model 'random': weights: there is no file ", gone))
    custom = refuse(write_registry(host, **CUSTOM))
    lines.append(("registry: model 'random' is of source custom, and code of your own is in no bundle", custom))
    monkeypatch.setenv("HACKATHON_DATASET_ROOT", str(tmp_path))
    lines.append(("there is no folder", refuse("--image=owls")))
    assert [pair for pair in lines if pair[0] not in pair[1]] == []
    assert list(tmp_path.iterdir()) == [present.parent]
    assert present.read_text() == "mine"

"""The demos of the Makefile, on fewer drawings."""

import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from headstart.__main__ import main
from headstart.contract.documents import read_registry
from headstart.tests.material.root import ROOT, require_checkout

FEWER = {
    "write-photos": ["--count=12"],
    "write-catalog": [],
    "cka": [],
    "transferability": ["--targets.drawn_pets.train_size=40", "--metrics=[leep, log_me]"],
    "target-selection": ["--dataset.train_size=120", "--targets=3", "--metrics=[leep, num_classes]"],
}


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Run the commands of one target of the Makefile in this process, in an empty folder."""
    require_checkout()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HEADSTART_CACHE", str(tmp_path / "cache"))

    def run(target: str) -> None:
        recipe = re.search(rf"^{target}: .*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.MULTILINE)
        assert recipe is not None
        for line in recipe[1].splitlines():
            words = shlex.split(line.replace("$(ARGS)", ""))
            while "=" in words[0]:
                monkeypatch.setenv(*words.pop(0).split("=", 1))
            program, command, *options = words
            assert program == "$(BIN)/headstart"
            main([command, *options, *FEWER[command]])

    return run


@pytest.mark.slow
def test_cka(make: Callable[[str], None], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make("demo-cka")
    scores = json.loads((tmp_path / "runs/demo-cka/cka.json").read_text())
    assert scores["n_stimuli"] == 12
    assert "runs/demo-cka/cka.json, runs/demo-cka/heatmap.png" in capsys.readouterr().out.replace("\n", " ")


@pytest.mark.slow
@pytest.mark.parametrize("registry", ["embedded", "embedded_held_out"])
def test_no_embedded_network_is_of_a_scale_where_an_epsilon_decides(
    registry: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    require_checkout()
    monkeypatch.setenv("HACKATHON_DATASET_ROOT", str(tmp_path))
    monkeypatch.setenv("HEADSTART_CACHE", str(tmp_path / "cache"))
    path, catalog = ROOT / "configs" / "registry" / f"{registry}.json", tmp_path / "stimuli.jsonl"
    main(["write-photos", str(tmp_path / "drawn_pets"), "--count=12"])
    main(["write-catalog", str(tmp_path / "drawn_pets"), f"--output={catalog}"])
    options = [f"--registry={path}", f"--catalog={catalog}", f"--output={tmp_path / 'out'}", "--logger=false"]
    main(["cka", f"--models=[{','.join(read_registry(path).entries)}]", "--save_embeddings=true", *options])
    with np.load(tmp_path / "out" / "embeddings.npz") as embeddings:
        assert min(rows.std(axis=0).max() for rows in embeddings.values()) > 0.01


@pytest.mark.slow
def test_sources(make: Callable[[str], None], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make("demo-sources")
    folders = {path.parent.name for path in (tmp_path / "runs").glob("*/scores.csv")}
    assert folders == {"demo-sources", "demo-targets"}
    scores = json.loads((tmp_path / "runs/demo-sources/transferability.json").read_text())
    assert "drawn_halfway" in json.dumps(scores)
    assert "runs/demo-targets/report.md" in capsys.readouterr().out.replace("\n", " ")


def test_embedded_registry_needs_no_download() -> None:
    registry = read_registry(ROOT / "configs/registry/embedded.json")
    for entry in registry.entries.values():
        assert entry.weights is None or (registry.path.parent / entry.weights).is_file()

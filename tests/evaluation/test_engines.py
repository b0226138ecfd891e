"""Networks that run elsewhere give what they give here."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headstart import evaluate
from headstart.tests.material.arena import ENTRIES, Arena


@pytest.fixture(params=["workers", pytest.param("ray", marks=pytest.mark.slow)])
def elsewhere(request: pytest.FixtureRequest) -> str:
    if request.param == "workers":
        return "--workers=2"
    return f"--ray={request.getfixturevalue('cluster').address}"


def cache(monkeypatch: pytest.MonkeyPatch, folder: Path) -> Path:
    monkeypatch.setenv("HEADSTART_CACHE", str(folder))
    return folder


def score(arena: Arena, output: str, *options: str) -> dict[str, Any]:
    names = ",".join(entry["model_name"] for entry in ENTRIES)
    folder = arena.evaluate("cka", f"--models=[{names}]", *options, output=output)
    document: dict[str, Any] = json.loads((folder / "cka.json").read_text())
    del document["timings"]
    return document


@pytest.mark.slow
def test_cka(arena: Arena, elsewhere: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache(monkeypatch, tmp_path / "there")
    there = score(arena, "there", elsewhere)
    cache(monkeypatch, tmp_path / "here")
    here = score(arena, "here")
    assert here["pairwise"]["names"] == there["pairwise"]["names"]
    assert here["digests"] == there["digests"]
    assert np.allclose(here["pairwise"]["biased"], there["pairwise"]["biased"], atol=1e-6)
    # Features that another process computed on this machine are reused.
    if "workers" in elsewhere:
        cache(monkeypatch, tmp_path / "there")
        assert score(arena, "again") == there


@pytest.mark.slow
def test_no_process_is_begun_for_what_is_stored(arena: Arena, monkeypatch: pytest.MonkeyPatch) -> None:
    here = score(arena, "here")
    monkeypatch.setattr("headstart.engines.tasks.Workers", lambda *args: pytest.fail("a process was begun"))
    assert score(arena, "there", "--workers=2") == here


@pytest.mark.slow
def test_transferability(tmp_path: Path, photo_folder: Path, elsewhere: str, monkeypatch: pytest.MonkeyPatch) -> None:
    registry = tmp_path / "registry.json"
    registry.write_text(json.dumps({"contract_version": "1.0", "models": ENTRIES}))
    tables = []
    for name, options in (("here", []), ("there", [elsewhere])):
        cache(monkeypatch, tmp_path / f"cache of {name}")
        arguments = [
            f"--registry={registry}",
            f"--output={tmp_path / name}",
            "--logger=false",
            "--extraction.device=cpu",
        ]
        targets = ["--targets.photos=ClassFolders", f"--targets.photos.root={photo_folder}"]
        evaluate.main(["transferability", *targets, *arguments, "--metrics=[log_me, h_score]", *options])
        tables.append(json.loads((tmp_path / name / "transferability.json").read_text())["scores"]["photos"])
    for source, cells in tables[0].items():
        for metric, cell in cells.items():
            assert tables[1][source][metric]["score"] == pytest.approx(cell["score"], rel=1e-4)

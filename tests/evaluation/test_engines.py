"""Networks that run elsewhere give what they give here."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

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

"""The search sub-command: its submissions score what it says."""

import json
from pathlib import Path
from typing import Any

import pytest

from headstart.tests.material.arena import Arena


def read(folder: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((folder / "search.json").read_text())
    return document


def test_red_submission_scores_what_the_search_says(arena: Arena, capsys: pytest.CaptureFixture[str]) -> None:
    folder = arena.evaluate("cka-search", "--team=red", "--size=5")
    search = read(folder)
    scored = arena.score(folder / "submission.json", "--team=red", output="scored")
    assert scored["n_stimuli"] == 5
    assert scored["score"] == pytest.approx(search["score"], abs=1e-9)
    assert search["score"] >= search["random"]["highest"]
    assert search["random"]["draws"] == 100
    # The spread of nothing is not reported.
    capsys.readouterr()
    arena.evaluate("cka-search", "--team=blue", "--size=3", output="all")
    assert "standard deviations)" not in capsys.readouterr().out


def test_blue_submission_scores_what_the_search_says_and_a_seed_gives_it_again(arena: Arena) -> None:
    blue = ("cka-search", "--team=blue", "--size=2")
    folder, again = arena.evaluate(*blue), arena.evaluate(*blue, output="again")
    scored = arena.score(folder / "submission.json", "--team=blue", output="scored")
    assert scored["score"] == pytest.approx(read(folder)["score"], abs=1e-12)
    for path in folder.iterdir():
        assert path.read_bytes() == (again / path.name).read_bytes()

"""The search sub-command: its submissions are valid and score what it says."""

import json
from collections.abc import Callable
from itertools import combinations

import pytest

from headstart.tests.material.arena import ENTRIES, Arena

RED = ("--team=red", "--size=4", "--steps=20")
MODELS = [entry["model_name"] for entry in ENTRIES]


@pytest.mark.slow
def test_blue_submission_is_the_best_pair(arena: Arena, capsys: pytest.CaptureFixture[str]) -> None:
    folder = arena.evaluate("cka-search", "--team=blue", "--size=2")
    assert "100 random submissions" in capsys.readouterr().out
    search = json.loads((folder / "search.json").read_text())
    scored = arena.score(folder / "submission.json", "--team=blue", output="scored")
    assert scored["score"] == pytest.approx(search["score"], abs=1e-12)
    pairs = [arena.score(arena.blue(*pair), output="pair")["score"] for pair in combinations(MODELS, 2)]
    assert search["score"] == pytest.approx(max(pairs), abs=1e-12)


def test_red_submission_scores_what_the_search_says(arena: Arena) -> None:
    folder = arena.evaluate("cka-search", "--team=red", "--size=5")
    search = json.loads((folder / "search.json").read_text())
    scored = arena.score(folder / "submission.json", "--team=red", output="scored")
    assert scored["n_stimuli"] == 5
    assert scored["score"] == pytest.approx(search["score"], abs=1e-9)
    assert search["score"] >= search["random"]["highest"]
    assert search["random"]["draws"] == 100
    assert not list((arena.folder / "out").glob("*.partial"))


def test_spread_of_nothing_is_not_reported(arena: Arena, capsys: pytest.CaptureFixture[str]) -> None:
    arena.evaluate("cka-search", "--team=blue", "--size=3")
    text = capsys.readouterr().out
    assert "the best after 5000 steps" in text
    assert "standard deviations)" not in text


def test_same_seed_gives_the_same_submission(arena: Arena) -> None:
    submissions = [
        [path.read_bytes() for path in sorted(arena.evaluate("cka-search", *RED, output=name).iterdir())]
        for name in ("one", "two")
    ]
    assert submissions[0] == submissions[1]


@pytest.mark.parametrize(("team", "size", "most"), [("blue", 1, 3), ("blue", 4, 3), ("red", 19, 18)])
def test_size_out_of_range(arena: Arena, refused: Callable[..., str], team: str, size: int, most: int) -> None:
    text = refused(lambda: arena.evaluate("cka-search", f"--team={team}", f"--size={size}"))
    assert "size" in text
    assert f"at least 2 and at most {most}" in text
    assert not (arena.folder / "out").exists()

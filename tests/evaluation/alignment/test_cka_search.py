"""The search sub-command: its submissions score what it says, by all that it sees and by what is held out."""

import json
from pathlib import Path
from typing import Any

import pytest

from headstart.tests.material.arena import ENTRIES, Arena, make_entry

MODELS = [entry["model_name"] for entry in ENTRIES]
BLUE = ("cka-search", "--team=blue", "--size=2")


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


def test_blue_team_is_chosen_by_one_half_of_the_stimuli(arena: Arena, capsys: pytest.CaptureFixture[str]) -> None:
    folder = arena.evaluate(*BLUE, "--held_out=0.5")
    document = read(folder)
    parts = document["held_out"]
    assert (parts["asked"], parts["of"], parts["n_seen"], parts["n_held_out"]) == (0.5, "stimuli", 9, 9)
    text = capsys.readouterr().out
    assert f"score {parts['score_seen']:.6f}" in text
    assert f"It scores {parts['score_held_out']:.6f} on the 9 held-out stimuli" in text
    scored = arena.score(folder / "submission.json", "--team=blue", output="scored")
    assert scored["score"] == pytest.approx(document["score"], abs=1e-12)
    assert len({document["score"], parts["score_seen"], parts["score_held_out"]}) == 3

    again = arena.evaluate(*BLUE, "--held_out=0.5", output="again")
    assert {path.name: path.read_bytes() for path in again.iterdir()} == {
        path.name: path.read_bytes() for path in folder.iterdir()
    }
    other = arena.evaluate(*BLUE, "--held_out=0.5", "--seed=1", output="other")
    assert read(other)["held_out"] != parts


def test_a_data_set_is_held_out_by_name(arena: Arena) -> None:
    datasets = [stimulus["dataset_name"] for stimulus in arena.stimuli]
    document = read(arena.evaluate(*BLUE, f"--held_out=[{datasets[0]}]"))
    assert document["held_out"]["n_held_out"] == datasets.count(datasets[0])
    remaining = [stimulus for stimulus in arena.stimuli if stimulus["dataset_name"] != datasets[0]]
    arena.write("catalog.jsonl", "".join(json.dumps(stimulus) + "\n" for stimulus in remaining))
    alone = read(arena.evaluate(*BLUE, output="alone"))
    assert document["held_out"]["score_seen"] == pytest.approx(alone["score"], abs=1e-12)


@pytest.mark.slow
def test_red_team_is_held_to_models_that_the_search_did_not_see(arena: Arena) -> None:
    parameters = {"name": "mobilenet_v2", "width_mult": 0.5}
    wide = make_entry("mobilenet_v2_wide", "classifier", "flatten", 1280, model_parameters=parameters)
    everyone, held_out = [*ENTRIES, wide], ["squeezenet1_1", "mobilenet_v2_wide"]
    arena.write("registry.json", everyone)
    red = ("cka-search", "--team=red", "--size=5", "--steps=20")
    folder = arena.evaluate(*red, f"--held_out=[{', '.join(held_out)}]")
    seen = [model["model_name"] for model in everyone if model["model_name"] not in held_out]
    scores = []
    for names in (seen, held_out, [*seen, *held_out]):
        arena.write("registry.json", [model for model in everyone if model["model_name"] in names])
        scores.append(arena.score(folder / "submission.json", "--team=red", output="scored")["score"])
    document = read(folder)
    parts = document["held_out"]
    assert scores == pytest.approx([parts["score_seen"], parts["score_held_out"], document["score"]], abs=1e-9)
    assert scores[0] > scores[1]

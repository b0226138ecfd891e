"""Searches that do not see everything, and are scored on the rest, too."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headstart.tests.material.arena import ENTRIES, Arena, make_entry

RED = ("cka-search", "--team=red", "--size=5", "--steps=20")


def read(folder: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((folder / "search.json").read_text())
    return document


def test_blue_team_is_chosen_by_one_half_of_the_stimuli(arena: Arena, capsys: pytest.CaptureFixture[str]) -> None:
    folder = arena.evaluate("cka-search", "--team=blue", "--size=2", "--held_out=0.5")
    document = read(folder)
    held = document["held_out"]
    assert (held["asked"], held["of"], held["n_seen"], held["n_held_out"]) == (0.5, "stimuli", 9, 9)
    text = capsys.readouterr().out
    assert f"score {held['score_seen']:.6f}" in text
    assert f"It scores {held['score_held_out']:.6f} on the 9 held-out stimuli" in text
    scored = arena.score(folder / "submission.json", "--team=blue", output="scored")
    assert scored["score"] == pytest.approx(document["score"], abs=1e-12)
    assert len({document["score"], held["score_seen"], held["score_held_out"]}) == 3
    again = arena.evaluate("cka-search", "--team=blue", "--size=2", "--held_out=0.5", output="again")
    assert read(again)["held_out"] == held
    other = arena.evaluate("cka-search", "--team=blue", "--size=2", "--held_out=0.5", "--seed=1", output="other")
    assert read(other)["held_out"] != held


def test_a_data_set_is_held_out_by_name(arena: Arena) -> None:
    datasets = [stimulus["dataset_name"] for stimulus in arena.stimuli]
    name = datasets[0]
    remaining = [stimulus for stimulus in arena.stimuli if stimulus["dataset_name"] != name]
    document = read(arena.evaluate("cka-search", "--team=blue", "--size=2", f"--held_out=[{name}]"))
    assert document["held_out"]["n_held_out"] == datasets.count(name)
    arena.catalog.write_text("".join(json.dumps(stimulus) + "\n" for stimulus in remaining))
    alone = read(arena.evaluate("cka-search", "--team=blue", "--size=2", output="alone"))
    assert document["held_out"]["score_seen"] == pytest.approx(alone["score"], abs=1e-12)


@pytest.mark.slow
def test_red_team_is_held_to_models_that_the_search_did_not_see(arena: Arena) -> None:
    wide = make_entry("mobilenet_v2_wide", "classifier", "flatten", 1280, model_parameters={"width_mult": 0.5})
    everyone = [*ENTRIES, wide]
    arena.registry.write_text(json.dumps(everyone))
    held_out = ["squeezenet1_1", "mobilenet_v2_wide"]
    folder = arena.evaluate(*RED, f"--held_out=[{', '.join(held_out)}]")
    document = read(folder)
    submission = folder / "submission.json"
    scores = {}
    for name, entries in (
        ("seen", [each for each in everyone if each["model_name"] not in held_out]),
        ("held_out", [each for each in everyone if each["model_name"] in held_out]),
        ("all", everyone),
    ):
        arena.registry.write_text(json.dumps(entries))
        scores[name] = arena.score(submission, "--team=red", output=name)["score"]
    assert document["held_out"]["score_seen"] == pytest.approx(scores["seen"], abs=1e-9)
    assert document["held_out"]["score_held_out"] == pytest.approx(scores["held_out"], abs=1e-9)
    assert document["score"] == pytest.approx(scores["all"], abs=1e-9)
    assert document["held_out"]["score_seen"] > document["held_out"]["score_held_out"]


@pytest.mark.parametrize(
    ("held_out", "message"),
    [
        ("1", "held_out: 1.0 is not a share"),
        ("-0.5", "held_out: -0.5 is not a share"),
        ("0.01", "leaves 18 stimuli to choose by and 0 held out"),
        ("[nowhere]", "held_out: there are no data sets nowhere; choose from"),
    ],
)
def test_impossible_held_out_parts_are_refused(
    arena: Arena, refused: Callable[..., str], held_out: str, message: str
) -> None:
    blue = ("cka-search", "--team=blue", "--size=2", f"--held_out={held_out}")
    assert message in refused(lambda: arena.evaluate(*blue))
    assert not (arena.folder / "out").exists()

"""Searches with a time, that are cut off and continue, or that do not see everything."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headstart.evaluation.alignment import search_files
from headstart.evaluation.alignment.search_files import SearchFiles
from headstart.metrics.similarity import stimulus_subset_search
from headstart.metrics.similarity.stimulus_subset_search import SearchState
from headstart.tests.material.arena import ENTRIES, Arena, make_entry

RED = ("cka-search", "--team=red", "--size=5")


def read(folder: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((folder / "search.json").read_text())
    return document


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Treat every catalog as a large one, of many blocks."""
    monkeypatch.setattr(stimulus_subset_search, "BLOCK", 4)
    monkeypatch.setattr(stimulus_subset_search, "STEPS", 40)
    monkeypatch.setattr(stimulus_subset_search, "EXACT_LIMIT", 0)
    monkeypatch.setattr(search_files, "INTERVAL", 0)


@pytest.mark.slow
@pytest.mark.usefixtures("large")
def test_a_time_budget_is_kept_and_more_goes_on(arena: Arena) -> None:
    first = read(arena.evaluate(*RED, "--time_budget=0.2"))
    assert (first["time_budget"], first["finished"], first["exact"]) == (0.2, True, False)
    assert first["state"]["seconds"] >= 0.2
    scored = arena.score(arena.folder / "out" / "submission.json", "--team=red", output="scored")
    assert scored["score"] == pytest.approx(first["score"], abs=1e-9)
    # A longer search resumes where the shorter one ended.
    assert read(arena.evaluate(*RED, "--time_budget=0.2"))["score"] == first["score"]
    more = read(arena.evaluate(*RED, "--time_budget=0.6"))
    assert more["state"]["restart"] > first["state"]["restart"]
    assert more["score"] >= first["score"] - 1e-12
    anew = read(arena.evaluate(*RED, "--time_budget=0.1", "--overwrite=true"))
    assert anew["state"]["seconds"] < first["state"]["seconds"]


@pytest.mark.slow
@pytest.mark.usefixtures("large")
def test_a_search_that_was_cut_off_goes_on(arena: Arena, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = read(arena.evaluate(*RED, output="whole"))
    keep, states = SearchFiles.keep, []

    def cut_off(files: SearchFiles, state: SearchState) -> None:
        keep(files, state)
        states.append(state)
        if len(states) == 3:
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(SearchFiles, "keep", cut_off)
        with pytest.raises(SystemExit):
            arena.evaluate(*RED)
    left = read(arena.folder / "out")
    assert not left["finished"]
    assert (left["state"]["sweep"], left["state"]["block"]) == (0, 2)
    scored = arena.score(arena.folder / "out" / "submission.json", "--team=red", output="scored")
    assert scored["score"] == pytest.approx(left["score"], abs=1e-9)
    document = read(arena.evaluate(*RED))
    assert document["finished"]
    assert document["score"] == pytest.approx(whole["score"], abs=1e-12)
    assert not list((arena.folder / "out").glob("*.partial"))


@pytest.mark.usefixtures("large")
@pytest.mark.parametrize("state", [{"best": [0, 1, 2, 3, 99]}, {"members": [1]}, {"unknown": 1}])
def test_a_state_that_is_none_is_refused(arena: Arena, refused: Callable[..., str], state: Any) -> None:
    folder = arena.evaluate(*RED)
    document = read(folder)
    document["state"] |= state
    (folder / "search.json").write_text(json.dumps(document))
    text = refused(lambda: arena.evaluate(*RED))
    assert "does not hold the state of a search" in text


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
    assert document["bound"] == held["score_seen"]
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


def test_no_time_for_stimuli_by_another_measure(arena: Arena, refused: Callable[..., str]) -> None:
    text = refused(lambda: arena.evaluate(*RED, "--time_budget=5", "--measure=rbf_cka"))
    assert "time_budget: 5.0 is given, but" in text


def test_a_time_that_never_ends(arena: Arena, refused: Callable[..., str]) -> None:
    assert "time_budget: inf never ends" in refused(lambda: arena.evaluate(*RED, "--time_budget=inf"))

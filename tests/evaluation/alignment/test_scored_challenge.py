"""Scores under the rules of a challenge."""

import json
from collections.abc import Callable

from headstart.contract.challenge import read_challenge
from headstart.tests.material.arena import ENTRIES, Arena

RULES = "name: ours\ntitle: Ours\nteams: {blue: {count: {exactly: 2}}}\n"
MODELS = [entry["model_name"] for entry in ENTRIES]


def test_score_names_the_challenge(arena: Arena) -> None:
    rules = arena.write("ours.yaml", RULES)
    plain = arena.score(arena.blue(*MODELS[:2]), "--challenge=contract", output="plain")
    document = arena.score(arena.blue(*MODELS[:2]), f"--challenge={rules}", f"--log_dir={arena.folder / 'logs'}")
    assert (plain["challenge"], document["challenge"]) == ("contract", "ours")
    assert document["digests"]["challenge"] == read_challenge(rules).digest != plain["digests"]["challenge"]
    assert document["score"] == plain["score"]
    record = json.loads((arena.folder / "logs" / "scores.jsonl").read_text())
    assert (record["challenge"], record["digests"]["challenge"]) == ("ours", document["digests"]["challenge"])


def test_score_without_a_challenge_names_none(arena: Arena) -> None:
    document = arena.score(arena.red([0, 1, 2]))
    assert "challenge" not in document
    assert "challenge" not in document["digests"]


def test_submissions_that_break_the_rules_are_not_scored(arena: Arena, refused: Callable[..., str]) -> None:
    rules = arena.write("ours.yaml", RULES)
    text = refused(lambda: arena.score(arena.blue(*MODELS), f"--challenge={rules}"))
    assert "/models: must have exactly 2 models in this challenge, not 3" in text
    assert "no submissions of the Red Team" in refused(lambda: arena.score(arena.red([0, 1]), f"--challenge={rules}"))
    assert not (arena.folder / "out").exists()


def test_scores_of_another_challenge_are_kept(arena: Arena, refused: Callable[..., str]) -> None:
    arena.score(arena.blue(*MODELS[:2]))
    text = refused(lambda: arena.score(arena.blue(*MODELS[:2]), "--challenge=contract", "--overwrite=false"))
    assert "challenge" in text


def test_models_are_compared_without_a_challenge(arena: Arena, refused: Callable[..., str]) -> None:
    models = f"--models=[{MODELS[0]},{MODELS[1]}]"
    assert "challenge: contract" in refused(lambda: arena.evaluate("cka", models, "--challenge=contract"))

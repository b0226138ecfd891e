"""Scores under the rules of a challenge."""

import json
from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

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
    assert not {"epsilon", "score_with_epsilon"} & set(document)


def cka_with_epsilon(x: NDArray[Any], y: NDArray[Any], epsilon: float) -> float:
    """Compute CKA from traces, with an epsilon where participants of a challenge quote it."""
    n = len(x)
    h = np.eye(n) - 1.0 / n
    k, m = (z.astype(np.float64) @ z.astype(np.float64).T for z in (x, y))
    own = np.trace(k @ h @ k @ h) * np.trace(m @ h @ m @ h)
    return float(np.trace(k @ h @ m @ h) / (np.sqrt(own) + epsilon))


@pytest.mark.parametrize("epsilon", [0.5, 1e-6])
@pytest.mark.parametrize("team", ["blue", "red"])
def test_score_with_an_epsilon_stands_beside_the_score(
    arena: Arena, team: str, epsilon: float, capsys: pytest.CaptureFixture[str]
) -> None:
    rules = {"name": "ours", "title": "Ours", "teams": {"blue": {}, "red": {}}, "score": {"epsilon": epsilon}}
    submission = arena.blue(*MODELS) if team == "blue" else arena.red([0, 3, 10, 11, 17])
    plain = arena.score(submission, "--save_embeddings=true", output="plain")
    document = arena.score(submission, f"--challenge={arena.write('ours.yaml', rules)}")

    with np.load(arena.folder / "plain" / "embeddings.npz") as arrays:
        mean = np.mean([cka_with_epsilon(x, y, epsilon) for x, y in combinations(arrays.values(), 2)])
    expected = mean if team == "blue" else 1 - mean
    assert document["score"] == plain["score"]
    assert document["epsilon"] == epsilon
    assert document["score_with_epsilon"] == pytest.approx(expected, abs=1e-12)
    assert f"; {expected:.6f} with {epsilon:g} added to the denominator of CKA" in capsys.readouterr().out
    record = json.loads((arena.folder / "out" / "scores.jsonl").read_text())
    assert (record["epsilon"], record["score_with_epsilon"]) == (epsilon, document["score_with_epsilon"])


def test_submissions_that_break_the_rules_are_not_scored(arena: Arena, refused: Callable[..., str]) -> None:
    rules = arena.write("ours.yaml", RULES)
    text = refused(lambda: arena.score(arena.blue(*MODELS), f"--challenge={rules}"))
    assert "/models: must have exactly 2 models in this challenge, not 3" in text
    assert "has no Red Team" in refused(lambda: arena.score(arena.red([0, 1]), f"--challenge={rules}"))
    assert not (arena.folder / "out").exists()


def test_scores_of_another_challenge_are_kept(arena: Arena, refused: Callable[..., str]) -> None:
    arena.score(arena.blue(*MODELS[:2]))
    text = refused(lambda: arena.score(arena.blue(*MODELS[:2]), "--challenge=contract", "--overwrite=false"))
    assert "challenge" in text


def test_models_are_compared_without_a_challenge(arena: Arena, refused: Callable[..., str]) -> None:
    models = f"--models=[{MODELS[0]},{MODELS[1]}]"
    assert "challenge: contract" in refused(lambda: arena.evaluate("cka", models, "--challenge=contract"))

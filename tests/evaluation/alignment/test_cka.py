"""Scoring from the command line, against NumPy from the embeddings."""

import json
from collections.abc import Callable
from contextlib import redirect_stdout
from hashlib import sha256
from io import StringIO
from itertools import combinations
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from headstart.contract.challenge import read_challenge
from headstart.evaluation.alignment.scoring import cka_and_certainty
from headstart.metrics import calibrated_cka, cka_intervals, linear_cka
from headstart.tests.material.arena import ENTRIES, Arena, make_arena, read_rows, set_environment

MODELS = [entry["model_name"] for entry in ENTRIES]
RULES = {"name": "ours", "title": "Ours", "teams": {"blue": {}, "red": {}}}
RED = [0, 3, 10, 11, 17]


@pytest.fixture(scope="module")
def scored(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Score a submission of each team once, under a challenge; give what each leaves."""
    folder, results = tmp_path_factory.mktemp("scored"), {}
    with pytest.MonkeyPatch.context() as patch:
        set_environment(patch, folder)
        patch.setenv("HEADSTART_CACHE", str(folder / "cache"))
        arena = make_arena(folder)
        rules = arena.write("ours.yaml", RULES)
        for team, submission in (("blue", arena.blue(*MODELS)), ("red", arena.red(RED))):
            with redirect_stdout(StringIO()) as out:
                document = arena.score(submission, f"--challenge={rules}", f"--team={team}", output=team)
            results[team] = SimpleNamespace(
                document=document,
                embeddings=read_rows(arena.registry, arena.catalog, MODELS, RED if team == "red" else ()),
                printed=out.getvalue(),
                record=json.loads((folder / team / "scores.jsonl").read_text()),
                files={"submission": submission, "registry": arena.registry, "catalog": arena.catalog},
                rules=rules,
            )
    return results


def cka_by_hand(x: NDArray[Any], y: NDArray[Any]) -> float:
    """Double-centre both Gram matrices and compare them entry by entry."""
    n = len(x)
    centring = np.eye(n) - np.ones((n, n)) / n
    k, m = (centring @ (z.astype(np.float64) @ z.astype(np.float64).T) @ centring for z in (x, y))
    return float(np.sum(k * m) / np.sqrt(np.sum(k * k) * np.sum(m * m)))


def mean(embeddings: dict[str, NDArray[Any]], measure: Callable[..., float], *more: Any) -> float:
    return float(np.mean([measure(x, y, *more) for x, y in combinations(embeddings.values(), 2)]))


@pytest.mark.parametrize("team", ["blue", "red"])
def test_score_equals_numpy(scored: dict[str, Any], team: str) -> None:
    document, embeddings = scored[team].document, scored[team].embeddings
    count = 18 if team == "blue" else len(RED)
    assert list(embeddings) == document["pairwise"]["names"] == MODELS
    assert [rows.shape for rows in embeddings.values()] == [(count, 512), (count, 1024), (count, 1280)]
    assert (document["team"], document["n_models"], document["n_stimuli"]) == (team, 3, count)

    biased = mean(embeddings, cka_by_hand)
    assert document["mean_cka_biased"] == pytest.approx(biased, abs=1e-9)
    assert document["mean_cka_debiased"] == pytest.approx(mean(embeddings, linear_cka, True), abs=1e-9)
    assert document["score"] == pytest.approx(biased if team == "blue" else 1 - biased, abs=1e-9)
    means = [document[f"mean_cka_{estimate}"] for estimate in ("biased", "debiased", "calibrated")]
    scores = means if team == "blue" else [1 - mean for mean in means]
    assert [document["scores"][name] for name in ("score", "debiased", "calibrated")] == scores
    assert [document["scores"][name] for name in ("low", "high")] == document["ci95"]["score"]
    matrix, rows = np.array(document["pairwise"]["biased"]), list(embeddings.values())
    for i, j in combinations(range(3), 2):
        assert matrix[i, j] == matrix[j, i] == pytest.approx(cka_by_hand(rows[i], rows[j]), abs=1e-9)


def test_null_and_calibrated_values_and_intervals_are_those_of_the_embeddings(scored: dict[str, Any]) -> None:
    document, rows = scored["blue"].document, list(scored["blue"].embeddings.values())
    expected, intervals = calibrated_cka(rows), cka_intervals(rows)
    for name in ("null_mean", "null_sd", "z", "p", "calibrated"):
        np.testing.assert_allclose(document[name], getattr(expected, name), rtol=1e-12)
    assert document["mean_cka_calibrated"] == pytest.approx(np.mean(expected.calibrated[np.triu_indices(3, 1)]))
    drawn = {"outlying": np.argwhere(np.triu(expected.outlying)).tolist(), "permutations": expected.permutations}
    assert document["calibration"] == {"level": 0.95, "seed": 0, **drawn}
    ends = document["ci95"]
    np.testing.assert_allclose([ends["low"], ends["high"]], [intervals.low, intervals.high], rtol=1e-12)
    assert ends["mean"] == ends["score"] == pytest.approx(intervals.mean)
    assert ends["score"][0] < document["score"] < ends["score"][1]
    printed = scored["blue"].printed
    assert f"95 % interval over stimuli {ends['score'][0]:.4f} to {ends['score'][1]:.4f}" in printed
    assert f"{document['mean_cka_calibrated']:.6f} (calibrated)" in printed
    red = scored["red"].document["ci95"]
    assert red["score"] == pytest.approx([1 - red["mean"][1], 1 - red["mean"][0]])


@pytest.mark.parametrize("team", ["blue", "red"])
def test_what_was_scored_is_named_in_the_document_and_in_the_log(scored: dict[str, Any], team: str) -> None:
    document, record = scored[team].document, scored[team].record
    digests = {name: sha256(path.read_bytes()).hexdigest() for name, path in scored[team].files.items()}
    assert digests.items() < document["digests"].items()
    assert document["digests"]["challenge"] == read_challenge(scored[team].rules).digest
    assert set(document["digests"]["weights"]) == set(MODELS)
    assert (document["challenge"], document["contract_version"]) == ("ours", "1.0")
    same = ("score", "team", "challenge", "contract_version", "digests")
    assert {name: record[name] for name in same} == {name: document[name] for name in same}
    assert (record["ci95"], record["mean_cka_calibrated"]) == (
        document["ci95"]["score"],
        document["mean_cka_calibrated"],
    )


def test_without_a_challenge_none_is_named_and_the_seed_draws_the_weights(arena: Arena, scored: dict[str, Any]) -> None:
    document = arena.score(arena.red(RED))
    assert document["score"] == scored["red"].document["score"]
    assert "challenge" not in {*document, *document["digests"]}
    other = arena.score(arena.red(RED), "--extraction.seed=1")["digests"]
    assert other["weights"] != document["digests"]["weights"]


def test_two_stimuli_have_neither_debiased_value_nor_null_nor_interval(
    arena: Arena, capsys: pytest.CaptureFixture[str]
) -> None:
    document = arena.score(arena.red([0, 1]))
    assert document["mean_cka_debiased"] is document["pairwise"]["debiased"] is None
    assert document["score"] == pytest.approx(0, abs=1e-12)  # two centred rows always lie on one line
    assert document["ci95"]["score"] is document["ci95"]["mean"] is document["z"][0][1] is None
    assert document["ci95"]["low"][0][1] is None
    assert document["null_sd"][0][1] == 0
    assert document["calibrated"][0][1] == document["mean_cka_calibrated"] == 0
    assert "interval" not in capsys.readouterr().out


def test_only_missing_rows_are_computed_and_a_second_scoring_is_the_same(
    arena: Arena, request: pytest.FixtureRequest
) -> None:
    assert arena.score(arena.red([2, 5, 7]))["timings"]["rows_computed"] == 9
    first = arena.score(arena.blue(*MODELS))
    assert first["timings"]["rows_computed"] == 3 * 18 - 9
    request.getfixturevalue("no_forward_pass")
    second = arena.score(arena.blue(*MODELS))
    assert second["timings"]["rows_computed"] == 0
    assert {**second, "timings": 0} == {**first, "timings": 0}


def test_layers_of_one_model(arena: Arena) -> None:
    layers = ["features.3", "features.6", "classifier.1"]
    folder = arena.evaluate("cka", f"--models=[{MODELS[0]}]", f"--layers=[{','.join(layers)}]", "--logger=false")
    document = json.loads((folder / "cka.json").read_text())
    embeddings = read_rows(arena.registry, arena.catalog, MODELS[:1], layers=layers)
    assert document["pairwise"]["names"] == list(embeddings) == layers
    assert (document["model"], document["n_models"], document["n_layers"]) == (MODELS[0], 1, 3)
    assert [rows.shape[1] for rows in embeddings.values()] == [128, 256, 1000]
    assert document["mean_cka_biased"] == pytest.approx(mean(embeddings, cka_by_hand), abs=1e-9)


def test_pairs_with_outliers_are_named() -> None:
    generator = np.random.default_rng(0)
    many = [generator.standard_normal((40, 8)) for _ in range(3)]
    many[0][3] += 30
    many[2][9] += 30
    # Rows of one length, on which no outlier of another embedding can land.
    many[1] /= np.linalg.norm(many[1], axis=1, keepdims=True)
    _, _, certainty = cka_and_certainty(many)
    assert certainty["calibration"] == {"level": 0.95, "seed": 0, "outlying": [[0, 2]], "permutations": 999}

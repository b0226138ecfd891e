"""Scoring from the command line, against NumPy from the dumped embeddings."""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from headstart.evaluation.alignment.score_files import print_score
from headstart.evaluation.alignment.scoring import cka_and_certainty
from headstart.metrics import calibrated_cka, cka_intervals, cka_null
from headstart.tests.material.arena import ENTRIES, Arena

MODELS = [entry["model_name"] for entry in ENTRIES]


def cka_by_hand(x: NDArray[Any], y: NDArray[Any]) -> float:
    """Double-centre both Gram matrices and compare them entry by entry."""
    n = len(x)
    centring = np.eye(n) - np.ones((n, n)) / n
    k, m = (centring @ (z.astype(np.float64) @ z.astype(np.float64).T) @ centring for z in (x, y))
    return float(np.sum(k * m) / np.sqrt(np.sum(k * k) * np.sum(m * m)))


def debiased_by_hand(x: NDArray[Any], y: NDArray[Any]) -> float:
    """Song et al., JMLR 2012, equation 4, term by term."""
    n = len(x)
    k, m = (z.astype(np.float64) @ z.astype(np.float64).T for z in (x, y))
    np.fill_diagonal(k, 0)
    np.fill_diagonal(m, 0)
    one = np.ones(n)

    def hsic(a: NDArray[Any], b: NDArray[Any]) -> float:
        middle = (one @ a @ one) * (one @ b @ one) / ((n - 1) * (n - 2))
        return float(np.trace(a @ b) + middle - 2 / (n - 2) * (one @ a @ b @ one)) / (n * (n - 3))

    return hsic(k, m) / float(np.sqrt(hsic(k, k) * hsic(m, m)))


def mean_by_hand(embeddings: list[NDArray[Any]], measure: Callable[..., float]) -> float:
    return float(np.mean([measure(x, y) for x, y in combinations(embeddings, 2)]))


def dumped(folder: Path) -> dict[str, NDArray[Any]]:
    with np.load(folder / "embeddings.npz", allow_pickle=False) as arrays:
        return dict(arrays)


def without_times(document: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in document.items() if key != "timings"}


def test_blue_score_equals_numpy(arena: Arena) -> None:
    document = arena.score(arena.blue(*MODELS[:2]), "--save_embeddings=true", "--team=blue")
    embeddings = dumped(arena.folder / "out")
    assert list(embeddings) == MODELS[:2]
    assert [rows.shape for rows in embeddings.values()] == [(18, 512), (18, 1024)]
    assert document["team"] == "blue"
    assert (document["n_models"], document["n_stimuli"]) == (2, 18)
    assert document["score"] == document["mean_cka_biased"]
    rows = list(embeddings.values())
    assert document["score"] == pytest.approx(mean_by_hand(rows, cka_by_hand), abs=1e-9)
    assert document["mean_cka_debiased"] == pytest.approx(mean_by_hand(rows, debiased_by_hand), abs=1e-9)


def test_red_score_equals_numpy(arena: Arena) -> None:
    document = arena.score(arena.red([0, 3, 10, 11, 17]), "--save_embeddings=true")
    embeddings = dumped(arena.folder / "out")
    assert list(embeddings) == MODELS
    assert (document["team"], document["n_models"], document["n_stimuli"]) == ("red", 3, 5)
    rows = list(embeddings.values())
    assert document["score"] == pytest.approx(1 - mean_by_hand(rows, cka_by_hand), abs=1e-9)
    assert document["mean_cka_debiased"] == pytest.approx(mean_by_hand(rows, debiased_by_hand), abs=1e-9)
    biased = np.array(document["pairwise"]["biased"])
    assert document["pairwise"]["names"] == MODELS
    for i, j in combinations(range(3), 2):
        assert biased[i, j] == biased[j, i] == pytest.approx(cka_by_hand(rows[i], rows[j]), abs=1e-9)


def test_two_stimuli_have_no_debiased_value(arena: Arena) -> None:
    document = arena.score(arena.red([0, 1]))
    assert document["mean_cka_debiased"] is None
    assert document["pairwise"]["debiased"] is None
    assert document["score"] == pytest.approx(0, abs=1e-12)  # two centred rows always lie on one line


def test_second_scoring_reads_all_rows(arena: Arena, request: pytest.FixtureRequest) -> None:
    first = arena.score(arena.blue(*MODELS))
    request.getfixturevalue("no_forward_pass")
    second = arena.score(arena.blue(*MODELS))
    assert without_times(second) == without_times(first)
    assert first["timings"]["rows_computed"] == 54
    assert second["timings"]["rows_computed"] == 0
    text = (arena.folder / "out" / "score.json").read_text()
    assert text.split('"timings"')[0] == json.dumps(first, indent=1).split('"timings"')[0]


@pytest.mark.slow
def test_stored_rows_are_scored_without_torch(arena: Arena) -> None:
    submission = arena.blue(*MODELS)
    arena.score(submission)
    options = [f"--submission={submission}", f"--output={arena.folder / 'again'}", "--logger=false"]
    # Only torch could tell whether there is a GPU.
    options += [f"--registry={arena.registry}", f"--catalog={arena.catalog}", "--extraction.device=cpu"]
    program = f"""
import sys, evaluate
evaluate.main({["cka", *options]!r})
sys.exit(any(name in sys.modules for name in ("torch", "torchvision", "lightning", "wandb")))
"""
    subprocess.run([sys.executable, "-c", program], check=True, cwd=Path(__file__).parents[3])
    assert json.loads((arena.folder / "again" / "score.json").read_text())["timings"]["rows_computed"] == 0


def test_red_computes_only_missing_rows(arena: Arena) -> None:
    arena.score(arena.red([2, 5, 7]))
    assert arena.score(arena.red([5, 1, 2]))["timings"]["rows_computed"] == 3
    assert arena.score(arena.blue(*MODELS))["timings"]["rows_computed"] == 3 * 18 - 12


def test_rows_do_not_depend_on_their_neighbours(arena: Arena, tmp_path: Path) -> None:
    arena.score(arena.red([2, 5, 7]), "--save_embeddings=true", f"--extraction.cache_dir={tmp_path / 'one'}")
    few = dumped(arena.folder / "out")
    arena.score(arena.blue(*MODELS), "--save_embeddings=true", f"--extraction.cache_dir={tmp_path / 'two'}")
    for name, rows in dumped(arena.folder / "out").items():
        assert np.array_equal(rows[[2, 5, 7]], few[name])


def test_changed_stimulus_is_computed_again(arena: Arena) -> None:
    before = arena.score(arena.red([0, 1, 2]))
    arena.photo(1).write_bytes(arena.photo(9).read_bytes())
    after = arena.score(arena.red([0, 1, 2]))
    assert after["timings"]["rows_computed"] == 3
    assert after["score"] != before["score"]


@pytest.mark.slow
def test_stored_rows_follow_the_registry_entry(arena: Arena) -> None:
    before = arena.score(arena.blue(*MODELS[:2]))
    changed = [{**ENTRIES[0], "preprocess": {**ENTRIES[0]["preprocess"], "resize": 40}}, *ENTRIES[1:]]
    arena.write("registry.json", changed)
    after = arena.score(arena.blue(*MODELS[:2]))
    assert after["timings"]["rows_computed"] == 18
    assert after["score"] != before["score"]
    arena.write("registry.json", [{**changed[0], "notes": "the same network"}, *ENTRIES[1:]])
    assert arena.score(arena.blue(*MODELS[:2]))["timings"]["rows_computed"] == 0


def test_digests_name_what_was_scored(arena: Arena) -> None:
    from hashlib import sha256

    submission = arena.blue(*MODELS[:2])
    digests = arena.score(submission)["digests"]
    for name, path in (("submission", submission), ("registry", arena.registry), ("catalog", arena.catalog)):
        assert digests[name] == sha256(path.read_bytes()).hexdigest()
    assert set(digests["weights"]) == set(MODELS[:2])
    other = arena.score(submission, "--extraction.seed=1")["digests"]
    assert other["weights"] != digests["weights"]


@pytest.mark.slow
def test_every_score_is_logged(arena: Arena) -> None:
    logs = arena.folder / "logs"
    documents = [arena.score(arena.red(indices), f"--log_dir={logs}") for indices in ([0, 1, 2], [3, 4, 5])]
    records = [json.loads(line) for line in (logs / "scores.jsonl").read_text().splitlines()]
    assert [record["score"] for record in records] == [document["score"] for document in documents]
    assert all(record["contract_version"] == "1.0" and record["team"] == "red" for record in records)


def test_models_without_a_submission(arena: Arena) -> None:
    folder = arena.evaluate("cka", f"--models=[{MODELS[2]},{MODELS[0]}]", "--logger=false")
    document = json.loads((folder / "cka.json").read_text())
    assert document["pairwise"]["names"] == [MODELS[2], MODELS[0]]
    assert "score" not in document
    assert not (folder / "scores.jsonl").exists()
    scored = arena.score(arena.blue(MODELS[2], MODELS[0]))
    assert document["mean_cka_biased"] == scored["score"]


def test_layers_of_one_model(arena: Arena) -> None:
    layers = "[features.3,features.6,classifier.1]"
    options = (f"--models=[{MODELS[0]}]", f"--layers={layers}", "--save_embeddings=true", "--logger=false")
    folder = arena.evaluate("cka", *options)
    document = json.loads((folder / "cka.json").read_text())
    embeddings = dumped(folder)
    assert document["pairwise"]["names"] == list(embeddings) == ["features.3", "features.6", "classifier.1"]
    assert (document["model"], document["n_models"], document["n_layers"]) == (MODELS[0], 1, 3)
    assert [rows.shape[1] for rows in embeddings.values()] == [128, 256, 1000]
    expected = mean_by_hand(list(embeddings.values()), cka_by_hand)
    assert document["mean_cka_biased"] == pytest.approx(expected, abs=1e-9)


def test_documents_by_environment(arena: Arena, monkeypatch: pytest.MonkeyPatch) -> None:
    from headstart import evaluate

    monkeypatch.setenv("HACKATHON_MODEL_REGISTRY", str(arena.registry))
    monkeypatch.setenv("HACKATHON_STIMULI_CATALOG", str(arena.catalog))
    monkeypatch.setenv("HACKATHON_LOG_DIR", str(arena.folder / "log"))
    folder = arena.folder / "by_environment"
    options = [f"--submission={arena.red([0, 1, 2])}", f"--output={folder}", "--logger=false"]
    evaluate.main(["cka", *options, "--extraction.num_workers=0"])
    assert json.loads((folder / "score.json").read_text())["n_models"] == 3
    assert (arena.folder / "log" / "scores.jsonl").is_file()
    assert not (folder / "scores.jsonl").exists()


@pytest.mark.slow
def test_arithmetic_is_reported(arena: Arena, capsys: pytest.CaptureFixture[str]) -> None:
    full = arena.score(arena.red([0, 1, 2]))
    half = arena.score(arena.red([0, 1, 2]), "--extraction.precision=bfloat16")
    assert full["extraction"] == {"precision": "float32", "seed": 0}
    assert half["extraction"] == {"precision": "bfloat16", "seed": 0}
    first, second = re.findall(r"Team score .* under contract.*", capsys.readouterr().out)
    assert "float32" not in first
    assert ", but in bfloat16 instead of its float32" in second
    assert half["timings"]["rows_computed"] == 9
    records = [json.loads(line) for line in (arena.folder / "out" / "scores.jsonl").read_text().splitlines()]
    assert [record["extraction"]["precision"] for record in records] == ["float32", "bfloat16"]


def test_embeddings_are_the_same_bytes_and_their_names_stay_inside(arena: Arena) -> None:
    arena.write("registry.json", [{**ENTRIES[0], "model_name": "../squeezenet1_1"}, *ENTRIES[1:]])
    files = []
    for name in ("one", "two"):
        arena.score(arena.red([0, 1, 2]), "--save_embeddings=true", output=name)
        files.append((arena.folder / name / "embeddings.npz").read_bytes())
    assert files[0] == files[1]
    assert list(dumped(arena.folder / "one")) == ["..%2Fsqueezenet1_1", *MODELS[1:]]


def test_no_two_names_share_a_member(arena: Arena) -> None:
    names = ["a/b", "a%2Fb", "a%252Fb"]
    parameters = {"model_parameters": {"name": ENTRIES[0]["model_name"]}}
    arena.write("registry.json", [{**ENTRIES[0], **parameters, "model_name": name} for name in names])
    arena.score(arena.red([0, 1, 2]), "--save_embeddings=true")
    assert list(dumped(arena.folder / "out")) == ["a%2Fb", "a%252Fb", "a%25252Fb"]


@pytest.mark.parametrize(("count", "printed"), [(3, True), (10, True), (11, False)])
def test_the_similarities_of_few_models_are_printed(
    count: int, printed: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    similarity = (np.eye(count) + np.arange(count) / 100 + np.arange(count)[:, None] / 100).tolist()
    names = [f"model_{'x' * 20}_{i}" for i in range(count)]
    document = {"mean_cka_biased": 0.5, "mean_cka_debiased": None, "n_stimuli": 9}
    print_score({**document, "pairwise": {"names": names, "biased": similarity}})
    out = capsys.readouterr().out
    assert max(map(len, out.partition("mean pairwise")[0].splitlines()), default=0) <= 80
    shown = [f"{value:.3f}" for row in similarity for value in row]
    assert sorted(word for word in out.split() if word in shown) == (sorted(shown) if printed else [])


def test_null_and_calibrated_values_and_intervals_are_those_of_the_embeddings(
    arena: Arena, capsys: pytest.CaptureFixture[str]
) -> None:
    document = arena.score(arena.blue(*MODELS), "--save_embeddings=true")
    rows = list(dumped(arena.folder / "out").values())
    expected, intervals = calibrated_cka(rows), cka_intervals(rows)
    for name in ("null_mean", "null_sd", "z", "p", "calibrated"):
        np.testing.assert_allclose(document[name], getattr(expected, name), rtol=1e-12)
    assert (document["null_mean"][0][1], document["null_sd"][0][1]) == pytest.approx(cka_null(rows[0], rows[1]))
    assert document["mean_cka_calibrated"] == pytest.approx(np.mean(expected.calibrated[np.triu_indices(3, 1)]))
    outlying = np.argwhere(np.triu(expected.outlying)).tolist()
    drawn = {"outlying": outlying, "permutations": expected.permutations}
    assert document["calibration"] == {"level": 0.95, "seed": 0, **drawn}
    ends = document["ci95"]
    np.testing.assert_allclose([ends["low"], ends["high"]], [intervals.low, intervals.high], rtol=1e-12)
    assert ends["mean"] == ends["score"] == pytest.approx(intervals.mean)
    assert ends["score"][0] < document["score"] < ends["score"][1]
    out = capsys.readouterr().out
    assert f"95 % interval over stimuli {ends['score'][0]:.4f} to {ends['score'][1]:.4f}\n" in out
    assert f"{document['mean_cka_calibrated']:.6f} (calibrated)" in out
    record = json.loads((arena.folder / "out" / "scores.jsonl").read_text().splitlines()[-1])
    assert record["ci95"] == ends["score"]
    assert record["mean_cka_calibrated"] == document["mean_cka_calibrated"]


def test_pairs_with_outliers_are_named() -> None:
    generator = np.random.default_rng(0)
    many = [generator.standard_normal((40, 8)) for _ in range(3)]
    many[0][3] += 30
    many[2][9] += 30
    # Rows of one length, on which no outlier of another embedding can land.
    many[1] /= np.linalg.norm(many[1], axis=1, keepdims=True)
    _, _, certainty = cka_and_certainty(many)
    assert certainty["calibration"] == {"level": 0.95, "seed": 0, "outlying": [[0, 2]], "permutations": 999}


def test_the_interval_of_a_red_score_is_of_one_minus_the_mean(arena: Arena) -> None:
    ends = arena.score(arena.red([0, 3, 10, 11, 17]))["ci95"]
    assert ends["score"] == pytest.approx([1 - ends["mean"][1], 1 - ends["mean"][0]])


def test_two_stimuli_have_neither_null_nor_interval(arena: Arena, capsys: pytest.CaptureFixture[str]) -> None:
    document = arena.score(arena.red([0, 1]))
    assert document["ci95"]["score"] is document["ci95"]["mean"] is document["z"][0][1] is None
    assert document["ci95"]["low"][0][1] is None
    assert document["null_sd"][0][1] == 0
    assert document["calibrated"][0][1] == document["mean_cka_calibrated"] == 0
    assert "interval" not in capsys.readouterr().out

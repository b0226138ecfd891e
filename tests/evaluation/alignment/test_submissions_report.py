"""Submissions of one team by every measure: the contract's own scores, the rankings, files and mistakes."""

import csv
import json
import re
from collections.abc import Callable, Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headstart.datamodules.row_computation import ComputedRows
from headstart.evaluation.alignment.submission_ranking import readings
from headstart.metrics.similarity.catalogue import SIMILARITY_MEASURES
from headstart.tests.material.arena import Arena, make_entry

ENTRIES = [
    make_entry(f"mobilenet_v2_{name}", layer, "pool", 8, model_parameters={"width_mult": 0.25})
    for name, layer in {"a": "features.1", "b": "features.2", "c": "features.3", "d": "features.1"}.items()
]
MODELS = [entry["model_name"] for entry in ENTRIES]
PAIRS = list(combinations(range(len(MODELS)), 2))


@pytest.fixture(autouse=True)
def registry(arena: Arena) -> None:
    arena.write("registry.json", {"contract_version": "1.0", "models": ENTRIES})


def write_blue(arena: Arena) -> Path:
    """Write every pair of models as a submission, into a folder."""
    folder = arena.folder / "blue"
    folder.mkdir()
    for i, j in PAIRS:
        (folder / f"{i}{j}.json").write_text(json.dumps({"models": [MODELS[i], MODELS[j]]}))
    return folder


def report(arena: Arena, *args: object, options: tuple[str, ...] = ()) -> dict[str, Any]:
    folder = arena.evaluate("submissions-report", *map(str, args), *options)
    document: dict[str, Any] = json.loads((folder / "submissions.json").read_text())
    return document


@pytest.mark.slow
def test_blue_scores_are_the_contracts_and_those_of_every_measure(
    arena: Arena, monkeypatch: pytest.MonkeyPatch
) -> None:
    computed: list[str] = []
    plain = ComputedRows.__iter__

    def count(self: ComputedRows) -> Iterator[Any]:
        computed.append(self.resources.title)
        return plain(self)

    monkeypatch.setattr(ComputedRows, "__iter__", count)
    document = report(arena, write_blue(arena))
    # Once per model, however many submissions name it.
    assert len(computed) == len(MODELS)
    assert (document["team"], document["n_submissions"]) == ("blue", len(PAIRS))
    names = f"--models=[{', '.join(MODELS)}]"
    folder = arena.evaluate("cka", names, "--save_embeddings=true", "--logger=false", output="all")
    with np.load(folder / "embeddings.npz") as arrays:
        rows = [arrays[name] for name in MODELS]
    cka = json.loads((folder / "cka.json").read_text())
    for i, j in PAIRS:
        scores = document["scores"][f"{i}{j}"]
        assert list(scores) == list(readings())
        assert scores["linear_cka_calibrated"]["score"] == pytest.approx(cka["calibrated"][i][j], abs=1e-9)
        for name, measure in SIMILARITY_MEASURES.items():
            biased, debiased = measure.pairwise([rows[i], rows[j]])
            assert scores[name]["score"] == pytest.approx(biased[0, 1], abs=1e-9)
            if debiased is not None:
                assert scores[f"{name}_debiased"]["score"] == pytest.approx(debiased[0, 1], abs=1e-9)
    score = arena.score(arena.folder / "blue" / "02.json", output="scored")["score"]
    assert document["scores"]["02"]["linear_cka"]["score"] == pytest.approx(score, abs=1e-12)


@pytest.mark.slow
def test_red_scores_are_the_contracts_and_what_is_undefined_has_a_reason(arena: Arena) -> None:
    choices = {"all": range(18), "most": range(1, 18), "even": range(0, 18, 2), "odd": range(1, 18, 2), "few": range(3)}
    files = []
    for name, indices in choices.items():
        content = {"differentiating_images": [arena.stimuli[i] for i in indices]}
        files.append(arena.write(f"{name}.json", content))
    document = report(arena, *files, options=("--team=red",))
    for name, path in zip(choices, files, strict=True):
        expected = arena.score(path, output=f"scored-{name}")
        scores = document["scores"][name]
        assert scores["linear_cka"]["score"] == pytest.approx(expected["score"], abs=1e-12)
        assert scores["linear_cka_calibrated"]["score"] == pytest.approx(1 - expected["mean_cka_calibrated"], abs=1e-9)
    few = document["scores"]["few"]
    for reading, reason in {
        "mutual_knn": "needs 10 others",
        "rbf_cka_debiased": "debiased",
        "pwcca": "directions",
    }.items():
        assert few[reading]["score"] is few[reading]["rank"] is None
        assert reason in few[reading]["reason"]
    # No stimulus among 9 has 10 neighbours: two submissions are left to compare.
    measure = document["measures"]["mutual_knn"]
    assert measure["compared_pairs"] == 1
    assert "mobilenet_v2_" in few["pwcca"]["reason"]


def test_files_hold_the_same_ranking(arena: Arena, capsys: pytest.CaptureFixture[str]) -> None:
    document = report(arena, write_blue(arena))
    with (arena.folder / "out" / "submissions.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(PAIRS) * len(readings())
    for row in rows:
        score = document["scores"][row["submission"]][row["measure"]]
        assert (float(row["score"]), int(row["rank"])) == (score["score"], score["rank"])
    with (arena.folder / "out" / "agreement.csv").open() as file:
        agreement = {row["measure"]: row for row in csv.DictReader(file)}
    text, printed = (arena.folder / "out" / "submissions.md").read_text(), capsys.readouterr().out
    for reading, measure in document["measures"].items():
        assert int(agreement[reading]["swapped_pairs"]) == measure["swapped_pairs"]
        assert float(agreement[reading]["kendall_tau"]) == measure["kendall_tau"]
        assert f"| {measure['title'].replace('|', '')}" in text
        for ahead, behind in measure["swaps"][:1]:
            assert f"{behind} before {ahead}" in text
    assert "6 submissions by" in printed
    (winner,) = document["measures"]["linear_cka"]["first"]
    assert text.split("## Scores")[1].split("\n")[4].startswith(f"| {winner} |")


def test_a_model_that_a_measure_says_nothing_of_leaves_the_others_their_scores(arena: Arena) -> None:
    wide = make_entry("squeezenet1_1", "features", "pool", 512)
    arena.write("registry.json", {"contract_version": "1.0", "models": [*ENTRIES[:2], wide]})
    narrow = arena.write("narrow.json", {"models": MODELS[:2]})
    mixed = arena.write("mixed.json", {"models": [MODELS[0], "squeezenet1_1"]})
    document = report(arena, narrow, mixed, options=("--measures=[cca, pwcca]",))
    for measure in ("cca", "pwcca"):
        assert document["scores"]["narrow"][measure]["rank"] == 1
        assert document["scores"]["mixed"][measure]["score"] is None
        assert document["scores"]["mixed"][measure]["reason"].startswith("model 'squeezenet1_1': ")
    assert {document["scores"][name]["linear_cka"]["rank"] for name in ("narrow", "mixed")} == {1, 2}


def test_measures_are_chosen(arena: Arena, refused: Callable[..., str]) -> None:
    folder = write_blue(arena)
    whole = report(arena, folder)
    refused_line = refused(lambda: report(arena, folder, options=("--measures=[svcca]",)))
    assert "measures" in refused_line
    some = report(arena, folder, options=("--measures=[svcca]", "--overwrite"))
    linear = ["linear_cka", "linear_cka_debiased", "linear_cka_calibrated"]
    assert list(some["measures"]) == [*linear, "svcca"]
    for name, actual in some["scores"].items():
        assert actual == {reading: whole["scores"][name][reading] for reading in some["measures"]}


def test_files_patterns_and_folders_are_found_once(arena: Arena) -> None:
    folder = write_blue(arena)
    (folder / "score.json").write_text(json.dumps({"score": 1}))
    (folder / "again").mkdir()
    (folder / "again" / "01.json").write_text((folder / "01.json").read_text())
    result = report(arena, folder / "01.json", folder / "0*.json", folder)["scores"]
    # These distinguish files of one name in two folders.
    assert sorted(result) == sorted(["again/01", *(f"{i}{j}" for i, j in PAIRS)])
    assert result["again/01"] == result["01"]


@pytest.mark.usefixtures("no_forward_pass")
@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["blue/01.json"], "submissions: 1 given, but a ranking needs 2 or more"),
        (["blue/01.json", "absent.json"], "submission .*absent.json.*"),
        (["blue/x*.json"], "submissions: '.*x.*' has no submission; give files, patterns or folders with submissions"),
        (["datasets"], "submissions: '.*datasets' has no submission"),
        (["blue", "red.json"], "submission .*red.json: 1 problem: .* Red Team"),
        (["blue", "broken"], "submission .*broken/1.json: "),
        (["blue", "unknown.json"], "submission .*unknown.json: 1 problem: .*not in the model registry"),
    ],
)
def test_mistakes_name_the_file(arena: Arena, refused: Callable[..., str], given: list[str], message: str) -> None:
    write_blue(arena)
    arena.red([0, 1, 2])
    (arena.folder / "broken").mkdir()
    arena.write("broken/1.json", "{")
    arena.write("unknown.json", {"models": ["absent", MODELS[0]]})
    line = refused(lambda: report(arena, *(arena.folder / each for each in given)))
    assert re.match(f"error: {message}", line), line
    assert not (arena.folder / "out").exists()


def test_home_folder_of_nobody(arena: Arena, refused: Callable[..., str]) -> None:
    line = refused(lambda: report(arena, "~nobody-here/1.json", "~nobody-here/2.json"))
    assert line.strip() == "error: submission ~nobody-here/1.json: 1 problem: there is no such file"


def test_results_of_other_submissions_are_kept(arena: Arena, refused: Callable[..., str]) -> None:
    folder = write_blue(arena)
    report(arena, folder)
    before = {path.name: path.read_bytes() for path in (arena.folder / "out").iterdir()}
    report(arena, folder)
    assert {path.name: path.read_bytes() for path in (arena.folder / "out").iterdir()} == before
    (folder / "01.json").unlink()
    assert "digests/submissions" in refused(lambda: report(arena, folder))
    assert len(report(arena, folder, options=("--overwrite",))["scores"]) == len(PAIRS) - 1

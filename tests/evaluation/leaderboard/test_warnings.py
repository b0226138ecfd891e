"""Warnings of runs reach every table; runs that were cut off have no part in what pools settings."""

import csv
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from headstart.evaluation.leaderboard.leaderboard import leaderboard
from headstart.metrics.sample_efficiency import resolution
from headstart.output.errors import UserError
from headstart.tests.material.leaderboards import FAST, SLOW
from headstart.tests.material.ledgers import reach, store
from headstart.tests.material.runs import seal, write_run

LIMIT = 60
PAIRS = [["a_1.jpg", "b_7.jpg"], ["a_2.jpg", "b_8.jpg"]]
WHOLE = np.stack([reach(SLOW, LIMIT), reach(FAST, LIMIT)])
# Cut off before the slow method meets the criterion anywhere.
CUT: dict[str, Any] = {"correct": WHOLE[..., :25], "limit": 25, "max_samples": LIMIT, "complete": False}


def add(folder: Path, dataset: str, subfolder: str = "", **options: Any) -> None:
    options = {"correct": WHOLE, "limit": LIMIT, "train_photos_sha256": dataset, **options}
    write_run(folder / (subfolder or dataset), dataset=dataset, **options)


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    (tmp_path / "runs").mkdir()
    for dataset in ("ants", "bees"):
        add(tmp_path / "runs", dataset)
    return tmp_path / "runs"


def rank(runs: Path, **options: Any) -> dict[str, Any]:
    return leaderboard(str(runs), output=str(runs.parent / "out"), overwrite=True, **options)


def texts(runs: Path) -> dict[str, str]:
    """Return the files of a leaderboard."""
    return {path.suffix: path.read_text() for path in (runs.parent / "out").iterdir()}


def test_a_setting_of_a_cut_off_run_is_named_and_not_pooled(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    alone = rank(runs)
    add(runs, "cats", **CUT)
    capsys.readouterr()
    document = rank(runs)
    assert document["over_settings"] == alone["over_settings"]
    assert document["setup_stability"] == alone["setup_stability"]
    assert [setting["is_pooled"] for setting in document["settings"]] == [True, True, False]

    # It is named first everywhere, with where it was cut off.
    name = f"{str(runs / 'cats')!r} is incomplete, cut off at 25 of 60 samples (it was interrupted)"
    assert any(name in warning for warning in document["warnings"])
    printed = " ".join(capsys.readouterr().out.split())
    assert 0 <= printed.index(name) < printed.index("reached")
    files = texts(runs)
    assert files[".md"].index("is incomplete") < files[".md"].index("##")
    assert files[".tex"].index("is incomplete") < files[".tex"].index("tabular")
    rows = [*csv.DictReader((runs.parent / "out" / "leaderboard.csv").open())]
    assert {row["dataset"]: "is incomplete" in row["warnings"] for row in rows} == {
        "ants": False,
        "bees": False,
        "cats": True,
    }


def test_a_cut_off_run_is_pooled_on_request(runs: Path) -> None:
    add(runs, "cats", **CUT)
    document = rank(runs, incomplete=True)
    assert len(document["over_settings"]["settings"]) == 3
    assert document["asked"]["incomplete"] is True
    assert any("is incomplete" in warning for warning in document["warnings"])


def test_cut_off_runs_alone_are_shown_with_a_warning(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    add(tmp_path / "runs", "cats", **CUT)
    document = rank(tmp_path / "runs")
    [setting] = document["settings"]
    assert setting["restricted_at"] == 25
    assert any("is incomplete" in warning for warning in document["warnings"])
    assert "Nothing is compared over settings: all runs were cut off." in document["remarks"]


def test_a_cut_off_run_does_not_cut_the_others_of_its_setting(runs: Path) -> None:
    # Further orderings of the same stream were cut off.
    write_run(runs / "more", dataset="ants", train_photos_sha256="ants", first=20, **CUT)
    document = rank(runs)
    [setting] = [each for each in document["settings"] if each["dataset"] == "ants"]
    assert (setting["restricted_at"], len(setting["orderings"]), setting["is_pooled"]) == (LIMIT, 20, True)
    assert str(runs / "more") not in setting["folders"]
    assert any(f"{str(runs / 'more')!r} is incomplete" in warning for warning in document["warnings"])

    [cut] = [each for each in rank(runs, incomplete=True)["settings"] if each["dataset"] == "ants"]
    assert (cut["restricted_at"], len(cut["orderings"])) == (25, 40)


def test_cut_off_runs_are_no_part_of_an_axis(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    for size in (1, 2, 4):
        add(tmp_path / "runs", "ants", subfolder=f"{size}", fed_in_batches=size, **(CUT if size == 4 else {}))
    options = {"axis": "fed_in_batches", "where": {"dataset": "ants"}}
    [panel] = rank(tmp_path / "runs", **options)["axis"]["panels"]
    assert panel["values"] == [1, 2]
    assert panel["remarks"] == []
    [panel] = rank(tmp_path / "runs", **options, incomplete=True)["axis"]["panels"]
    assert panel["values"] == [1, 2, 4]

    for size in (1, 2):
        shutil.rmtree(tmp_path / "runs" / f"{size}")
    with pytest.raises(UserError, match=r"^axis: all runs were cut off; --incomplete includes them$"):
        rank(tmp_path / "runs", **options)


def test_variants_are_not_chosen_on_cut_off_runs(tmp_path: Path) -> None:
    # On the cut-off run the other variant is better.
    (tmp_path / "runs").mkdir()
    counts = np.concatenate([WHOLE, WHOLE[:1]])
    methods = ("baseline", "ridge one", "ridge two")
    for dataset in ("ants", "bees"):
        add(tmp_path / "runs", dataset, correct=counts, methods=methods)
    swapped = counts[[0, 2, 1]][..., :25]
    add(tmp_path / "runs", "cats", methods=methods, **{**CUT, "correct": np.maximum(swapped, 60)})
    document = rank(tmp_path / "runs", choose={"ridge": "ridge *"})
    for setting in document["settings"]:
        names = {each["name"]: each["tuned"] for each in setting["methods"]}
        if setting["is_pooled"]:
            assert names["ridge"] == "ridge one, chosen on other data sets"
        else:
            assert "ridge" not in names


@pytest.mark.parametrize("kind", ["run", "ledger"])
def test_near_duplicates_reach_every_file(tmp_path: Path, kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "runs"
    if kind == "run":
        folder.mkdir()
        add(folder, "ants", near_duplicate_photos=PAIRS)
    else:
        traces = {"baseline": WHOLE[0], "fast": WHOLE[1]}
        store(folder, traces, description={"near_duplicate_photos": PAIRS})
    document = rank(folder)
    warning = "2 validation photos look like a training photo: accuracies may be too high"
    assert any(warning in each for each in document["warnings"])
    assert any("a_1.jpg ~ b_7.jpg, a_2.jpg ~ b_8.jpg" in each for each in document["settings"][0]["warnings"])
    assert warning in " ".join(capsys.readouterr().out.split())
    for text in texts(folder).values():
        assert warning in text


def test_predictions_that_are_not_finite_are_warned_of(runs: Path) -> None:
    document = json.loads((runs / "ants" / "results.json").read_text())
    document["methods"] = {"mine": {"diverged_at": [None] * 18 + [3, 9]}, "baseline": {}}
    document["methods"] = {
        name: {"key": {"class": name, "hyperparameters": {}}, **each} for name, each in document["methods"].items()
    }
    seal(runs / "ants", document)
    [warning] = rank(runs)["warnings"]
    assert warning.endswith("mine gave predictions that are not finite in 2 orderings.")
    assert not any("not finite" in each for each in rank(runs, where={"dataset": "bees"})["warnings"])


def test_intervals_of_methods_at_the_floor_and_of_few_censored_orderings_are_warned_of(tmp_path: Path) -> None:
    floored = np.full(20, 10.0)
    floored[:4] = 30
    censored = np.array([*range(20, 38), np.inf, np.inf])
    traces = {"baseline": reach(SLOW, LIMIT), "floored": reach(floored, LIMIT), "censored": reach(censored, LIMIT)}
    [setting] = rank(store(tmp_path / "stored", traces))["settings"]
    for kind, text in texts(tmp_path / "stored").items():
        for part in ("floored (16 of 20)", "censored (2 of 20)"):
            assert part in text, kind
    at_floor, few = (each for each in setting["warnings"] if "interval" in each)
    assert "floor of 10 samples" in at_floor
    assert at_floor.count("(") == 1
    assert "floored (16 of 20)" in at_floor
    assert few.count("(") == 1
    assert "censored (2 of 20)" in few


def test_a_pair_whose_p_value_is_too_close_to_the_level_is_undecided(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # 17 of 24 differences favour one method: the exact p value of the two-sided test is 0.064, that of 18 is 0.023.
    faster = np.where(np.arange(24) < 17, 19, 21)
    folder = store(tmp_path / "stored", {"baseline": reach(np.full(24, 20), LIMIT), "mine": reach(faster, LIMIT)})
    [setting] = rank(folder)["settings"]
    assert not any("UNDECIDED" in remark for remark in setting["remarks"])
    # At the level of that p value no number of patterns decides.
    exact = float(2 * stats.binom.sf(16, 24, 0.5))
    monkeypatch.setattr(resolution, "LEVEL", exact)
    [setting] = rank(folder)["settings"]
    [remark] = [remark for remark in setting["remarks"] if "UNDECIDED" in remark]
    assert "mine and baseline" in remark
    assert setting["pairs"][0]["told_apart"] is False
    assert setting["tied_for_first"] == ["mine", "baseline"]

"""A leaderboard finds, joins, leaves out and warns of runs."""

import csv
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headstart.evaluation.leaderboard.leaderboard import leaderboard
from headstart.output.errors import UserError
from headstart.store.ledger_reader import LedgerReader
from headstart.tests.material.leaderboards import FAST, SLOW, rank, refusal
from headstart.tests.material.ledgers import reach, store
from headstart.tests.material.runs import TRACES, seal, write_run, write_runs

LIMIT = 60
WHOLE = np.stack([reach(SLOW, LIMIT), reach(FAST, LIMIT)])
# Cut off before the slow method meets the criterion anywhere.
CUT: dict[str, Any] = {"correct": WHOLE[..., :25], "limit": 25, "max_samples": LIMIT, "complete": False}


def add(folder: Path, name: str, dataset: str = "ants", **options: Any) -> Path:
    """Write a run below a folder, of all traces if not told otherwise."""
    folder.mkdir(exist_ok=True)
    options = {"correct": WHOLE, "limit": LIMIT, "train_photos_sha256": dataset, **options}
    return write_run(folder / name, dataset=dataset, **options)


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    named = {name: {"dataset": name, "train_photos_sha256": name} for name in ("ants", "bees")}
    return write_runs(tmp_path / "runs", named, correct=WHOLE, limit=LIMIT)


def test_finished_runs_are_found_below_folders(tmp_path: Path) -> None:
    folder = tmp_path / "runs[1]"
    names = ("whole", ".incoming", "begun", "broken", "cut")
    whole, _, begun, broken, cut = (add(folder, name) for name in names)
    (cut / "curves.npz").unlink()
    (begun / "results.json").unlink()
    (broken / "results.json").write_text("{")
    document = rank(folder)
    assert document["settings"][0]["folders"] == [str(whole)]
    reasons = {Path(each["setting"]).name: each["reason"] for each in document["left_out"]}
    assert "has no results.json" in reasons["begun"]
    assert "are damaged" in reasons["broken"]
    assert "has no curves.npz" in reasons["cut"]
    # The shell may give folders without runs.
    (tmp_path / "logs").mkdir()
    given = [f"{tmp_path / name}/" for name in ("logs", folder.name)]
    options: dict[str, Any] = {"output": str(tmp_path / "out"), "overwrite": True}
    assert leaderboard(given, **options)["left_out"] == document["left_out"]
    with pytest.raises(UserError, match="runs: there is no '"):
        leaderboard([*given, str(tmp_path / "mistyped")], **options)


def test_methods_are_compared_on_common_orderings(tmp_path: Path) -> None:
    traces = {"baseline": reach(SLOW, LIMIT), "fast": reach(FAST, LIMIT)}
    [setting] = rank(store(tmp_path / "stored", traces, orderings={"baseline": range(3, 23)}))["settings"]
    assert setting["orderings"] == list(range(3, 20))
    assert any("Of 23 orderings those 17 are taken" in remark for remark in setting["remarks"])
    fast, baseline = setting["methods"]
    assert (fast["restricted_mean"], baseline["restricted_mean"]) == (FAST[3:].mean(), SLOW[:17].mean())

    # Without any, the setting is left out, and others go on.
    store(tmp_path / "stored", traces, orderings={"fast": range(20, 40)}, batch_size=8)
    document = rank(tmp_path / "stored")
    assert [setting["batch_size"] for setting in document["settings"]] == [1]
    [left_out] = document["left_out"]
    assert left_out["setting"].endswith("batch size 8")
    assert "no ordering with a finished trace of each" in left_out["reason"]
    hostile = {"two\nlines": reach(SLOW, LIMIT), **traces}
    alone = store(tmp_path / "alone" / "stored", hostile, orderings={"fast": range(20, 40)})
    assert "no ordering with a finished trace of each" in refusal(alone)


def test_mixed_protocols_are_named_and_never_pooled(three: Path) -> None:
    for fed in ({"seed": 1}, {"feature_precision": "bfloat16"}, {"device": "cuda"}):
        store(three, {"baseline": reach(SLOW, LIMIT), "fast": reach(FAST, LIMIT)}, **fed)
    document = rank(three)
    names = [setting["name"] for setting in document["settings"]]
    assert len(set(names)) == 4
    for name, value in zip(names[1:], ("seed 1", "feature precision bfloat16", "device cuda"), strict=True):
        assert value in name
    assert all(len(setting["orderings"]) == 20 for setting in document["settings"])
    assert {"seed", "feature_precision", "device"} <= set(document["differences"])
    assert document["over_settings"] is None
    few = "4 settings are of only 1 pair of a data set and a network, and differ in "
    [remark] = [each for each in document["remarks"] if each.startswith("Nothing is compared over settings")]
    assert few in remark
    assert "feature_precision" in remark.partition(few)[2]
    assert "Over" not in (three.parent / "out" / "leaderboard.md").read_text()
    assert [each["name"] for each in rank(three, where={"seed": 1})["settings"]] == ["pets, resnet18 (DEFAULT)"]


def test_runs_of_one_stream_and_other_thresholds_are_settings(tmp_path: Path) -> None:
    named = {f"run{number}": {"first": 2 * number % 4, "threshold": 0.9 if number == 2 else 0.8} for number in range(3)}
    document = rank(write_runs(tmp_path / "runs", named))
    assert [(setting["name"], setting["orderings"]) for setting in document["settings"]] == [
        ("pets, resnet50 (DEFAULT), threshold 0.8", [0, 1, 2, 3]),
        ("pets, resnet50 (DEFAULT), threshold 0.9", [0, 1]),
    ]
    assert document["criterion"] == {"measure": "accuracy", "threshold": None, "consecutive": 3}
    assert len(rank(tmp_path / "runs", threshold=0.8)["settings"]) == 1


def test_criterion_of_which_nothing_is_known_is_refused(tmp_path: Path) -> None:
    # Both are stopped with 90 %, the one at 25 samples and the other at 60.
    folder = store(tmp_path / "stored", {"baseline": reach(SLOW, LIMIT), "stopped": reach(FAST, LIMIT)[:, :35]})
    assert refusal(folder, threshold=0.95).startswith("threshold: nothing is known of 0.95 at 10 evaluations behind 35")
    assert rank(folder, consecutive=12)["settings"][0]["restricted_at"] == LIMIT
    # 20 evaluations in a row are over by then for some traces that were stopped, and not for others.
    [setting] = rank(folder, consecutive=20)["settings"]
    assert setting["restricted_at"] == 35
    assert any("Restricted at 35 samples instead of 60" in remark for remark in setting["remarks"])
    assert all(each["restricted_mean"] <= 35 for each in setting["methods"])
    # The samples to criterion of the baseline, 40, are known, and lie beyond the compared range.
    [baseline] = [each for each in setting["methods"] if each["name"] == "baseline"]
    assert (baseline["reached"], baseline["median"], baseline["onset"]) == (0, None, None)


def test_runs_are_joined_with_the_ledger_of_their_stream(three: Path, tmp_path: Path) -> None:
    with LedgerReader(three) as ledger:
        [stream] = ledger.streams()
    run = add(tmp_path / "below", "run", threshold=0.9, stream_sha256=stream)
    options: dict[str, Any] = {"output": str(tmp_path / "out"), "overwrite": True}
    [setting] = leaderboard(str(tmp_path), **options)["settings"]
    assert setting["threshold"] == 0.9
    assert {"fast", "close", "mine"} <= {each["name"] for each in setting["methods"]}
    assert setting["folders"] == [str(run), str(three)]

    # Methods of the ledger alone do not shrink what runs have.
    store(three, {"tried": reach(FAST[:5], LIMIT), "whole": reach(FAST, LIMIT)})
    [setting] = leaderboard(str(tmp_path), **options)["settings"]
    names = {each["name"] for each in setting["methods"]}
    assert (names >= {"whole", "mine"}, "tried" in names, len(setting["orderings"])) == (True, False, 20)
    assert any("left out: tried. --methods has them" in remark for remark in setting["remarks"])
    [chosen] = leaderboard(str(tmp_path), methods=["mine", "tried"], **options)["settings"]
    assert ("tried" in {each["name"] for each in chosen["methods"]}, len(chosen["orderings"])) == (True, 5)


def test_other_methods_or_traces_of_one_name_are_refused(tmp_path: Path) -> None:
    write_runs(tmp_path / "runs", {"one": {}})
    others: list[tuple[dict[str, Any], str]] = [
        ({"rate": 0.2, "first": 2}, "in the method baseline; give one of them another name"),
        ({"correct": TRACES + (TRACES == 90)}, "holds the trace of the method baseline in ordering 0 again, and diff"),
    ]
    for options, message in others:
        write_run(tmp_path / "runs" / "two", **options)
        assert message in refusal(tmp_path / "runs")
        shutil.rmtree(tmp_path / "runs" / "two")


def test_a_setting_of_a_cut_off_run_is_left_out_and_compared_on_request(
    runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    alone = rank(runs)
    cut = add(runs, "cats", "cats", **CUT)
    document = rank(runs)
    assert all(document[key] == alone[key] for key in ("over_settings", "sensitivity", "settings"))
    name = f"{str(cut)!r} is incomplete, cut off at 25 of 60 samples (it was interrupted)"
    assert [each["reason"] for each in document["left_out"]] == [f"runs: {name}; --incomplete includes it"]

    capsys.readouterr()
    pooled = rank(runs, incomplete=True)
    assert len(pooled["over_settings"]["settings"]) == 3
    assert pooled["asked"]["incomplete"] is True
    # It is named first everywhere, with where it was cut off.
    assert any(f"{name}, and included." in warning for warning in pooled["warnings"])
    printed, files = " ".join(capsys.readouterr().out.split()), texts(runs)
    for text, later in ((printed, "reached"), (files[".md"], "##"), (files[".tex"], "tabular")):
        assert 0 <= text.index("is incomplete") < text.index(later)
    rows = [*csv.DictReader((runs.parent / "out" / "leaderboard.csv").open())]
    assert all(("is incomplete" in row["warnings"]) == (row["dataset"] == "cats") for row in rows)


def texts(runs: Path) -> dict[str, str]:
    """Return the files of a leaderboard."""
    return {path.suffix: path.read_text() for path in (runs.parent / "out").iterdir()}


def test_cut_off_runs_alone_are_refused_and_cut_where_they_end(tmp_path: Path) -> None:
    add(tmp_path / "runs", "cats", **CUT)
    assert "is incomplete, cut off at 25 of 60 samples" in refusal(tmp_path / "runs")
    assert rank(tmp_path / "runs", incomplete=True)["settings"][0]["restricted_at"] == 25


def test_a_cut_off_run_does_not_cut_the_others_of_its_setting(tmp_path: Path) -> None:
    # One has further orderings of the same stream, the other the same ones.
    for first in (20, 0):
        folder = tmp_path / f"{first}" / "runs"
        folder.parent.mkdir()
        add(folder, "whole")
        cut = add(folder, "more", first=first, **CUT)
        document = rank(folder)
        [setting] = document["settings"]
        assert (setting["restricted_at"], len(setting["orderings"])) == (LIMIT, 20)
        assert setting["folders"] == [str(folder / "whole")]
        assert any(f"{str(cut)!r} is incomplete" in warning for warning in document["warnings"])
        [both] = rank(folder, incomplete=True)["settings"]
        assert len(both["orderings"]) == 20 + first
        assert both["restricted_at"] == (25 if first else LIMIT)


def test_what_makes_numbers_doubtful_is_warned_of(runs: Path, three: Path) -> None:
    document = json.loads((runs / "ants" / "results.json").read_text())
    document["methods"]["mine"]["diverged_at"] = [None] * 18 + [3, 9]
    seal(runs / "ants", document)
    [warning] = rank(runs)["warnings"]
    assert warning.endswith("mine gave predictions that are not finite in 2 orderings.")
    assert not any("not finite" in each for each in rank(runs, where={"dataset": "bees"})["warnings"])

    says_nothing = "Always predicting the largest class meets the threshold"
    for threshold, expected in ((0.6, True), (0.61, False)):
        warnings = rank(three, threshold=threshold)["settings"][0]["warnings"]
        assert any(says_nothing in warning for warning in warnings) == expected
        assert "chance 50%, largest class 60%" in (three.parent / "out" / "leaderboard.md").read_text()

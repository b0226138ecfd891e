"""A leaderboard finds, joins and leaves out runs."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headstart.evaluation.leaderboard.leaderboard import leaderboard
from headstart.output.errors import UserError
from headstart.tests.material.leaderboards import FAST, SLOW, rank, refusal
from headstart.tests.material.ledgers import reach, store
from headstart.tests.material.runs import TRACES, write_run


def test_hidden_folders_are_no_runs(tmp_path: Path) -> None:
    (tmp_path / "runs" / ".incoming").mkdir(parents=True)
    for name in ("a", ".incoming/a"):
        write_run(tmp_path / "runs" / name)
    assert rank(tmp_path / "runs")["settings"][0]["folders"] == [str(tmp_path / "runs" / "a")]


def test_marks_of_a_suite_hold_for_a_part_of_it(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    write_run(tmp_path / "runs" / "a", dataset="drawn, with noise")
    [setting] = rank(tmp_path / "runs", tuned={"mine": ["drawn, with noise", "another"]})["settings"]
    assert {each["name"]: each["tuned"] for each in setting["methods"]} == {
        "baseline": None,
        "mine": "on these validation photos",
    }
    with pytest.raises(UserError, match=r"tuned.mine: 'x', 'y' is none of the data sets 'drawn, with noise'"):
        rank(tmp_path / "runs", tuned={"mine": ["x", "y"]})


def test_methods_are_compared_on_common_orderings(tmp_path: Path) -> None:
    numbers = {"baseline": range(3, 23)}
    store(tmp_path / "stored", {"baseline": reach(SLOW, 60), "fast": reach(FAST, 60)}, orderings=numbers)
    [setting] = rank(tmp_path / "stored")["settings"]
    assert setting["orderings"] == list(range(3, 20))
    assert any("Of 23 orderings those 17 are taken" in remark for remark in setting["remarks"])
    fast, baseline = setting["methods"]
    assert (fast["restricted_mean"], baseline["restricted_mean"]) == (FAST[3:].mean(), SLOW[:17].mean())


def test_no_common_ordering_is_named_and_other_settings_go_on(three: Path) -> None:
    numbers = {"fast": range(20, 40)}
    traces = {"baseline": reach(SLOW, 60), "fast": reach(FAST, 60)}
    store(three, traces, orderings=numbers, batch_size=8)
    document = rank(three)
    assert [setting["batch_size"] for setting in document["settings"]] == [1]
    [left_out] = document["left_out"]
    assert left_out["setting"].endswith("batch size 8")
    assert "no ordering with a finished trace of each" in left_out["reason"]
    alone = store(three.parent / "alone" / "stored", {"two\nlines": reach(SLOW, 60), **traces}, orderings=numbers)
    assert "no ordering with a finished trace of each" in refusal(alone)


def test_mixed_protocols_are_named_and_never_pooled(three: Path) -> None:
    traces = {"baseline": reach(SLOW, 60), "fast": reach(FAST, 60)}
    for fed in ({"seed": 1}, {"feature_precision": "bfloat16"}, {"device": "cuda"}):
        store(three, traces, **fed)
    document = rank(three)
    names = [setting["name"] for setting in document["settings"]]
    assert len(names) == len(set(names)) == 4
    assert "seed 1" in names[1]
    assert "feature precision bfloat16" in names[2]
    assert "device cuda" in names[3]
    assert all(len(setting["orderings"]) == 20 for setting in document["settings"])
    assert {"seed", "feature_precision", "device"} <= set(document["differences"])
    assert document["over_settings"] is None
    assert any("Nothing is compared over settings" in remark for remark in document["remarks"])
    [chosen] = rank(three, where={"seed": 1})["settings"]
    assert chosen["name"] == "pets, resnet18 (DEFAULT)"
    assert "where: nothing is none of" in refusal_of_where(three, {"nothing": 1})


def refusal_of_where(folder: Path, where: dict[str, Any]) -> str:
    with pytest.raises(UserError) as caught:
        leaderboard(str(folder), output=str(folder.parent / "refused"), where=where)
    return str(caught.value)


def test_runs_of_one_stream_and_other_thresholds_are_settings(tmp_path: Path) -> None:
    for number, threshold in enumerate((0.8, 0.8, 0.9)):
        write_run(tmp_path / f"run{number}", first=2 * number % 4, threshold=threshold)
    document = leaderboard([str(tmp_path / "run?")], output=str(tmp_path / "out"))
    assert [setting["name"] for setting in document["settings"]] == [
        "pets, resnet50 (DEFAULT), threshold 0.8",
        "pets, resnet50 (DEFAULT), threshold 0.9",
    ]
    assert [setting["orderings"] for setting in document["settings"]] == [[0, 1, 2, 3], [0, 1]]
    assert document["criterion"] == {"measure": "accuracy", "threshold": None, "consecutive": 3}
    one = leaderboard([str(tmp_path)], output=str(tmp_path / "out"), threshold=0.8, overwrite=True)
    assert len(one["settings"]) == 1


def test_criterion_of_which_nothing_is_known_is_refused(tmp_path: Path) -> None:
    # Both are stopped with 90 %, the one at 25 samples and the other at 60.
    folder = store(tmp_path / "stored", {"baseline": reach(SLOW, 60), "stopped": reach(FAST, 60)[:, :35]})
    assert refusal(folder, threshold=0.95).startswith("threshold: nothing is known of 0.95 at 10 evaluations behind 35")
    [setting] = rank(folder, consecutive=12)["settings"]
    assert setting["restricted_at"] == 60
    # 20 evaluations in a row are over by then for some traces that were stopped, and not for others.
    [setting] = rank(folder, consecutive=20)["settings"]
    assert setting["restricted_at"] == 35
    assert any("Restricted at 35 samples instead of 60" in remark for remark in setting["remarks"])
    assert all(each["restricted_mean"] <= 35 for each in setting["methods"])
    # The samples to criterion of the baseline, 40, are known, and lie beyond the compared range.
    [baseline] = [each for each in setting["methods"] if each["name"] == "baseline"]
    assert (baseline["reached"], baseline["median"], baseline["onset"]) == (0, None, None)


def test_runs_are_found_below_and_joined_with_the_ledger_of_their_stream(three: Path, tmp_path: Path) -> None:
    from headstart.store.ledger_reader import LedgerReader

    with LedgerReader(three) as ledger:
        [stream] = ledger.streams()
    (tmp_path / "below").mkdir()
    traces = np.stack([reach(SLOW, 60), reach(FAST, 60)])
    write_run(tmp_path / "below" / "run", traces, limit=60, threshold=0.9, stream_sha256=stream)
    document = leaderboard([str(tmp_path)], output=str(tmp_path / "out"))
    [setting] = document["settings"]
    assert setting["threshold"] == 0.9
    assert {"fast", "close", "mine"} <= {each["name"] for each in setting["methods"]}
    assert setting["folders"] == [str(tmp_path / "below" / "run"), str(three)]


def test_methods_of_the_ledger_alone_do_not_shrink_what_runs_have(three: Path, tmp_path: Path) -> None:
    from headstart.store.ledger_reader import LedgerReader

    with LedgerReader(three) as ledger:
        [stream] = ledger.streams()
    store(three, {"tried": reach(FAST[:5], 60), "whole": reach(FAST, 60)})
    (tmp_path / "below").mkdir()
    traces = np.stack([reach(SLOW, 60), reach(FAST, 60)])
    write_run(tmp_path / "below" / "run", traces, limit=60, stream_sha256=stream)
    [setting] = leaderboard(str(tmp_path), output=str(tmp_path / "out"))["settings"]
    names = {each["name"] for each in setting["methods"]}
    assert (names >= {"whole", "mine"}, "tried" in names, len(setting["orderings"])) == (True, False, 20)
    assert any("left out: tried. --methods has them" in remark for remark in setting["remarks"])
    options: dict[str, Any] = {"methods": ["mine", "tried"], "overwrite": True}
    [chosen] = leaderboard(str(tmp_path), output=str(tmp_path / "out"), **options)["settings"]
    assert ("tried" in {each["name"] for each in chosen["methods"]}, len(chosen["orderings"])) == (True, 5)


def test_an_incomplete_run_beside_a_complete_one_of_its_traces_cuts_nothing(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    counts = np.stack([reach(SLOW, 60), reach(FAST, 60)])
    write_run(tmp_path / "runs" / "whole", counts, limit=60)
    write_run(tmp_path / "runs" / "cut", counts[..., :25], limit=25, max_samples=60, complete=False)
    [setting] = leaderboard(str(tmp_path / "runs"), output=str(tmp_path / "out"))["settings"]
    assert setting["restricted_at"] == 60
    assert [each["reached"] for each in setting["methods"]] == [20, 20]
    [alone] = leaderboard(str(tmp_path / "runs" / "cut"), output=str(tmp_path / "out"), overwrite=True)["settings"]
    assert alone["restricted_at"] == 25


def test_other_methods_of_one_name_are_refused(tmp_path: Path) -> None:
    write_run(tmp_path / "one", rate=0.1)
    write_run(tmp_path / "two", rate=0.2, first=2)
    with pytest.raises(UserError, match=r"differs from .* in the method baseline"):
        leaderboard([str(tmp_path)], output=str(tmp_path / "out"))


def test_other_traces_of_one_name_are_refused(tmp_path: Path) -> None:
    write_run(tmp_path / "one")
    write_run(tmp_path / "two", TRACES + (TRACES == 90))
    with pytest.raises(UserError, match=r"holds the trace of the method .* again, and differently"):
        leaderboard([str(tmp_path)], output=str(tmp_path / "out"))


def test_folders_without_runs_are_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert refusal(tmp_path / "empty").startswith("runs: there is no run and no ledger in ")
    assert refusal(tmp_path / "absent").startswith("runs: there is no '")
    assert refusal(tmp_path / "*").startswith("runs: there is no run and no ledger in ")


def test_a_run_that_is_not_finished_is_left_out_by_name(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    for name in ("whole", "begun", "broken"):
        write_run(tmp_path / "runs" / name)
    (tmp_path / "runs" / "begun" / "results.json").unlink()
    (tmp_path / "runs" / "broken" / "results.json").write_text("{")
    document = rank(tmp_path / "runs")
    [setting] = document["settings"]
    assert setting["folders"] == [str(tmp_path / "runs" / "whole")]
    reasons = {Path(each["setting"]).name: each["reason"] for each in document["left_out"]}
    assert "has no results.json" in reasons["begun"]
    assert "are damaged" in reasons["broken"]


def test_a_folder_whose_name_is_a_pattern_is_that_folder(tmp_path: Path) -> None:
    write_run(tmp_path / "x[1]")
    write_run(tmp_path / "x1", dataset="others")
    [setting] = rank(tmp_path / "x[1]")["settings"]
    assert setting["dataset"] == "pets"


def test_folders_that_the_shell_gives_are_passed_over(three: Path) -> None:
    (three.parent / "logs").mkdir()
    folders = [f"{path}/" for path in (three.parent / "logs", three)]
    assert len(leaderboard(folders, output=str(three.parent / "out"))["settings"]) == 1
    with pytest.raises(UserError, match="runs: there is no '"):
        leaderboard([*folders, str(three.parent / "mistyped")], output=str(three.parent / "out"), overwrite=True)

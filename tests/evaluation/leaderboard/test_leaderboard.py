"""The leaderboard of runs and ledgers: its settings, its numbers against independent ones, its refusals."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evaluate import main
from evaluation.leaderboard.leaderboard import leaderboard
from evaluation.sample_efficiency import sample_efficiency
from output.errors import UserError
from tests.material.ledgers import INF, reach, store
from tests.material.runs import TRACES, write_run

ROOT = Path(__file__).parents[3]
GENERATOR = np.random.default_rng(0)
SLOW, FAST = (np.sort(GENERATOR.integers(low, low + 15, 20)) for low in (30, 15))
# Between the two, and as the fast one but for noise.
CLOSE = FAST + GENERATOR.integers(-2, 3, 20)


def rank(folder: Path, **options: Any) -> dict[str, Any]:
    """Rank what lies in a folder, and check that no number of it is lost in the file."""
    output = folder.parent / "out"
    document = leaderboard(str(folder), output=str(output), overwrite=True, **options)
    assert json.loads((output / "leaderboard.json").read_text()) == json.loads(json.dumps(document))
    return document


def refusal(folder: Path, **options: Any) -> str:
    with pytest.raises(UserError) as caught:
        leaderboard(str(folder), output=str(folder.parent / "out"), **options)
    assert not (folder.parent / "out").exists()
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.fixture
def three(tmp_path: Path) -> Path:
    traces = {"baseline": reach(SLOW, 60), "fast": reach(FAST, 60), "close": reach(CLOSE, 60)}
    return store(tmp_path / "stored", traces)


def test_command_writes_files_without_importing_torch(three: Path, tmp_path: Path) -> None:
    code = "import sys; from evaluate import main; main(); assert 'torch' not in sys.modules"
    options = ["leaderboard", str(three), "--output", str(tmp_path / "out")]
    subprocess.run([sys.executable, "-c", code, *options], cwd=ROOT, check=True, capture_output=True)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        f"leaderboard.{kind}" for kind in ("csv", "json", "md", "tex")
    ]


def test_numbers_are_those_of_scoring_the_ledger_again(three: Path) -> None:
    document = rank(three)
    [setting] = document["settings"]
    expected = sample_efficiency(str(three))
    assert setting["name"] == "pets, resnet18 (DEFAULT)"
    assert [setting[key] for key in ("classes", "chance", "majority", "threshold")] == [2, 0.5, 0.6, 0.8]
    assert setting["restricted_at"] == expected["restricted_at"]
    for each in setting["methods"]:
        scores, comparison = expected["methods"][each["name"]], expected["comparisons"].get(each["name"], {})
        assert each["orderings"] == 20
        assert [each[key] for key in ("reached", "median", "restricted_mean")] == [
            scores[key] for key in ("reached", "median", "restricted_mean")
        ]
        assert each["onset"] == np.median(scores["onset"])
        assert each["accuracy_at"]["50"] == pytest.approx(np.mean(scores["accuracy_at"]["50"]))
        assert each["relative_improvement"] == comparison.get("relative_improvement_percent")
        assert each["relative_improvement_interval"] == comparison.get("ci95")
        assert [each["p_value"], each["p_value_holm"]] == [comparison.get("p_value"), comparison.get("p_value_holm")]


def test_resolution_is_stated(three: Path) -> None:
    [setting] = rank(three)["settings"]
    first, second, last = setting["methods"]
    assert {first["name"], second["name"]} == {"fast", "close"}
    assert [each["group"] for each in setting["methods"]] == ["a", "a", "b"]
    assert [each["rank_interval"] for each in setting["methods"]] == [[1, 2], [1, 2], [3, 3]]
    assert setting["not_told_apart"] == [[first["name"], second["name"]], [last["name"]]]
    close, far = setting["pairs"]
    assert (close["better"], close["worse"], close["told_apart"]) == (first["name"], second["name"], False)
    assert close["orderings_needed"] is None or close["orderings_needed"] > 20
    assert (far["worse"], far["told_apart"]) == ("baseline", True)
    assert far["orderings_needed"] < 20
    assert far["interval"][0] < far["difference"] < far["interval"][1]


def test_methods_between_two_others_have_the_letters_of_both(tmp_path: Path) -> None:
    # The middle one is told apart from neither, these are from each other.
    noise = np.random.default_rng(1).integers(-9, 10, (3, 20))
    traces = {name: reach(27 + 3 * k + noise[k], 60) for k, name in enumerate(("baseline", "middle", "worst"))}
    [setting] = rank(store(tmp_path / "stored", traces))["settings"]
    assert [each["group"] for each in setting["methods"]] == ["a", "ab", "b"]
    names = [each["name"] for each in setting["methods"]]
    assert setting["not_told_apart"] == [names[:2], names[1:]]
    assert f"| {names[1]} | ab |" in (tmp_path / "out" / "leaderboard.md").read_text()


def test_one_ordering_says_nothing_about_what_is_better(tmp_path: Path) -> None:
    for dataset in ("pets", "flowers"):
        traces = {"baseline": reach([30], 60), "fast": reach([15], 60)}
        store(tmp_path / "stored", traces, told={"dataset": dataset}, train_photos_sha256=dataset)
    document = rank(tmp_path / "stored")
    for setting in document["settings"]:
        fast, baseline = setting["methods"]
        assert (fast["name"], fast["median"], fast["relative_improvement"]) == ("fast", 15, 50)
        assert fast["relative_improvement_interval"] is None
        assert fast["median_interval"] == fast["restricted_mean_interval"] == [None, None]
        assert (fast["p_value"], fast["group"], baseline["group"]) == (1, "a", "a")
        assert fast["rank_interval"] == baseline["rank_interval"] == [1, 2]
        [pair] = setting["pairs"]
        assert (pair["told_apart"], pair["orderings_needed"], pair["p_value"]) == (False, None, 1)
        assert "1 orderings; at least 20 are recommended." in setting["remarks"]
    first = document["over_settings"]["methods"][0]
    assert (first["name"], first["interquartile_mean_interval"]) == ("fast", [None, None])
    assert document["over_settings"]["probability_of_improvement"] == [
        {"better": "fast", "worse": "baseline", "probability": 1.0, "interval": [None, None]}
    ]


def test_what_begins_with_a_dot_is_no_run(tmp_path: Path) -> None:
    (tmp_path / "runs" / ".incoming").mkdir(parents=True)
    for name in ("a", ".incoming/a"):
        write_run(tmp_path / "runs" / name)
    assert rank(tmp_path / "runs")["settings"][0]["folders"] == [str(tmp_path / "runs" / "a")]


def test_a_run_without_methods_is_left_out_by_name(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    for name in ("a", "b"):
        write_run(tmp_path / "runs" / name)
    path = tmp_path / "runs" / "b" / "results.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "methods": None}))
    [left_out] = rank(tmp_path / "runs")["left_out"]
    assert "damaged (no methods)" in left_out["reason"]


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


def test_two_orderings_cannot_tell_methods_apart(tmp_path: Path) -> None:
    store(tmp_path / "stored", {"baseline": reach([30, 40], 60), "fast": reach([15, 16], 60)})
    [setting] = rank(tmp_path / "stored")["settings"]
    assert [each["group"] for each in setting["methods"]] == ["a", "a"]
    assert setting["pairs"][0]["p_value"] == 0.5
    assert setting["methods"][0]["median_interval"] == [None, None]


def test_methods_that_never_reach_the_criterion_are_tied_and_last(tmp_path: Path) -> None:
    never = reach([INF] * 20, 60)
    store(tmp_path / "stored", {"baseline": never, "fast": reach(FAST, 60), "lost": never})
    document = rank(tmp_path / "stored")
    [setting] = document["settings"]
    assert [each["name"] for each in setting["methods"]] == ["fast", "baseline", "lost"]
    for each in setting["methods"][1:]:
        assert (each["reached"], each["median"], each["restricted_mean"], each["onset"]) == (0, None, 60, None)
        assert (each["median_interval"], each["restricted_mean_interval"]) == ([None, None], [60, 60])
        assert (each["group"], each["rank_interval"]) == ("b", [2, 3])
    assert setting["methods"][0]["relative_improvement"] == pytest.approx(100 * (1 - FAST.mean() / 60))
    assert setting["pairs"][1] == {
        "better": "baseline",
        "worse": "lost",
        "difference": 0,
        "interval": [0, 0],
        "p_value": 1,
        "p_value_adjusted": 1,
        "told_apart": False,
        "orderings_needed": None,
    }


def test_all_methods_censored_leave_one_group(tmp_path: Path) -> None:
    never = reach([INF] * 20, 60)
    store(tmp_path / "stored", {"baseline": never, "lost": never})
    document = rank(tmp_path / "stored")
    assert [each["group"] for each in document["settings"][0]["methods"]] == ["a", "a"]
    [grid] = document["sensitivity"]["settings"]
    assert all(cell["tau"] is None and cell["order"] == [] for cell in grid["grid"])
    assert [part["stability"] for part in document["setup_stability"]["parts"]] == [None] * 7


def test_equal_traces_are_one_group(tmp_path: Path) -> None:
    store(tmp_path / "stored", {"baseline": reach(FAST, 60), "twin": reach(FAST, 60)})
    [setting] = rank(tmp_path / "stored")["settings"]
    assert [each["group"] for each in setting["methods"]] == ["a", "a"]
    assert setting["methods"][1]["relative_improvement"] == 0
    assert setting["methods"][1]["p_value_holm"] == 1


def test_without_a_baseline_no_improvement_is_given(three: Path) -> None:
    [setting] = rank(store(three.parent / "other", {"fast": reach(FAST, 60), "slow": reach(SLOW, 60)}))["settings"]
    assert setting["baseline"] is None
    assert all(each["relative_improvement"] is None and each["p_value"] is None for each in setting["methods"])
    assert any("no improvement" in remark for remark in setting["remarks"])
    named = rank(three.parent / "other", baseline="slow")["settings"][0]
    assert named["methods"][0]["relative_improvement"] > 0
    (three.parent / "out" / "leaderboard.json").unlink()


def test_one_method_alone_is_a_leaderboard(tmp_path: Path) -> None:
    document = rank(store(tmp_path / "stored", {"baseline": reach(SLOW, 60)}))
    assert document["settings"][0]["pairs"] == []
    assert document["settings"][0]["methods"][0]["rank_interval"] == [1, 1]
    assert document["over_settings"] is document["setup_stability"] is None


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
    # Those of the baseline are known, from 40 samples on, and beyond what is compared.
    [baseline] = [each for each in setting["methods"] if each["name"] == "baseline"]
    assert (baseline["reached"], baseline["median"], baseline["onset"]) == (0, None, None)


def test_runs_are_found_below_and_joined_with_the_ledger_of_their_stream(three: Path, tmp_path: Path) -> None:
    from store.ledger_reader import LedgerReader

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
    from store.ledger_reader import LedgerReader

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


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"methods": ["absent"]}, "methods: 'absent' is none of"),
        ({"baseline": "absent"}, "baseline: 'absent' is none"),
        ({"tuned": {"absent": "pets"}}, "tuned: 'absent' is none of"),
        ({"tuned": {"fast": "birds"}}, "tuned.fast: 'birds' is none of the data sets 'pets'"),
        ({"choose": {"family": "f*"}}, "choose: 'f*' matches fewer than two of the methods fast, close"),
        ({"choose": {"family": "[bf]*"}}, "choose: '[bf]*' matches fewer than two"),
        ({"choose": {"fast": "*"}}, "choose: 'fast' is a method"),
        ({"where": {"batch_size": 2}}, "where: no setting has these values"),
    ],
)
def test_mistakes_are_named(three: Path, options: dict[str, Any], message: str) -> None:
    assert refusal(three, **options).startswith(message)


def test_a_leaderboard_of_other_options_is_kept(three: Path) -> None:
    output = str(three.parent / "out")
    leaderboard(str(three), output=output)
    leaderboard([str(three)], output=output)
    before = (three.parent / "out" / "leaderboard.json").read_bytes()
    with pytest.raises(UserError, match=r"another configuration \(asked\); .* --overwrite=true"):
        leaderboard(str(three), output=output, threshold=0.9)
    with pytest.raises(UserError, match=r"another configuration \(accuracy_at\)"):
        leaderboard(str(three), output=output, accuracy_at=[20])
    assert (three.parent / "out" / "leaderboard.json").read_bytes() == before


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
    given = [f"{path}/" for path in (three.parent / "logs", three)]
    assert len(leaderboard(given, output=str(three.parent / "out"))["settings"]) == 1
    with pytest.raises(UserError, match="runs: there is no '"):
        leaderboard([*given, str(three.parent / "mistyped")], output=str(three.parent / "out"), overwrite=True)


def test_chosen_methods_and_marks(three: Path) -> None:
    [setting] = rank(three, methods=["fast"], tuned={"fast": ["pets"]})["settings"]
    assert {each["name"]: each["tuned"] for each in setting["methods"]} == {
        "fast": "on these validation photos",
        "baseline": None,
    }
    store(
        three, {"baseline": reach(SLOW, 60), "fast": reach(FAST, 60)}, told={"dataset": "ants"}, train_photos_sha256="a"
    )
    document = rank(three, tuned={"fast": "pets"})
    marks = {setting["dataset"]: [each["tuned"] for each in setting["methods"]] for setting in document["settings"]}
    assert marks["ants"] == [None, None]


def test_threshold_below_the_largest_class_is_remarked_upon(three: Path) -> None:
    says_nothing = "To predict the largest class alone meets the threshold"
    for threshold, expected in ((0.6, True), (0.61, False)):
        [setting] = rank(three, threshold=threshold)["settings"]
        assert any(says_nothing in remark for remark in setting["remarks"]) == expected
        text = (three.parent / "out" / "leaderboard.md").read_text()
        assert "chance 50%, largest class 60%" in text


@pytest.mark.parametrize("order", ["{0} {1} --output {2}", "--output={2} {0} {1}", "{0} --output {2} {1}"])
def test_several_folders_come_without_a_name(three: Path, order: str, capsys: pytest.CaptureFixture[str]) -> None:
    other = store(three.parent / "other", {"baseline": reach(SLOW, 60)}, batch_size=4)
    main(["leaderboard", *order.format(three, other, three.parent / "out").split()])
    document = json.loads((three.parent / "out" / "leaderboard.json").read_text())
    assert document["folders"] == [str(three), str(other)]
    assert [setting["batch_size"] for setting in document["settings"]] == [1, 4]
    printed = capsys.readouterr().out
    assert "restricted mean" in printed
    assert "leaderboard.tex" in printed

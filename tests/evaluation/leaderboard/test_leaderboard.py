"""The leaderboard of runs and ledgers: its settings, its numbers against independent ones, its refusals."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headstart.evaluate import main
from headstart.evaluation.leaderboard.leaderboard import leaderboard
from headstart.evaluation.sample_efficiency import sample_efficiency
from headstart.output.errors import UserError
from headstart.tests.material.leaderboards import FAST, SLOW, rank, refusal
from headstart.tests.material.ledgers import INF, reach, store
from headstart.tests.material.offline_runs import OfflineRun

ROOT = Path(__file__).parents[3]


def test_command_writes_files_without_importing_torch(three: Path, tmp_path: Path) -> None:
    code = "import sys; from headstart.evaluate import main; main(); assert 'torch' not in sys.modules"
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
    # The middle one differs significantly from neither, but these two differ from each other.
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
        store(tmp_path / "stored", traces, description={"dataset": dataset}, train_photos_sha256=dataset)
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


def test_two_orderings_give_no_significant_difference(tmp_path: Path) -> None:
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


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("nothing", {}, "^runs: there is no '.*nothing'; name folders"),
        ("stored", {"methods": ["absent"]}, "^methods: 'absent' is none of"),
        ("stored", {"where": {"batch_size": 2}}, "^where: no setting has these values"),
        ("stored", {"choose": {"family": "f*"}}, r"^choose: 'f\*' matches fewer than two"),
    ],
)
def test_mistakes_in_what_is_given_come_before_results_that_are_there(
    name: str, options: dict[str, Any], message: str, three: Path
) -> None:
    output = str(three.parent / "out")
    leaderboard(str(three), output=output)
    with pytest.raises(UserError, match=message):
        leaderboard(str(three.parent / name), output=output, **options)


def test_chosen_methods_and_marks(three: Path) -> None:
    [setting] = rank(three, methods=["fast"], tuned={"fast": ["pets"]})["settings"]
    assert {each["name"]: each["tuned"] for each in setting["methods"]} == {
        "fast": "on these validation photos",
        "baseline": None,
    }
    store(
        three,
        {"baseline": reach(SLOW, 60), "fast": reach(FAST, 60)},
        description={"dataset": "ants"},
        train_photos_sha256="a",
    )
    document = rank(three, tuned={"fast": "pets"})
    marks = {setting["dataset"]: [each["tuned"] for each in setting["methods"]] for setting in document["settings"]}
    assert marks["ants"] == [None, None]


def test_threshold_below_the_largest_class_is_remarked_upon(three: Path) -> None:
    says_nothing = "Always predicting the largest class meets the threshold"
    for threshold, expected in ((0.6, True), (0.61, False)):
        [setting] = rank(three, threshold=threshold)["settings"]
        assert any(says_nothing in warning for warning in setting["warnings"]) == expected
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


def test_leaderboard_is_logged_on_request(three: Path, tmp_path: Path) -> None:
    options = ["--logger=true", "--dashboard.mode=offline", "--dashboard.project=pets"]
    main(["leaderboard", str(three), f"--output={tmp_path / 'out'}", *options])
    mirror = OfflineRun(tmp_path / "out")
    assert (mirror.settings["job_type"], mirror.settings["project"]) == ("leaderboard", "pets")
    document = json.loads((tmp_path / "out" / "leaderboard.json").read_text())
    methods = document["settings"][0]["methods"]
    rows = mirror.table("leaderboard")
    for row, method in zip(rows, methods, strict=True):
        assert (row["method"], row["group"]) == (method["name"], method["group"])
        assert [row["rank_interval_low"], row["rank_interval_high"]] == method["rank_interval"]
    assert mirror.panels == {"leaderboard"}
    assert "leaderboard.csv" in mirror.artifact("leaderboard")

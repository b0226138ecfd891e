"""The leaderboard of runs and ledgers: its numbers against independent ones, its refusals."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from headstart.evaluation.leaderboard import scores
from headstart.evaluation.leaderboard.leaderboard import leaderboard
from headstart.evaluation.sample_efficiency import sample_efficiency
from headstart.metrics.sample_efficiency import resolution
from headstart.output.errors import UserError
from headstart.tests.material.leaderboards import CLOSE, FAST, SLOW, rank, refusal
from headstart.tests.material.ledgers import INF, reach, store

ROOT = Path(__file__).parents[3]
NEVER = reach([INF] * 20, 60)


def test_command_writes_files_without_importing_torch(three: Path, tmp_path: Path) -> None:
    code = "import sys; from headstart.evaluate import main; main(); assert 'torch' not in sys.modules"
    options = ["leaderboard", str(three), "--output", str(tmp_path / "out")]
    subprocess.run([sys.executable, "-c", code, *options], cwd=ROOT, check=True, capture_output=True)
    names = {f"leaderboard.{kind}" for kind in ("csv", "json", "md", "tex")}
    assert {path.name for path in (tmp_path / "out").iterdir()} == names


def test_numbers_are_those_of_scoring_the_ledger_again(three: Path) -> None:
    [setting] = rank(three)["settings"]
    expected = sample_efficiency(str(three))
    assert setting["name"] == "pets, resnet18 (DEFAULT)"
    assert [setting[key] for key in ("classes", "chance", "majority", "threshold")] == [2, 0.5, 0.6, 0.8]
    assert setting["restricted_at"] == expected["restricted_at"]
    for each in setting["methods"]:
        own, comparison = expected["methods"][each["name"]], expected["comparisons"].get(each["name"], {})
        assert each["orderings"] == 20
        assert all(each[key] == own[key] for key in ("reached", "median", "restricted_mean"))
        assert each["onset"] == np.median(own["onset"])
        assert each["accuracy_at"]["50"] == pytest.approx(np.mean(own["accuracy_at"]["50"]))
        names = {"relative_improvement": "relative_improvement_percent", "relative_improvement_interval": "ci95"}
        for key in scores.COMPARISON:
            assert each[key] == comparison.get(names.get(key, key)), key


def test_differences_are_tested_as_in_scipy(three: Path) -> None:
    [setting] = rank(three)["settings"]
    samples = {"baseline": SLOW, "fast": FAST, "close": CLOSE}

    def p_value(one: str, other: str) -> float:
        options = {"permutation_type": "samples", "n_resamples": 99_999, "rng": np.random.default_rng(0)}
        return float(stats.permutation_test((samples[one] - samples[other],), np.mean, **options).pvalue)

    for each in setting["methods"]:
        if each["name"] != "baseline":
            assert each["p_value"] == pytest.approx(p_value("baseline", each["name"]))
    for pair in setting["pairs"]:
        assert pair["p_value"] == pytest.approx(p_value(pair["better"], pair["worse"]))


def test_settings_together_are_tested_as_alone(tmp_path: Path) -> None:
    baseline, fast, close = reach(SLOW, 60), reach(FAST, 60), reach(CLOSE, 60)
    # The same numbers of orderings and other ones, a setting without a baseline, and one of a single method.
    settings = [
        {"baseline": baseline, "fast": fast, "close": close},
        {"baseline": baseline[:12], "close": close[:12]},
        {"fast": fast, "close": close},
        {"baseline": baseline[::-1], "close": close},
        {"baseline": baseline[:12]},
    ]
    for size, traces in enumerate(settings, start=1):
        store(tmp_path / "stored", traces, batch_size=size)
    alone = [rank(tmp_path / "stored", where={"batch_size": size})["settings"][0] for size in range(1, 6)]
    together = rank(tmp_path / "stored")["settings"]
    assert [{**each, "name": None} for each in together] == [{**each, "name": None} for each in alone]


def test_resolution_is_stated(three: Path) -> None:
    [setting] = rank(three)["settings"]
    first, second, last = (each["name"] for each in setting["methods"])
    assert {first, second} == {"fast", "close"}
    standings = [(each["group"], each["rank_interval"]) for each in setting["methods"]]
    assert standings == [("a", [1, 2]), ("a", [1, 2]), ("b", [3, 3])]
    assert setting["not_told_apart"] == [[first, second], [last]]
    assert setting["tied_for_first"] == [first, second]
    close, far = setting["pairs"]
    assert (close["better"], close["worse"], close["told_apart"]) == (first, second, False)
    assert close["orderings_needed"] is None or close["orderings_needed"] > 20
    assert (far["worse"], far["told_apart"]) == ("baseline", True)
    assert far["orderings_needed"] < 20
    assert far["interval"][0] < far["difference"] < far["interval"][1]


def test_a_pair_whose_p_value_is_too_close_to_the_level_is_undecided(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # 17 of 24 differences favour one method: the exact p value of the two-sided test is 0.064, that of 18 is 0.023.
    faster = np.where(np.arange(24) < 17, 19, 21)
    folder = store(tmp_path / "stored", {"baseline": reach(np.full(24, 20), 60), "mine": reach(faster, 60)})
    assert not any("UNDECIDED" in remark for remark in rank(folder)["settings"][0]["remarks"])
    # At the level of that p value no number of patterns decides.
    monkeypatch.setattr(resolution, "LEVEL", float(2 * stats.binom.sf(16, 24, 0.5)))
    [setting] = rank(folder)["settings"]
    [remark] = [remark for remark in setting["remarks"] if "UNDECIDED" in remark]
    assert "mine and baseline" in remark
    assert setting["pairs"][0]["told_apart"] is False
    assert setting["tied_for_first"] == ["mine", "baseline"]


def test_one_ordering_says_nothing_about_what_is_better(tmp_path: Path) -> None:
    for dataset in ("pets", "flowers"):
        store(tmp_path / "stored", {"baseline": reach([30], 60), "fast": reach([15], 60)}, dataset=dataset)
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
    over = document["over_settings"]
    assert (over["methods"][0]["name"], over["methods"][0]["interquartile_mean_interval"]) == ("fast", [None, None])
    [pair] = over["probability_of_improvement"]
    assert pair == {"better": "fast", "worse": "baseline", "probability": 1.0, "interval": [None, None]}


def test_methods_that_never_reach_the_criterion_are_tied_and_last(tmp_path: Path) -> None:
    folder = store(tmp_path / "stored", {"baseline": NEVER, "fast": reach(FAST, 60), "lost": NEVER})
    [setting] = rank(folder)["settings"]
    assert [each["name"] for each in setting["methods"]] == ["fast", "baseline", "lost"]
    for each in setting["methods"][1:]:
        assert (each["reached"], each["median"], each["restricted_mean"], each["onset"]) == (0, None, 60, None)
        assert (each["median_interval"], each["restricted_mean_interval"]) == ([None, None], [60, 60])
        assert (each["group"], each["rank_interval"]) == ("b", [2, 3])
    assert setting["methods"][0]["relative_improvement"] == pytest.approx(100 * (1 - FAST.mean() / 60))
    assert setting["pairs"][1] == {
        **{"better": "baseline", "worse": "lost", "difference": 0, "interval": [0, 0]},
        **{"p_value": 1, "p_value_adjusted": 1, "told_apart": False, "orderings_needed": None},
    }


def test_methods_without_a_difference_are_one_group(tmp_path: Path) -> None:
    fast = reach(FAST, 60)
    few = {"baseline": reach([30, 40], 60), "fast": reach([15, 16], 60)}
    cases = {"equal": {"baseline": fast, "twin": fast}, "censored": {"baseline": NEVER, "lost": NEVER}, "few": few}
    documents = {name: rank(store(tmp_path / name, traces)) for name, traces in cases.items()}
    for name, document in documents.items():
        assert [each["group"] for each in document["settings"][0]["methods"]] == ["a", "a"], name
    twin = documents["equal"]["settings"][0]["methods"][1]
    assert (twin["relative_improvement"], twin["p_value_holm"]) == (0, 1)
    assert documents["few"]["settings"][0]["pairs"][0]["p_value"] == 0.5
    [grid] = documents["censored"]["sensitivity"]["settings"]
    assert all(cell["tau"] is None and cell["order"] == [] for cell in grid["grid"])


def test_a_baseline_and_other_methods_are_not_needed(tmp_path: Path) -> None:
    folder = store(tmp_path / "stored", {"fast": reach(FAST, 60), "slow": reach(SLOW, 60)})
    [setting] = rank(folder)["settings"]
    assert setting["baseline"] is None
    assert all(each["relative_improvement"] is None and each["p_value"] is None for each in setting["methods"])
    assert any("no improvement" in remark for remark in setting["remarks"])
    assert rank(folder, baseline="slow")["settings"][0]["methods"][0]["relative_improvement"] > 0

    document = rank(store(tmp_path / "alone", {"baseline": reach(SLOW, 60)}))
    assert document["settings"][0]["pairs"] == []
    assert document["settings"][0]["methods"][0]["rank_interval"] == [1, 1]
    assert document["over_settings"] is None


MISTAKES: list[tuple[str, dict[str, Any], str]] = [
    ("stored", {"methods": ["absent"]}, "methods: 'absent' is none of"),
    ("stored", {"baseline": "absent"}, "baseline: 'absent' is none"),
    ("stored", {"tuned": {"absent": "pets"}}, "tuned: 'absent' is none of"),
    ("stored", {"tuned": {"fast": "birds"}}, "tuned.fast: 'birds' is none of the data sets 'pets'"),
    ("stored", {"where": {"batch_size": 2}}, "where: no setting has these values"),
    ("stored", {"where": {"nothing": 1}}, "where: nothing is none of "),
    ("stored", {"per_class": [1]}, "per_class: no stream is balanced over the classes; "),
    ("absent", {}, "runs: there is no '"),
    ("empty", {}, "runs: there is no run and no ledger in "),
    ("*y", {}, "runs: there is no run and no ledger in "),
    ("broken", {}, "runs: the ledger '"),
]


def test_mistakes_are_named_before_results_that_are_there(three: Path) -> None:
    (three.parent / "empty").mkdir()
    (three.parent / "broken").mkdir()
    (three.parent / "broken" / "traces.sqlite").write_text("no database" * 100)
    for name, options, message in MISTAKES:
        assert refusal(three.parent / name, **options).startswith(message), message
    leaderboard(str(three), output=str(three.parent / "out"))
    with pytest.raises(UserError, match=r"^where: no setting has these values"):
        leaderboard(str(three), output=str(three.parent / "out"), where={"batch_size": 2})
    with pytest.raises(UserError, match=r"another configuration \(asked\); .* --overwrite=true"):
        leaderboard(str(three), output=str(three.parent / "out"), threshold=0.9)


def test_methods_are_marked_on_the_data_sets_that_they_were_tuned_on(three: Path) -> None:
    [setting] = rank(three, methods=["fast"], tuned={"fast": ["pets", "another"]})["settings"]
    marks = {each["name"]: each["tuned"] for each in setting["methods"]}
    assert marks == {"fast": "on these validation photos", "baseline": None}
    traces = {"baseline": reach(SLOW, 60), "fast": reach(FAST, 60)}
    store(three, traces, dataset="ants, with noise", train_photos_sha256="a")
    document = rank(three, tuned={"fast": "pets"})
    tuned = {setting["dataset"]: {each["tuned"] for each in setting["methods"]} for setting in document["settings"]}
    assert tuned["ants, with noise"] == {None}

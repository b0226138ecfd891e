"""The bundle of EvalAI: its validation takes it, and both of its workers give the command's scores."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from headstart.tests.material import evalai
from headstart.tests.material.bundles import Host
from headstart.tests.material.codabench import unpack


def read(bundle: Path) -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load((bundle / "challenge_config.yaml").read_text())
    return document


@pytest.mark.slow
def test_the_validation_takes_the_bundle(bundles: dict[str, Path]) -> None:
    assert evalai.find_problems(bundles["evalai"]) == []


def test_rules_are_those_of_the_challenge(host: Host, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    teams = {"red": {"submissions": 7, "submissions_per_day": 2}}
    deadline = "2099-03-31T23:59:59-12:00"
    rules = host.write_rules(deadline=deadline, title="An owl & " * 20, description="Hoot. " * 40, teams=teams)
    folder = host.write_bundle("evalai", tmp_path / "out", rules=rules)
    bundle = unpack(folder / "owls.zip", tmp_path / "bundle")
    assert evalai.find_problems(bundle) == []

    document = read(bundle)
    (phase,), (join,) = document["challenge_phases"], document["challenge_phase_splits"]
    assert document["end_date"] == phase["end_date"] == "2099-04-01 11:59:59"
    assert (phase["codename"], phase["max_submissions"], phase["max_submissions_per_day"]) == ("red", 7, 2)
    assert not join["show_leaderboard_by_latest_submission"]
    assert len(document["short_description"]) <= 140
    assert "An owl &amp; An" in (bundle / "templates" / "overview.html").read_text()
    out = capsys.readouterr().out
    assert [line for line in ("title: ", "ties: ", "held-out scores: ") if f"\n{line}" not in out] == []


@pytest.mark.usefixtures("shared_cache")
@pytest.mark.parametrize(
    ("team", "run"), [("blue", evalai.run_worker), pytest.param("red", evalai.run_remotely, marks=pytest.mark.slow)]
)
def test_scores_are_those_of_the_command(
    team: str, run: Any, host: Host, bundles: dict[str, Path], tmp_path: Path
) -> None:
    answer = run(bundles["evalai"], host.write_submission(team), team, tmp_path)
    assert answer["output"] is not None, answer["stderr"]
    shown, expected = evalai.shown_scores(bundles["evalai"], team, answer["output"]), host.score(team)
    assert shown["score"] == expected["score"]
    calibrated = expected["mean_cka_calibrated"]
    assert shown["calibrated"] == (calibrated if team == "blue" else 1 - calibrated)
    assert [shown["low"], shown["high"]] == expected["ci95"]["score"]


@pytest.mark.slow
@pytest.mark.parametrize("run", [evalai.run_worker, evalai.run_remotely])
def test_wrong_submissions_fail_and_name_their_problems(
    run: Any, host: Host, bundles: dict[str, Path], tmp_path: Path
) -> None:
    submission = host.write_submission("blue", {"models": ["drawn_object", "random", "random"]})
    answer = run(bundles["evalai"], submission, "blue", tmp_path)
    assert answer["output"] is None
    assert '2 problems: /models/0 "drawn_object": not in the model registry' in answer["stderr"]
    assert '/models/2 "random": the same model as /models/1' in answer["stderr"]

"""Bundles on Codabench and EvalAI: their checks take them, and their workers give the command's scores."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from headstart.tests.material import codabench, evalai
from headstart.tests.material.bundles import Host, as_zip

# What the leaderboard shows, if there is a score, and what the participant is told.
Shown = tuple[dict[str, Any] | None, str]
BOTH = {"models": ["drawn_object", "random", "random"]}
NAMED = ['/models/0 "drawn_object": not in the model registry', '/models/2 "random": the same model as /models/1']


def on_codabench(strips: bool, bundles: dict[str, Path], team: str, document: Any, root: Path) -> Shown:
    bundle = bundles[f"codabench {team}"]
    files = {"mine/document.json": document, "__MACOSX/mine/._document.json": {}}
    if isinstance(document, list):
        files = {f"{number}.json": submission for number, submission in enumerate(document)}
    scores, error = codabench.run_worker(bundle, as_zip(files), root, strips)
    return scores and codabench.shown_scores(bundle, scores), error


def on_evalai(bundles: dict[str, Path], team: str, document: Any, root: Path) -> Shown:
    (root / "entry.json").write_text(json.dumps(document))
    answer = evalai.run_remotely(bundles["evalai"], root / "entry.json", team, root)
    return answer["output"] and evalai.shown_scores(bundles["evalai"], team, answer["output"]), answer["stderr"]


WORKERS: dict[str, Callable[..., Shown]] = {
    "codabench": partial(on_codabench, False),
    "codabench in 2025": partial(on_codabench, True),
    "evalai": on_evalai,
}


@pytest.mark.slow
def test_the_checks_take_the_bundles(bundles: dict[str, Path]) -> None:
    assert evalai.find_problems(bundles["evalai"]) == []
    for team in ("blue", "red"):
        bundle = bundles[f"codabench {team}"]
        assert codabench.find_problems(bundle) == []
        public = codabench.unpack(bundle / "public_data.zip", bundle / "public")
        assert {path.name for path in public.iterdir()} == {"rules.yaml", "registry.json", "catalog.jsonl"}


def test_rules_on_codabench(host: Host, tmp_path: Path) -> None:
    teams = {"blue": {"submissions": 7, "submissions_per_day": 2}, "red": {}}
    rules = host.write_rules(deadline="2099-03-31T23:59:59-12:00", time_zone="Europe/Berlin", teams=teams)
    folder = host.write_bundle("codabench", tmp_path / "out", "--image=owls/scoring:1", rules=rules)
    documents = {}
    for team in ("blue", "red"):
        bundle = codabench.unpack(folder / f"owls-{team}.zip", tmp_path / team)
        assert codabench.find_problems(bundle) == []
        documents[team] = yaml.safe_load((bundle / "competition.yaml").read_text())

    (blue,), (red,) = (documents[team]["phases"] for team in ("blue", "red"))
    # The rest of the world has passed into April.
    assert str(codabench.read_time(blue["end"])) == "2099-04-01 11:59:59+00:00"
    assert (blue["max_submissions"], blue["max_submissions_per_day"]) == (7, 2)
    assert (red["max_submissions"], red["max_submissions_per_day"]) == (None, None)
    boards = [documents[team]["leaderboards"][0]["submission_rule"] for team in ("blue", "red")]
    assert boards == ["Force_Best", "Force_Best"]
    assert documents["blue"]["docker_image"] == "owls/scoring:1"


def test_rules_on_evalai(host: Host, tmp_path: Path) -> None:
    teams = {"red": {"submissions": 7, "submissions_per_day": 2}}
    deadline = "2099-03-31T23:59:59-12:00"
    rules = host.write_rules(deadline=deadline, title="An owl & " * 20, description="Hoot. " * 40, teams=teams)
    folder = host.write_bundle("evalai", tmp_path / "out", rules=rules)
    bundle = codabench.unpack(folder / "owls.zip", tmp_path / "bundle")
    assert evalai.find_problems(bundle) == []

    document: dict[str, Any] = yaml.safe_load((bundle / "challenge_config.yaml").read_text())
    (phase,), (join,) = document["challenge_phases"], document["challenge_phase_splits"]
    assert document["end_date"] == phase["end_date"] == "2099-04-01 11:59:59"
    assert (phase["codename"], phase["max_submissions"], phase["max_submissions_per_day"]) == ("red", 7, 2)
    assert not join["show_leaderboard_by_latest_submission"]
    assert len(document["short_description"]) <= 140
    assert "An owl &amp; An" in (bundle / "templates" / "overview.html").read_text()


@pytest.mark.slow
@pytest.mark.usefixtures("shared_cache")
@pytest.mark.parametrize(("worker", "team"), [("codabench", "blue"), ("evalai", "red"), ("codabench in 2025", "red")])
def test_scores_are_those_of_the_command(
    worker: str, team: str, host: Host, bundles: dict[str, Path], tmp_path: Path
) -> None:
    shown, error = WORKERS[worker](bundles, team, host.documents[team], tmp_path)
    assert shown is not None, error
    assert shown == host.score(team)["scores"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("worker", "document", "problems"),
    [
        ("codabench", BOTH, NAMED),
        ("evalai", BOTH, NAMED),
        ("codabench", {"differentiating_images": []}, ["error: ", "Blue Team submission is expected"]),
        ("codabench", [{}, {}], ["error: ", "2 files that end in .json"]),
    ],
)
def test_wrong_submissions_fail_and_name_their_problems(
    worker: str, document: Any, problems: list[str], bundles: dict[str, Path], tmp_path: Path
) -> None:
    shown, error = WORKERS[worker](bundles, "blue", document, tmp_path)
    assert shown is None
    assert [problem for problem in problems if problem not in error] == []

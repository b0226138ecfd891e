"""Bundles of Codabench: its unpacker takes them, and its worker gives the command's scores."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from headstart.tests.material import codabench
from headstart.tests.material.bundles import Host, as_zip


def read(bundle: Path) -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load((bundle / "competition.yaml").read_text())
    return document


def test_the_unpacker_takes_the_bundles(bundles: dict[str, Path]) -> None:
    for team in ("blue", "red"):
        bundle = bundles[f"codabench {team}"]
        assert codabench.find_problems(bundle) == []
        public = codabench.unpack(bundle / "public_data.zip", bundle / "public")
        assert {path.name for path in public.iterdir()} == {"rules.yaml", "registry.json", "catalog.jsonl"}


def test_rules_are_those_of_the_challenge(host: Host, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    teams = {"blue": {"submissions": 7, "submissions_per_day": 2}, "red": {}}
    rules = host.write_rules(deadline="2099-03-31T23:59:59-12:00", time_zone="Europe/Berlin", teams=teams)
    folder = host.write_bundle("codabench", tmp_path / "out", "--image=owls/scoring:1", rules=rules)
    documents = {}
    for team in ("blue", "red"):
        bundle = codabench.unpack(folder / f"owls-{team}.zip", tmp_path / team)
        assert codabench.find_problems(bundle) == []
        documents[team] = read(bundle)

    (blue,), (red,) = (documents[team]["phases"] for team in ("blue", "red"))
    # The rest of the world has passed into April.
    assert str(codabench.read_time(blue["end"])) == "2099-04-01 11:59:59+00:00"
    assert (blue["max_submissions"], blue["max_submissions_per_day"]) == (7, 2)
    assert (red["max_submissions"], red["max_submissions_per_day"]) == (None, None)
    boards = [documents[team]["leaderboards"][0]["submission_rule"] for team in ("blue", "red")]
    assert boards == ["Force_Best", "Force_Best"]
    assert documents["blue"]["docker_image"] == "owls/scoring:1"
    lines = capsys.readouterr().out
    assert "time_zone: days end at midnight in UTC there, not in Europe/Berlin\n" in lines
    assert "'owls/scoring:1'" in lines


@pytest.mark.usefixtures("shared_cache")
@pytest.mark.parametrize(("team", "strips"), [("blue", False), pytest.param("red", True, marks=pytest.mark.slow)])
def test_scores_are_those_of_the_command(
    team: str, strips: bool, host: Host, bundles: dict[str, Path], tmp_path: Path
) -> None:
    bundle = bundles[f"codabench {team}"]
    submission = as_zip({"mine/document.json": host.documents[team], "__MACOSX/mine/._document.json": {}})
    done = codabench.run_worker(bundle, submission, tmp_path, strips)
    assert done.code == 0, done.stderr
    assert done.scores is not None
    shown, expected = codabench.shown_scores(bundle, done.scores), host.score(team)
    assert shown["score"] == expected["score"]
    debiased = expected["mean_cka_debiased"]
    assert shown["debiased"] == (debiased if team == "blue" else 1 - debiased)
    assert [shown["low"], shown["high"]] == expected["ci95"]["score"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("files", "problems"),
    [
        ({"a.json": {"models": ["drawn_object", "random", "random"]}}, ["/models/0", "drawn_objects", "/models/2"]),
        ({"a.json": {"models": ["random"]}}, ["must have at least 2 models in this challenge"]),
        ({"a.json": {"differentiating_images": []}}, ["Blue Team submission is expected"]),
        ({"a.json": {}, "b.json": {}}, ["2 files that end in .json"]),
    ],
)
def test_wrong_submissions_fail_and_name_their_problems(
    files: dict[str, Any], problems: list[str], bundles: dict[str, Path], tmp_path: Path
) -> None:
    done = codabench.run_worker(bundles["codabench blue"], as_zip(files), tmp_path)
    assert (done.code, done.scores) == (1, None)
    assert done.stderr.startswith("error: ")
    assert "Traceback" not in done.stderr
    assert [problem for problem in problems if problem not in done.stderr] == []

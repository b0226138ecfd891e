"""The configuration of a challenge, and its rules of times and scores."""

from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
import yaml

from headstart.contract.challenge import (
    CHALLENGES,
    Challenge,
    TeamRules,
    challenge_path,
    read_challenge,
    shipped_challenges,
)
from headstart.contract.challenge_rules import find_untimely
from headstart.contract.problems import ContractError, Problem

MINIMAL: dict[str, Any] = {"name": "ours", "title": "Our challenge", "teams": {"red": {}}}
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def write(folder: Path, content: Any) -> Path:
    path = folder / "challenge.yaml"
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    return path


def refuse(folder: Path, content: Any) -> list[Problem]:
    with pytest.raises(ContractError, match=r"^challenge \S+challenge\.yaml: \d+ problems?: ") as caught:
        read_challenge(write(folder, content))
    return caught.value.problems


def test_shipped_challenges_and_versions_in_the_order_of_their_age(tmp_path: Path) -> None:
    assert shipped_challenges() == ["contract", "realign_2026"]
    challenges = {name: read_challenge(challenge_path(name)) for name in shipped_challenges()}
    assert [challenge.name for challenge in challenges.values()] == list(challenges)
    counts = [(team.count.exactly, team.count.least) for team in rules(challenges["contract"])]
    assert counts == [(None, 2), (None, 2)]
    assert [team.count.exactly for team in rules(challenges["realign_2026"])] == [20, 1000]
    assert [challenge.contract_versions for challenge in challenges.values()] == [("1.0",), ("1.0", "1.1")]
    challenge = read_challenge(write(tmp_path, {**MINIMAL, "contract_versions": ["1.1", "1.0", "1.1"]}))
    assert challenge.contract_versions == ("1.0", "1.1")


def rules(challenge: Challenge) -> list[TeamRules]:
    blue, red = challenge.rules("blue"), challenge.rules("red")
    assert blue is not None
    assert red is not None
    return [blue, red]


def test_a_file_of_the_users_is_preferred_to_a_shipped_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert challenge_path("contract") == CHALLENGES / "contract.yaml"
    monkeypatch.chdir(tmp_path)
    assert challenge_path("configs/challenge/contract.yaml") == CHALLENGES / "contract.yaml"
    (tmp_path / "contract").write_text("")
    assert challenge_path("contract") == Path("contract")


def test_missing_file_names_the_shipped_ones(tmp_path: Path) -> None:
    with pytest.raises(ContractError, match=r"there is no such file; .*: contract, realign_2026$"):
        read_challenge(challenge_path(str(tmp_path / "none.yaml")))
    with pytest.raises(ContractError, match=r"^challenge ~nobody-of-that-name/x: .*there is no such file"):
        read_challenge(challenge_path("~nobody-of-that-name/x"))


def test_all_that_a_challenge_can_say(tmp_path: Path) -> None:
    text = """
        name: spring
        title: "Spring: the challenge"
        deadline: 2026-03-31T23:59:59-12:00
        time_zone: Europe/Berlin
        teams:
          blue:
            count: {least: 3, most: 5}
            submissions: 10
            submissions_per_day: 2
          red: {count: {exactly: 4}, datasets: [photos]}
    """
    challenge = read_challenge(write(tmp_path, text))
    assert challenge.deadline == datetime(2026, 4, 1, 11, 59, 59, tzinfo=UTC)
    blue, red = rules(challenge)
    assert (blue.count.least, blue.count.most, blue.submissions, blue.submissions_per_day) == (3, 5, 10, 2)
    assert (red.count.exactly, red.submissions, challenge.rules("red").datasets) == (4, None, ("photos",))  # type: ignore[union-attr]


def red(**count: int) -> dict[str, Any]:
    return {"teams": {"red": {"count": count}}}


# What is changed in a challenge, or a whole file, where the problem is, and what it says.
MISTAKES: list[tuple[Any, str, str]] = [
    ({"name": "two words"}, "/name", "letters, digits"),
    ({"colour": "red"}, "/colour", "is not a field of a challenge"),
    ({"deadline": "2026-03-01T12:00:00"}, "/deadline", "has no time zone"),
    ({"deadline": "soon"}, "/deadline", "is not a time in ISO 8601, such as 2026"),
    ({"time_zone": "../etc"}, "/time_zone", "is not the name of a time zone"),
    ({"contract_versions": ["2.0"]}, "/contract_versions/0", "'1.0' or '1.1'"),
    ({"teams": {}}, "/teams", "needs blue or red"),
    ({"teams": {"blue": {"datasets": []}}}, "/teams/blue/datasets", "is not a field of a challenge"),
    (red(exactly=1), "/teams/red/count/exactly", "2"),
    (red(exactly=9, most=9), "/teams/red/count", "exactly with"),
    (red(least=9, most=8), "/teams/red/count", "least 9 above most 8"),
    *((text, "", "is not YAML") for text in ("a: [", "a: \x07", "deadline: 2026-13-41", "? [a]\n: b")),
    ("", "", "must be an object"),
    ("&a [*a]", "", "is not YAML"),
    ("name: a\nname: b", "", "the key 'name' twice"),
    ("teams: {red: {}, red: {}}", "", "the key 'red' twice"),
    ("[" * 20_000, "", "is not YAML"),
]


def test_mistakes_of_a_host(tmp_path: Path) -> None:
    wrong = []
    for changed, pointer, words in MISTAKES:
        problems = refuse(tmp_path, changed if isinstance(changed, str) else {**MINIMAL, **changed})
        if [problem.pointer for problem in problems] != [pointer] or words not in problems[0].rule:
            wrong.append((pointer, words, problems))
    assert not wrong, wrong


def test_all_mistakes_are_named_at_once(tmp_path: Path) -> None:
    problems = refuse(tmp_path, {"name": "", "teams": {"red": {"count": 3, "best_of": 2}}})
    assert {problem.pointer for problem in problems} == {"/name", "/title", "/teams/red/count", "/teams/red/best_of"}


def test_digests_are_of_the_rules_and_of_what_scores_depend_on(tmp_path: Path) -> None:
    plain = read_challenge(write(tmp_path, MINIMAL))
    turned = read_challenge(write(tmp_path, "# remark\nteams: {red: {}}\ntitle: Our challenge\nname: ours\n"))
    assert plain.digest == turned.digest
    changes: list[tuple[dict[str, Any], bool]] = [
        ({"title": "Other", "description": "Longer.", "deadline": NOON.isoformat(), "time_zone": "Asia/Tokyo"}, True),
        ({"teams": {"red": {"submissions": 3, "submissions_per_day": 1}}}, True),
        ({"contract_versions": ["1.0"]}, False),
        (red(least=3), False),
        ({"teams": {"red": {"datasets": ["photos"]}}}, False),
        ({"teams": {"red": {}, "blue": {}}}, False),
    ]
    others = [read_challenge(write(tmp_path, {**MINIMAL, **changed})) for changed, _ in changes]
    for other, (changed, is_same) in zip(others, changes, strict=True):
        assert (plain.scoring_digest == other.scoring_digest) is is_same, changed
        assert plain.digest != other.digest
    assert len({other.scoring_digest for other in others}) == len(others) - 1


def test_the_deadline_itself_is_in_time(tmp_path: Path) -> None:
    aware = NOON.astimezone(timezone(timedelta(hours=-5)))
    challenge = read_challenge(write(tmp_path, {**MINIMAL, "deadline": aware.isoformat(), "time_zone": "Asia/Tokyo"}))
    assert not challenge.is_over(NOON)
    assert find_untimely(challenge, "red", [], NOON) == []
    late = NOON + timedelta(microseconds=1)
    assert challenge.is_over(late)
    assert not read_challenge(write(tmp_path, MINIMAL)).is_over(late)
    (problem,) = find_untimely(challenge, "red", [], late)
    rule = "the deadline was 2026-03-01T21:00:00+09:00, and it is 2026-03-01T21:00:00.000001+09:00"
    assert (problem.pointer, problem.rule) == ("", rule)


def test_quotas_of_a_day_in_the_time_zone_and_in_total(tmp_path: Path) -> None:
    teams = {"red": {"submissions_per_day": 2, "submissions": 3}}
    challenge = read_challenge(write(tmp_path, {**MINIMAL, "time_zone": "Asia/Tokyo", "teams": teams}))
    # Midnight in Tokyo is 15:00 in UTC.
    before, after = datetime(2026, 3, 1, 14, 59, tzinfo=UTC), datetime(2026, 3, 1, 15, tzinfo=UTC)
    both = [before, before - timedelta(hours=9)]
    assert find_untimely(challenge, "red", both[:1], before) == []
    (problem,) = find_untimely(challenge, "red", both, before)
    assert problem.rule.startswith("all of the 2 submissions allowed on 2026-03-01 (Asia/Tokyo) were")
    assert find_untimely(challenge, "red", both, after) == []
    (problem,) = find_untimely(challenge, "red", [*both, before - timedelta(days=2)], after)
    assert problem.rule == "all of the 3 allowed submissions were made"
    (problem,) = find_untimely(challenge, "blue", [], NOON)
    assert problem.rule == "the challenge 'ours' has no Blue Team"

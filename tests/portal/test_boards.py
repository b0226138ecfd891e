"""The leaderboards are ranked and rendered once for each change."""

import random
import re
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import pytest

from headstart.output.errors import UserError
from headstart.portal.records.accounts import add_team
from headstart.portal.records.decisions import cancel, choose, disqualify, reinstate, withdraw
from headstart.portal.records.leaderboard import rank_teams, read_disqualified
from headstart.portal.records.scores import Scores
from headstart.portal.web import boards
from headstart.portal.work.intake import score_again
from headstart.portal.work.queue import Outcome, claim, failed, finish
from headstart.tests.material.portals import Site, blue, red
from headstart.tests.material.stub_scores import stub_score
from headstart.tests.portal.conftest import OpenSite


def test_a_score_changes_the_ranking_and_a_submission_does_not(site: Site) -> None:
    portal = site.client.app.state.portal  # type: ignore[attr-defined] # an application
    boards = portal.boards

    def read() -> list[Any]:
        with site.database.reading() as session:
            standings: list[Any] = boards.find(session, portal.phase, "blue", False).standings
            return standings

    site.submit(blue("owl", "lark"))
    site.work()
    first = read()
    site.submit(blue("owl", "lark"), token=add_team(site.database, "Larks"))
    site.submit(red(0, 1, 2), "red")
    after_team = read()
    site.submit(blue("owl", "wren"))
    assert read() is after_team
    assert after_team == first
    site.work()
    assert [line.team for line in read()] == ["Owls", "Larks"]


def test_of_many_readers_one_makes_the_table(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    original = boards._render

    def slow(challenge: Any, track: Any, standings: Any, held_out: bool) -> Any:
        made.append(track)
        time.sleep(0.05)
        return original(challenge, track, standings, held_out)

    monkeypatch.setattr(boards, "_render", slow)
    site.submit(blue("owl", "lark"))
    site.work()
    with ThreadPoolExecutor(8) as pool:
        pages = list(pool.map(lambda _: site.client.get("/leaderboard").text, range(8)))
    assert len(set(pages)) == 1
    assert sorted(made) == ["blue", "red"]


def test_a_participants_own_line_stands_out_for_that_participant_alone(site: Site) -> None:
    other = add_team(site.database, "Larks")
    site.submit(blue("owl", "lark"))
    site.submit(blue("owl", "lark", "wren"), token=other)
    site.work()
    for token, name in ((site.token, "Owls"), (other, "Larks"), (None, None)):
        page = site.client.get("/leaderboard", headers=site.headers(token) if token else {}).text
        rows = re.findall(r"<tr([^>]*)>.*?<th scope=\"row\"[^>]*>(\w+)</th>", page)
        assert [team for _, team in rows] == ["Owls", "Larks"]
        assert [team for attributes, team in rows if "own" in attributes] == ([name] if name else [])


def test_whiskers_share_a_scale(site: Site) -> None:
    """The stub's intervals are 0.01 to either side."""
    site.submit(blue("owl", "lark"))
    site.submit(blue("owl", "lark", "wren", "rook"), token=add_team(site.database, "Larks"))
    site.work()
    scores = [line["score"] for line in site.read("/api/leaderboard?team=blue")]
    low, high = min(scores) - 0.01, max(scores) + 0.01
    page = site.client.get("/leaderboard").text
    circles = [float(x) for x in re.findall(r'<circle cx="([\d.]+)"', page)]
    assert circles == pytest.approx([4 + 112 * (score - low) / (high - low) for score in scores], abs=0.051)
    ends = [(float(a), float(b)) for a, b in re.findall(r'<line x1="([\d.]+)" x2="([\d.]+)"', page)]
    assert max(b for _, b in ends) == 116
    assert min(a for a, _ in ends) == 4


def finish_with(site: Site, *scores: float) -> None:
    """Score what waits, in its order."""
    for score in scores:
        job = claim(site.database, "test")
        assert job is not None
        assert finish(site.database, job, Outcome("scored", scores=Scores(score)))


@pytest.mark.parametrize(("ties", "ranks"), [("earliest", [1, 2]), ("shared", [1, 1])])
def test_scores_that_differ_in_the_last_bit_are_equal(open_site: OpenSite, ties: str, ranks: list[int]) -> None:
    """A mean depends on the order of its terms: here 0.1 + 0.2 + 0.3, and 0.3 + 0.2 + 0.1."""
    site = open_site({"ties": ties})
    site.submit(blue("owl", "lark", "wren"))
    site.submit(blue("wren", "lark", "owl"), token=add_team(site.database, "Larks"))
    # A later one of the same team does not take the place of its equal.
    site.submit(blue("lark", "owl", "wren"))
    first, second = (0.3 + 0.2 + 0.1) / 3, (0.1 + 0.2 + 0.3) / 3
    assert first < second
    finish_with(site, first, second, second)
    lines = site.read("/api/leaderboard?team=blue")
    assert [(line["rank"], line["submission"]) for line in lines] == list(zip(ranks, (1, 2), strict=True))
    assert [line["score"] for line in lines] == [first, second]


def test_a_score_that_counts_again_is_on_the_leaderboard_at_once(site: Site) -> None:
    site.submit(blue("owl", "lark"))
    site.work()
    assert len(site.read("/api/leaderboard?team=blue")) == 1
    phases = site.client.app.state.portal.phases  # type: ignore[attr-defined] # an application
    score_again(site.database, [1], phases)
    job = claim(site.database, "test")
    assert job is not None
    assert finish(site.database, job, Outcome("refused", problems=[]))
    assert site.read("/api/leaderboard?team=blue") == []
    score_again(site.database, [1], phases)
    assert len(site.read("/api/leaderboard?team=blue")) == 1


def test_the_cached_leaderboard_is_never_another_than_a_new_one(open_site: OpenSite) -> None:
    site = open_site({"teams": {"blue": {"standing": "chosen"}, "red": {}}}, held_out_catalog="held_out.jsonl")
    portal, rng = site.client.app.state.portal, random.Random(0)  # type: ignore[attr-defined] # an application
    tokens, rules = [add_team(site.database, name) for name in ("Larks", "Wrens", "Rooks")], portal.challenge

    def work() -> None:
        if job := claim(site.database, "test"):
            scored, refused = stub_score(job), Outcome("refused", problems=[])
            assert finish(site.database, job, rng.choice([scored, scored, scored, failed("", ""), refused]))

    def change(number: int) -> None:
        actions: list[Callable[[], object]] = [
            lambda: site.submit(blue("owl", "lark") + b" " * rng.randint(0, 5), token=rng.choice(tokens)),
            work,
            work,
            lambda: withdraw(site.database, rules, number),
            lambda: choose(site.database, rules, number),
            lambda: disqualify(site.database, number, "why"),
            lambda: reinstate(site.database, number),
            lambda: cancel(site.database, number, "why"),
            lambda: score_again(site.database, [number], portal.phases),
        ]
        with suppress(UserError):
            rng.choice(actions)()

    seen = set()
    for turn in range(120):
        change(rng.randint(1, 1 + turn // 6))
        with site.database.reading() as session:
            for is_over in (False, True):
                board = portal.boards.find(session, portal.phase, "blue", is_over)
                bases = portal.phase.shown_bases("blue", is_over)
                assert (board.standings, board.held_back) == rank_teams(session, rules, "blue", bases), f"turn {turn}"
                assert board.disqualified == read_disqualified(session, "small", "blue"), f"turn {turn}"
                seen.add(tuple(line.submission_id for line in board.standings))
    assert len(seen) > 5

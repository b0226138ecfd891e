"""The pages and the JSON of one portal: what they show, and to whom."""

import json
import re
from typing import Any

import pytest

from headstart.tests.material.portals import STIMULI, Site, blue, red
from headstart.tests.portal.conftest import OpenSite

SCORES = [f"{1 / len(content):.6f}" for content in (blue("owl", "lark"), blue("owl", "lark", "wren"))]


def read(site: Site, path: str, token: str = "") -> str:
    """Return a page as who has a token sees it, or nobody."""
    site.client.cookies.clear()
    if token:
        site.log_in(token)
    answer = site.client.get(path)
    assert answer.status_code == 200, answer.text
    return answer.text


def test_names_are_escaped_and_nothing_is_loaded_from_elsewhere(shown: Site) -> None:
    for path in ("/", "/blue", "/red", "/login", "/leaderboard", "/log"):
        text = read(shown, path, shown.token)
        assert "&lt;b&gt;Owls&lt;/b&gt;" in text, path
        assert not any(markup in text for markup in ("<b>", "<script", " style=")), path
        assert re.findall(r'(?:src|href|action)="(?!/|#)', text) == [], path


def test_the_overview_has_rules_and_dates(shown: Site) -> None:
    text = read(shown, "/")
    counts = ["2 or more of 4 models", "2 or more of 8 stimuli"]
    # Times are in the time zone of the rules.
    dates = ["open until", "3000-01-01 08:59:59 Asia/Tokyo"]
    assert [words for words in ("Owls &amp; larks.", *counts, *dates) if words not in text] == []


def test_the_leaderboard_ranks_the_best_score_of_each(shown: Site) -> None:
    boards = {track: shown.client.get(f"/api/leaderboard?team={track}").json() for track in ("blue", "red")}
    lines = boards["blue"]["standings"]
    ranked = [(line["rank"], line["participant"], line["submission"], line["submissions"]) for line in lines]
    assert ranked == [(1, "<b>Owls</b>", 1, 1), (2, "Larks", 4, 1)]
    assert [lines[0][name] for name in ("low", "high")] == [lines[0]["score"] - 0.01, lines[0]["score"] + 0.01]
    assert (boards["red"]["standings"][0]["participant"], boards["red"]["held_back"]) == ("Red owls", 0)
    text = read(shown, "/leaderboard", shown.token)
    assert text.index(SCORES[0]) < text.index(SCORES[1])
    assert f"{lines[0]['low']:.4f} to {lines[0]['high']:.4f}" in text
    # The own line is marked, and no other.
    assert re.findall(r'class="own".*?row" class="text">([^<]*)<', text) == ["&lt;b&gt;Owls&lt;/b&gt;"]


def test_my_submissions_have_states_and_problems(shown: Site) -> None:
    text = read(shown, "/submissions", shown.token)
    states = [re.sub("<[^>]*>", "", cell).strip() for cell in re.findall(r'data-label="State">(.*?)</td>', text, re.S)]
    assert states == ["queue place 1", "refused", "scored"]
    assert " (and 2 more)</td>" in text
    # A waiting one has the page load itself again.
    assert 'http-equiv="refresh"' in text
    refused = read(shown, "/submissions/3", shown.token)
    assert "3 problems" in refused
    assert "<code>/models/1</code>" in refused
    assert 'http-equiv="refresh"' not in refused
    scored = read(shown, "/submissions/1", shown.token)
    assert SCORES[0] in scored
    assert '<th scope="col" class="number">lark</th>' in scored


def test_others_submissions_are_not_there(shown: Site) -> None:
    shown.client.cookies.clear()
    assert shown.client.get("/submissions").headers["location"] == "/login"
    for number in (1, 4, 999, 2**31 - 1):
        answer = shown.client.get(f"/submissions/{number}")
        assert (answer.status_code, "or it is another team" in answer.text) == (404, True)
    shown.log_in()
    assert shown.client.get("/submissions/4").status_code == 404
    for text in ("0", str(2**31), "one"):
        assert shown.client.get(f"/submissions/{text}").status_code == 404
    # The log says of others' submissions nothing.
    text = read(shown, "/log", shown.token)
    assert "of &lt;b&gt;Owls&lt;/b&gt; (Blue Team): scored" in text
    assert "Larks" not in text
    assert "refused" not in text
    assert "Submission" not in read(shown, "/log")


def test_programs_read_the_same(shown: Site) -> None:
    one, two, three = shown.read("/api/submissions")
    assert [row["id"] for row in (one, two, three)] == [5, 3, 1]
    assert (one["state"], one["place_in_queue"], one["problems"]) == ("queue", 1, [])
    assert {problem["pointer"] for problem in two["problems"]} == {"/models/1", "/models/2"}
    assert [row["id"] for row in shown.read("/api/submissions?before=5")] == [3, 1]
    whole = shown.read("/api/submissions/1")
    assert whole["result"]["pairwise"]["names"] == ["owl", "lark"]
    assert not {"digests", "timings"} & set(whole["result"])
    assert whole == {**three, "result": whole["result"]}
    rules = shown.client.get("/api/challenge").json()
    assert rules["open"]
    assert rules["models"] == ["owl", "lark", "wren", "rook"]
    lines = shown.client.get("/api/stimuli").text.splitlines()
    assert [json.loads(line) for line in lines] == STIMULI
    schema = shown.client.get("/api/schemas/blue_submission").json()
    assert "models" in schema["properties"]
    assert [event["event"] for event in shown.read("/api/log")] == ["received", "scored", "received"]


def test_what_the_api_refuses(shown: Site) -> None:
    shown.log_in()
    for method, path, status, reason in (
        ("GET", "submissions", 401, "no valid token"),
        ("POST", "submissions?team=blue", 401, "no valid token"),
        # A cookie opens nothing for a program.
        ("GET", "submissions/1", 404, "or it is another team's"),
        ("GET", "schemas/none", 404, "There is no such schema"),
        ("GET", "submissions/none", 404, "There is no such page"),
        ("POST", "validate?team=blue", 401, "no valid token"),
        ("GET", "leaderboard?team=green", 400, "team: Input should be 'blue' or 'red'"),
        ("GET", "leaderboard", 400, "team: Field required"),
    ):
        answer = shown.client.request(method, f"/api/{path}")
        assert (answer.status_code, reason in answer.json()["error"]) == (status, True), path
        assert answer.headers.get("www-authenticate") == ("Bearer" if status == 401 else None)


def form(site: Site, track: str = "blue", action: str = "submit", **more: Any) -> Any:
    files = {"file": more.pop("file")} if "file" in more else {"file": ("", b"")}
    return site.client.post(f"/{track}", data={"action": action, **more}, files=files)


def test_a_form_takes_a_file_a_text_or_models(site: Site) -> None:
    site.log_in()
    documents: list[dict[str, Any]] = [
        {"file": ("mine.json", blue("owl", "lark"))},
        # Browsers write the end of a line as two bytes.
        {"document": '{"models":\r\n["owl", "wren"]}'},
        {"models": ["owl", "rook"]},
    ]
    for number, document in enumerate(documents, 1):
        assert form(site, **document).headers["location"] == f"/submissions/{number}"
    assert form(site, models=["owl", "rook"]).headers["location"] == "/submissions/3"
    assert [job.content for job in site.work()] == [
        blue("owl", "lark"),
        b'{"models":\n["owl", "wren"]}',
        blue("owl", "rook"),
    ]
    for mistake in ({}, {"document": "{}", "models": ["owl"]}, {"document": " ", "file": ("", b"")}):
        answer = form(site, **mistake)
        assert (answer.status_code, "Give one document" in answer.text) == (400, True)


def test_a_form_only_checks_where_that_is_asked_for(site: Site) -> None:
    site.log_in()
    text = form(site, action="check", models=["owl", "lark"]).text
    assert "Valid. It is not submitted yet." in text
    assert re.findall(r'value="(\w+)" checked', text) == ["owl", "lark"]
    text = form(site, "red", "check", file=("mine.json", red(0, 0))).text
    assert "1 problem" in text
    # The text of the file stands in the form, so that it can be mended there.
    assert "image_identifier&#34;: &#34;0.png" in text
    assert site.read("/api/submissions") == []


def test_who_logs_out_or_is_revoked_meanwhile_is_told_so(site: Site) -> None:
    site.log_in()
    cookies = dict(site.client.cookies)
    assert site.client.post("/logout").headers["location"] == "/"
    assert "Log in" in site.client.get("/").text
    assert site.client.post("/blue").status_code == 401
    site.client.cookies.update(cookies)
    site.admin("teams", "revoke", "Owls")
    answer = site.client.post("/blue")
    assert (answer.status_code, "no longer logged in" in answer.text) == (401, True)


@pytest.mark.parametrize(
    ("date", "text"),
    [({"opens": "2999-01-01T00:00:00Z"}, "Submissions open on"), ({"deadline": "2020-01-01T00:00:00Z"}, "has passed")],
)
def test_outside_the_dates_documents_are_refused_and_checked(open_site: OpenSite, date: Any, text: str) -> None:
    site = open_site(date)
    assert [text in site.client.get(path).text for path in ("/", "/blue")] == [True, True]
    assert not site.client.get("/api/challenge").json()["open"]
    answer = site.submit(blue("owl", "lark"))
    assert (answer.status_code, answer.json()["state"]) == (422, "refused")
    assert site.check(blue("owl", "lark")).json()["valid"]


def test_a_challenge_without_a_red_team_has_no_page_of_it(open_site: OpenSite) -> None:
    site = open_site({"teams": {"blue": {}}})
    assert '"/red"' not in site.client.get("/").text
    for path in ("/red", "/api/stimuli"):
        assert site.client.get(path).status_code == 404
    assert "Red Team" not in site.client.get("/leaderboard").text
    assert site.submit(red(0, 1), "red").json()["problems"][0]["rule"].endswith("has no Red Team")

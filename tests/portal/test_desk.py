"""The organisers' desk: who may open it, what its pages show, and that its forms do what the command line does."""

import html
import re
from pathlib import Path
from typing import Any

import pytest
from jsonargparse import Namespace

from headstart.portal.admin import main
from headstart.portal.commands.command import Command, Desk
from headstart.portal.commands.table import COMMANDS
from headstart.portal.records import submissions
from headstart.portal.records.accounts import add_team
from headstart.portal.records.log import read_whole_log
from headstart.portal.web import command_forms
from headstart.portal.work.queue import Outcome, claim, finish, put_back
from headstart.tests.material.organisers import add_organiser, read_proof, run_at_desk
from headstart.tests.material.portals import Site, blue, make_settings, red

PAGES = ("/desk", "/desk/teams", "/desk/submissions", "/desk/run/freeze", "/desk/run/teams/add")


@pytest.fixture
def desk(site: Site) -> Site:
    """Log an organiser in at a portal with a team."""
    site.log_in(add_organiser(site.database))
    return site


def events(site: Site) -> list[str]:
    return [event.text for event in read_whole_log(site.database, 1000)]


def rows(page: str) -> list[list[str]]:
    """Return the texts of the cells of a page's table, without those of the actions."""
    body = page.partition("<tbody>")[2].partition("</tbody>")[0]
    cells = [
        re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", row, re.DOTALL) for row in re.findall(r"<tr>.*?</tr>", body, re.DOTALL)
    ]
    return [[html.unescape(re.sub(r"<[^>]*>", "", cell)).strip() for cell in row[:-1]] for row in cells]


@pytest.mark.parametrize("path", PAGES)
def test_the_desk_is_for_organisers_alone(site: Site, path: str) -> None:
    answer = site.client.get(path)
    assert (answer.status_code, answer.headers["location"]) == (303, "/login")
    site.log_in()
    assert site.client.get(path).status_code == 404
    assert "/desk" not in site.client.get("/").text
    proof, before = read_proof(site, "/"), events(site)
    for words in command_forms.FORMS:
        sent = site.client.post(f"/desk/run/{words.replace(' ', '/')}", data={"proof": proof, "name": "Larks"})
        assert sent.status_code == 404
    assert events(site) == before
    site.log_in(add_organiser(site.database))
    assert site.client.get(path).status_code == 200
    assert 'href="/desk"' in site.client.get("/").text


def test_an_organiser_who_was_shut_out_has_no_desk(desk: Site) -> None:
    proof = read_proof(desk)
    main([f"--data={desk.settings.data}", "organisers", "revoke", "Ada"])
    before = events(desk)
    for path in (*PAGES, "/desk/run/nothing"):
        assert desk.client.get(path).headers["location"] == "/login"
    assert desk.client.post("/desk/run/freeze", data={"proof": proof}).status_code == 303
    assert desk.client.get("/desk", headers=desk.headers("token of Ada")).status_code == 303
    assert events(desk) == before


def test_an_announcement_is_retracted_from_the_log(desk: Site) -> None:
    run_at_desk(desk, "announce", text="We moved.")
    (link,) = re.findall(r'We moved\. <a href="([^"]*)">Retract</a>', desk.client.get("/desk").text)
    (number,) = re.findall(r'name="number" value="(\d+)"', desk.client.get(link).text)
    assert run_at_desk(desk, "retract", number=number).status_code == 200
    assert "Retract</a>" not in desk.client.get("/desk").text
    assert "We moved." not in desk.client.get("/").text


def test_forms_of_other_pages_do_nothing(desk: Site) -> None:
    before = events(desk)
    for fields in ({}, {"proof": "wrong"}, {"proof": ""}):
        assert desk.client.post("/desk/run/freeze", data=fields).status_code == 403
    assert desk.client.get("/desk/run/freeze").status_code == 200
    assert events(desk) == before


def test_every_command_that_changes_something_has_a_form_with_its_arguments(desk: Site) -> None:
    linked = set(re.findall(r'href="(/desk/run/[^"?]*)"', desk.client.get("/desk").text))
    assert linked == {f"/desk/run/{words.replace(' ', '/')}" for words, each in COMMANDS.items() if each.in_browser}
    for words, command in COMMANDS.items():
        answer = desk.client.get(f"/desk/run/{words.replace(' ', '/')}")
        assert answer.status_code == (200 if command.in_browser else 404)
        fields = set(re.findall(r'<(?:input|textarea)[^>]* name="(\w+)"', answer.text)) - {"proof"}
        assert fields == (
            {name.lstrip("-") for name in command.arguments} - {"output"} if command.in_browser else set()
        )


def test_a_token_is_shown_once(desk: Site) -> None:
    answer = run_at_desk(desk, "teams add", name="Larks")
    assert answer.status_code == 200
    assert answer.headers["cache-control"] == "no-store"
    token = re.search(r"<pre>Larks has the token ([\w-]{43})\b", answer.text)
    assert token is not None
    assert desk.read("/api/submissions", token[1]) == []
    assert all(token[1] not in desk.client.get(path).text for path in (*PAGES, "/desk/run/teams/add?name=Larks"))
    again = run_at_desk(desk, "teams add", name="larks")
    assert again.status_code == 400
    assert "looks like a team that exists, &#39;Larks&#39;" in again.text
    # What was typed stays in the form.
    assert 'value="larks"' in again.text


@pytest.mark.parametrize(
    ("words", "fields", "reason"),
    [
        ("teams add", {}, "name: is missing; Name of the team."),
        ("teams add", {"name": "<b>\x00</b>"}, r"name: '<b>\x00</b>' is not valid"),
        ("teams renew", {"name": "Nobody"}, "name: there is no team 'Nobody'"),
        ("rescore", {}, "rescore: give numbers of submissions, or one of"),
        ("rescore", {"numbers": "1 two"}, "numbers: '1 two' is not valid; Numbers of submissions."),
        ("rescore", {"numbers": "7"}, "numbers: submission 7 cannot be scored again: there is none"),
        ("rescore", {"numbers": str(10**30)}, "there is none"),
    ],
)
def test_mistakes_are_explained_beside_the_form(desk: Site, words: str, fields: dict[str, str], reason: str) -> None:
    answer = run_at_desk(desk, words, **fields)
    assert answer.status_code == 400
    said = re.search(r'role="alert" id="mistake">([^<]*)<', answer.text)
    assert said is not None
    assert reason in html.unescape(said[1])


def test_fields_become_the_arguments_of_the_command_line(desk: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    got: list[dict[str, Any]] = []

    def run(desk: Desk, args: Namespace) -> str:
        """Do it."""
        got.append(vars(args))
        if "output" in args:
            got[-1]["file"] = Path(args.file).read_text()
            Path(args.output).write_text("team,link\nÖwls,<b>\n")
            return f"1 is in {args.output}."
        return ""

    text: dict[str, Any] = {"type": str, "help": "A text."}
    wanted: dict[str, dict[str, Any]] = {
        "numbers": {"type": int, "nargs": "*", "help": "Numbers."},
        "team": {**text, "nargs": "?"},
        "--days": {"type": int, "default": 14, "help": "Days."},
        "--note": {**text, "default": None},
        "--all": {"action": "store_true", "help": "All."},
    }
    monkeypatch.setitem(command_forms.FORMS, "try", Command(run, wanted))
    assert run_at_desk(desk, "try").status_code == 200
    assert run_at_desk(desk, "try", numbers="3, 5 8", team=" A b ", days="2", note="é\n", all="true").status_code == 200
    assert got == [
        {"numbers": [], "team": None, "days": 14, "note": None, "all": False},
        {"numbers": [3, 5, 8], "team": "A b", "days": 2, "note": "é", "all": True},
    ]
    files = {"file": text, "--output": {**text, "required": True}}
    monkeypatch.setitem(command_forms.FORMS, "try", Command(run, files))
    answer = run_at_desk(desk, "try", file="team\r\nÖwls\r\n")
    assert got[-1]["file"] == "team\nÖwls"
    assert "<pre>1 is in the table below.\n\nteam,link\nÖwls,&lt;b&gt;\n</pre>" in answer.text
    assert not Path(got[-1]["output"]).exists()


def test_who_gives_a_command_is_logged(desk: Site) -> None:
    run_at_desk(desk, "teams renew", name="Owls")
    run_at_desk(desk, "teams renew", name="Nobody")
    run_at_desk(desk, "freeze")
    main([f"--data={desk.settings.data}", "thaw"])
    main([f"--data={desk.settings.data}", "log"])
    given = [text for text in events(desk) if "ran the command" in text]
    assert given == [
        "Ada ran the command `teams renew` (name: Owls).",
        "Ada ran the command `teams renew` (name: Nobody).",
        "Ada ran the command `freeze`.",
        "the command line ran the command `thaw`.",
    ]
    public = [event["text"] for event in desk.read("/api/log")]
    assert not any("Ada" in text for text in public)
    assert given[0] in html.unescape(desk.client.get("/desk").text)


def test_all_teams_are_listed(desk: Site) -> None:
    name = '<i>Z&y</i> "o\'"'
    for each in ("Larks", name):
        add_team(desk.database, each)
    for models in (("owl", "lark"), ("owl", "wren"), ("nothing", "owl")):
        desk.submit(blue(*models))
    run_at_desk(desk, "teams revoke", name="Larks")
    page = desk.client.get("/desk/teams").text
    assert [row[:4] for row in rows(page)] == [
        [name, "takes part", name, "0"],
        ["Larks", "revoked", "Larks", "0"],
        ["Owls", "takes part", "Owls", "2"],
    ]
    # An action leads to its form, with the team in it.
    links = [html.unescape(link) for link in re.findall(r'href="(/desk/run/teams/renew\?[^"]*)"', page)]
    assert len(links) == 3
    forms = [desk.client.get(link).text for link in links]
    assert any(
        f'value="{html.escape(name).replace("&quot;", "&#34;").replace("&#x27;", "&#39;")}"' in form for form in forms
    )
    assert "/desk/run/teams/add?" not in page


def test_submissions_are_listed_with_the_reasons_of_failures(site: Site) -> None:
    larks = add_team(site.database, "Larks")
    site.submit(blue("owl", "lark"))
    site.submit(blue("nothing", "owl"))
    site.submit(red(0, 1), "red", larks)
    site.submit(blue("owl", "wren"), token=larks)
    site.submit(blue("owl", "rook"), token=larks)
    job = claim(site.database, "test")
    assert job is not None
    assert finish(site.database, job, Outcome("failed", "On our side.", "weights.pth is <missing>"))
    job = claim(site.database, "test")
    assert job is not None
    put_back(site.database, job, "Again soon.", "no memory")
    site.log_in(add_organiser(site.database))

    def listed(query: str = "") -> list[list[str]]:
        return rows(site.client.get(f"/desk/submissions{query}").text)

    shown = listed()
    assert [row[0] for row in shown] == ["5", "4", "3", "2", "1"]
    assert [row[1] for row in shown] == ["Larks, blue", "Larks, blue", "Larks, red", "Owls, blue", "Owls, blue"]
    reasons = {row[0]: row[5] for row in shown}
    assert reasons["1"] == "weights.pth is <missing>"
    assert reasons["2"] == site.read("/api/submissions/2")["problems"][0]["rule"]
    assert reasons["3"] == "no memory"
    assert [row[0] for row in listed("?state=failed")] == ["1"]
    assert [row[0] for row in listed("?state=refused")] == ["2"]
    assert [row[0] for row in listed("?state=queue&team=larks")] == ["5", "4", "3"]
    assert listed("?team=Nobody") == []
    run_at_desk(site, "disqualify", number="1", reason="Not theirs.")
    assert listed("?state=failed")[0][2].split() == ["failed", "disqualified"]
    assert site.client.get("/desk/submissions?state=nonsense").status_code == 400
    answer = run_at_desk(site, "rescore", numbers="1")
    assert "1 submission is in the queue again" in answer.text
    assert [row[0] for row in listed("?state=failed")] == []


def test_a_name_that_nobody_can_have_finds_nothing_in_either_database(database_url: str, tmp_path: Path) -> None:
    site = Site(make_settings(tmp_path, {}, database=database_url))
    with site.client:
        site.log_in(add_organiser(site.database))
        assert site.client.get("/desk/submissions?team=a%00b").status_code == 200


def test_earlier_submissions_are_on_further_pages(desk: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(submissions, "PAGE_LENGTH", 3)
    for number in range(8):
        desk.submit(blue("owl", "lark", *["wren"] * (number % 2)))
    path, seen = "/desk/submissions?team=Owls", list[str]()
    while path:
        page = desk.client.get(path).text
        seen += [row[0] for row in rows(page)]
        more = re.search(r'href="(/desk/submissions\?[^"]*before=[^"]*)"', page)
        path = html.unescape(more[1]) if more else ""
    assert seen == [str(number) for number in range(8, 0, -1)]

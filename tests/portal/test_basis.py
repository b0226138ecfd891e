"""Scores of other documents or rules are never ranked beside today's."""

import json
import random
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonargparse import Namespace

from headstart.output.errors import UserError
from headstart.portal.commands.command import Desk
from headstart.portal.commands.submissions import SUBMISSION_COMMANDS
from headstart.portal.records.accounts import add_team
from headstart.portal.records.basis import find_held_back, read_bases
from headstart.portal.records.database import Database
from headstart.portal.records.log import read_whole_log
from headstart.portal.work.intake import score_again
from headstart.portal.work.queue import OtherDocumentsError, claim, finish, put_back
from headstart.tests.material.arena import make_entry
from headstart.tests.material.portals import RULES, STIMULI, Site, blue, make_settings, red
from headstart.tests.material.stub_scores import MODELS, stub_score


class Changes:
    """Documents of a portal that are changed at random, and back again."""

    def __init__(self, folder: Path) -> None:
        self.rng, self.settings = random.Random(0), make_settings(folder, {}, held_out_catalog="held_out.jsonl")
        self.folder, self.state = folder, {"models": 4, "stimuli": 8, "held_out": 4, "most": 50}

    def change(self) -> None:
        name = self.rng.choice(list(self.state))
        choices = {"models": (4, 3), "stimuli": (8, 6, 5), "held_out": (4, 3, 2), "most": (50, 40)}[name]
        self.state[name] = self.rng.choice([each for each in choices if each != self.state[name]])
        models = [make_entry(name, "fc", "flatten", 8) for name in MODELS[: self.state["models"]]]
        (self.folder / "registry.json").write_text(json.dumps(models))
        for file, key in (("catalog", "stimuli"), ("held_out", "held_out")):
            lines = "\n".join(map(json.dumps, STIMULI[: self.state[key]]))
            (self.folder / f"{file}.jsonl").write_text(lines)
        rules = {"teams": {"blue": {"count": {"most": self.state["most"]}}, "red": {}}, "deadline": "2020-01-01T00:00Z"}
        (self.folder / "challenge.yaml").write_text(yaml.safe_dump({**RULES, **rules}))

    def key(self, kind: str) -> tuple[int, ...]:
        """Return what a score depends on."""
        stimuli = "stimuli" if kind == "public" else "held_out"
        return tuple(self.state[name] for name in ("models", stimuli, "most"))


def test_leaderboards_of_changed_documents_are_never_mixed(tmp_path: Path) -> None:
    changes = Changes(tmp_path)
    with (site := Site(changes.settings)).client:
        tokens = [add_team(site.database, name) for name in ("Owls", "Larks", "Wrens")]
        for number, token in enumerate(tokens):
            site.submit(blue("owl", "lark") + b" " * number, token=token)
            site.submit(red(0, 1, number + 2), "red", token)
    scored_by: dict[tuple[int, str], set[Any]] = {}
    for turn in range(20):
        changes.change()
        with (site := Site(changes.settings)).client:
            boards = {track: site.client.get(f"/api/leaderboard?team={track}") for track in ("blue", "red")}
            for answer in boards.values():
                for line in answer.json():
                    assert changes.key("public") in scored_by[line["submission"], "public"], f"turn {turn}"
                    if line.get("held_out_score") is not None:
                        assert changes.key("held_out") in scored_by[line["submission"], "held_out"], f"turn {turn}"
            page = site.client.get("/leaderboard").text
            held_back = sum(int(answer.headers["Headstart-Held-Back"]) for answer in boards.values())
            assert ("Not counted until scored again" in page) == bool(held_back)
            with site.database.reading() as session:
                numbers = find_held_back(session, read_bases(session))
            assert len(numbers) >= held_back
            # Some are scored again, the others stay held back.
            chosen = changes.rng.sample(numbers, changes.rng.randint(0, len(numbers)))
            score_again(site.database, chosen, site.client.app.state.portal.phases)  # type: ignore[attr-defined]
            while (job := claim(site.database, "test")) is not None:
                assert finish(site.database, job, stub_score(job))
                scored_by.setdefault((job.submission_id, job.kind), set()).add(changes.key(job.kind))
    assert len(scored_by) == 9


def test_a_change_is_announced_and_mended_by_one_command(tmp_path: Path) -> None:
    changes = Changes(tmp_path)
    with (site := Site(changes.settings)).client:
        site.token = add_team(site.database, "Owls")
        site.submit(blue("owl", "lark"))
        site.work()
        assert [line["rank"] for line in site.read("/api/leaderboard?team=blue")] == [1]
    (tmp_path / "catalog.jsonl").write_text("\n".join(map(json.dumps, STIMULI[:5])))
    with (changed := Site(changes.settings, site.token)).client:
        assert changed.read("/api/leaderboard?team=blue") == []
        assert "documents and rules: 1 submission." in changed.client.get("/leaderboard").text
        assert changed.read("/api/submissions/1")["held_back"]
        assert "does not count" in changed.client.get("/submissions/1", headers=changed.headers()).text
        assert "1 submission was scored with other documents" in changed.client.get("/log").text
        with changed.database.reading() as session:
            numbers = find_held_back(session, read_bases(session))
        assert score_again(changed.database, numbers, changed.client.app.state.portal.phases) == 1  # type: ignore[attr-defined]
        changed.work()
        assert [line["rank"] for line in changed.read("/api/leaderboard?team=blue")] == [1]
        assert "Not counted" not in changed.client.get("/leaderboard").text
    # A start without a change says nothing more.
    with Site(changes.settings).client as client:
        events = read_whole_log(client.app.state.portal.database, 100)  # type: ignore[attr-defined]
        assert [event.kind for event in events].count("documents changed") == 1


def test_another_title_or_deadline_changes_no_score(tmp_path: Path) -> None:
    settings = make_settings(tmp_path, {})
    with (site := Site(settings)).client:
        site.token = add_team(site.database, "Owls")
        site.submit(blue("owl", "lark"))
        site.work()
    later = make_settings(tmp_path, {"title": "Another", "deadline": "2999-01-01T00:00Z", "ties": "shared"})
    with (site := Site(later, site.token)).client:
        assert [line["rank"] for line in site.read("/api/leaderboard?team=blue")] == [1]


def test_a_worker_with_other_documents_claims_nothing(database_url: str, tmp_path: Path) -> None:
    settings = make_settings(tmp_path, {}, database=database_url)
    with (site := Site(settings)).client:
        site.token = add_team(site.database, "Owls")
        site.submit(blue("owl", "lark"))
        bases = {key: basis for phase in site.client.app.state.portal.phases for key, basis in phase.bases().items()}  # type: ignore[attr-defined]
        with pytest.raises(OtherDocumentsError, match="other documents or rules"):
            claim(site.database, "test", {**bases, "small/blue/public": "other"})
        assert claim(site.database, "test", bases) is not None


def test_before_the_first_start_of_a_server_a_worker_waits(database_url: str) -> None:
    with closing(Database(database_url)) as database:
        database.create_tables()
        assert claim(database, "test", {"small/blue/public": "some"}) is None


def open_changed(folder: Path, stimuli: int, **settings: Any) -> Site:
    """Open a portal with some of the stimuli."""
    site = Site(make_settings(folder, {}, **settings))
    (folder / "catalog.jsonl").write_text("\n".join(map(json.dumps, STIMULI[:stimuli])))
    return site


def held_back(site: Site) -> list[int]:
    with site.database.reading() as session:
        return find_held_back(session, read_bases(session))


def command(site: Site, **chosen: bool) -> str:
    chosen = {"failed": False, "scored": False, "held_back": False, **chosen}
    args = Namespace(numbers=[], **chosen)  # type: ignore[no-untyped-call]
    return SUBMISSION_COMMANDS["rescore"].run(Desk(site.settings, site.database), args)


def test_pages_and_leaderboard_agree_when_documents_change_back(tmp_path: Path) -> None:
    with (site := open_changed(tmp_path, 8)).client:
        token = add_team(site.database, "Owls")
        site.submit(blue("owl", "lark"), token=token)
        site.work()
    with (site := open_changed(tmp_path, 5)).client:
        command(site, held_back=True)
        site.work()
    with (site := open_changed(tmp_path, 8)).client:
        # The latest score is of other documents, so that none counts: nobody has to guess which of them is meant.
        assert (site.read("/api/leaderboard?team=blue", token), held_back(site)) == ([], [1])
        assert site.read("/api/submissions/1", token)["held_back"]
        command(site, held_back=True)
        site.work()
        assert len(site.read("/api/leaderboard?team=blue", token)) == 1
        assert not site.read("/api/submissions/1", token)["held_back"]


def test_one_command_scores_again_whatever_is_in_the_queue(tmp_path: Path) -> None:
    with (site := open_changed(tmp_path, 8)).client:
        site.token = add_team(site.database, "Owls")
        for number in range(3):
            site.submit(blue("owl", "lark") + b" " * number)
        job = claim(site.database, "test")
        assert job is not None
        assert finish(site.database, job, stub_score(job))
        # One was put back, so that its basis is that of its first attempt; another is being scored.
        job = claim(site.database, "test")
        assert job is not None
        put_back(site.database, job, "", "")
        late = claim(site.database, "test")
        assert late is not None
    with (site := open_changed(tmp_path, 5)).client:
        assert held_back(site) == [1]
        assert command(site, held_back=True).startswith("1 submission is in the queue")
        # What ends by the old documents afterwards is held back, too.
        assert finish(site.database, late, stub_score(late))
        assert held_back(site) == [3]
        assert site.client.get("/api/leaderboard?team=blue").headers["Headstart-Held-Back"] == "2"


def test_held_out_documents_that_are_named_later_are_for_earlier_submissions_too(tmp_path: Path) -> None:
    past = {"deadline": "2020-01-01T00:00Z"}
    with (site := open_changed(tmp_path, 8)).client:
        token = add_team(site.database, "Owls")
        site.submit(blue("owl", "lark"), token=token)
        site.work()
        assert held_back(site) == []
    with (site := open_changed(tmp_path, 8, held_out_catalog="held_out.jsonl")).client:
        assert held_back(site) == [1]
        command(site, held_back=True)
        site.work()
        assert held_back(site) == []
    # Without them nothing is missing.
    with (site := open_changed(tmp_path, 8)).client:
        assert held_back(site) == []
    with (site := Site(make_settings(tmp_path, past, held_out_catalog="held_out.jsonl"))).client:
        (line,) = site.client.get("/api/leaderboard?team=blue").json()
        assert line["held_out_score"] is not None


def test_a_challenge_keeps_its_name(tmp_path: Path) -> None:
    with (site := Site(make_settings(tmp_path, {}))).client:
        token = add_team(site.database, "Owls")
        site.submit(blue("owl", "lark"), token=token)
    with pytest.raises(UserError, match="there are submissions of 'small', but no phase with this `name`"):
        Site(make_settings(tmp_path, {"name": "large"})).client.__enter__()
    with (site := Site(make_settings(tmp_path, {"title": "Large"}))).client:
        assert site.read("/api/submissions/1", token)["phase"] == "small"

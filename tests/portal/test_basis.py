"""Scores of other documents or rules are never ranked beside today's."""

import json
import random
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml

from headstart.portal.records.accounts import add_team
from headstart.portal.records.basis import find_held_back, read_bases
from headstart.portal.records.database import Database
from headstart.portal.records.log import read_whole_log
from headstart.portal.work.intake import score_again
from headstart.portal.work.queue import OtherDocumentsError, claim, finish
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
            assert ("Scored by other documents or rules" in page) == bool(held_back)
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
        assert "not counted until scored again: 1 submission." in changed.client.get("/leaderboard").text
        assert changed.read("/api/submissions/1")["held_back"]
        assert "not counted" in changed.client.get("/submissions/1", headers=changed.headers()).text
        assert "1 submission was scored by other documents" in changed.client.get("/log").text
        with changed.database.reading() as session:
            numbers = find_held_back(session, read_bases(session))
        assert score_again(changed.database, numbers, changed.client.app.state.portal.phases) == 1  # type: ignore[attr-defined]
        changed.work()
        assert [line["rank"] for line in changed.read("/api/leaderboard?team=blue")] == [1]
        assert "not counted" not in changed.client.get("/leaderboard").text
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

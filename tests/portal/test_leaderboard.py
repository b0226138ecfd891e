"""Which scores are ranked: those of today's documents and rules, and ties."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from headstart.contract.problems import Problem
from headstart.evaluation.embeddings import Extraction
from headstart.output.errors import UserError
from headstart.portal.documents import read_documents
from headstart.portal.queue import Outcome, claim, finish
from headstart.portal.submissions import find_held_back, record_basis
from headstart.tests.material.arena import make_entry
from headstart.tests.material.portals import RULES, STIMULI, Site, blue, make_settings, take
from headstart.tests.material.stub_scores import MODELS, stub_score
from headstart.tests.portal.conftest import OpenSite


def write_rules(folder: Path, **rules: Any) -> None:
    (folder / "challenge.yaml").write_text(yaml.safe_dump({**RULES, **rules}))


def held_back(site: Site) -> list[int]:
    with site.database.reading() as session:
        return find_held_back(session)


def ranked(site: Site, track: str = "blue") -> list[tuple[int, str]]:
    lines = site.client.get(f"/api/leaderboard?team={track}").json()["standings"]
    return [(line["rank"], line["participant"]) for line in lines]


def test_each_document_and_rule_of_scores_is_in_their_basis(tmp_path: Path) -> None:
    settings = make_settings(tmp_path, {})
    models = [make_entry(name, "fc", "flatten", 8) for name in MODELS[:3]]
    lines = "\n".join(map(json.dumps, STIMULI[:3]))
    changes = [
        ("registry.json", json.dumps(models), True),
        ("catalog.jsonl", lines, True),
        ("challenge.yaml", yaml.safe_dump({**RULES, "contract_versions": ["1.1"]}), True),
        ("challenge.yaml", yaml.safe_dump({**RULES, "contract_versions": ["1.1"], "title": "Another"}), False),
    ]
    before = read_documents(settings).basis
    for file, content, has_changed in changes:
        (tmp_path / file).write_text(content)
        after = read_documents(settings).basis
        assert (after != before) == has_changed, file
        before = after
    assert read_documents(replace(settings, extraction=Extraction(precision="bfloat16"))).basis != before


def test_a_change_is_said_and_mended_by_one_command(tmp_path: Path) -> None:
    settings = make_settings(tmp_path, {})
    with (site := Site(settings)).client:
        token = site.add_team("Owls")
        site.submit(blue("owl", "lark"), token=token)
        site.work()
        site.submit(blue("owl", "wren"), token=token)
        late = take(site.database)
        assert ranked(site) == [(1, "Owls")]
    (tmp_path / "catalog.jsonl").write_text("\n".join(map(json.dumps, STIMULI[:5])))
    with (changed := Site(settings, token)).client:
        assert ranked(changed) == []
        assert "documents and rules: 1 submission." in changed.client.get("/leaderboard").text
        assert changed.read("/api/submissions/1")["held_back"]
        changed.log_in()
        assert "does not count" in changed.client.get("/submissions/1").text
        assert "must be scored again: 1." in changed.client.get("/log").text
        # What ends by the old documents afterwards is held back, too.
        assert finish(changed.database, late, stub_score(late))
        assert held_back(changed) == [1, 2]
        changed.admin("submissions", "rescore", "held_back")
        assert held_back(changed) == []
        changed.work()
        assert ranked(changed) == [(1, "Owls")]
    # A start without a change says nothing more, and another title or quota changes no score.
    teams = {"blue": {"submissions": 1}, "red": {}}
    write_rules(tmp_path, title="Another", deadline="2999-01-01T00:00Z", teams=teams)
    with (site := Site(settings)).client:
        assert ranked(site) == [(1, "Owls")]
        assert site.client.get("/log").text.count("must be scored again") == 1


def test_a_worker_with_other_documents_claims_nothing(database_url: str, tmp_path: Path) -> None:
    settings = make_settings(tmp_path, {}, database=database_url)
    basis = read_documents(settings).basis
    site = Site(settings)
    site.database.create_tables()
    # No server has started yet.
    assert claim(site.database, basis) is None
    with site.client:
        site.submit(blue("owl", "lark"), token=site.add_team("Owls"))
        with pytest.raises(UserError, match="other documents or rules"):
            claim(site.database, "other")
        assert claim(site.database, basis) is not None


def test_what_changed_rules_refuse_counts_nowhere_until_it_is_valid_again(open_site: OpenSite) -> None:
    site = open_site({"teams": {"blue": {"submissions": 1}}})
    site.submit(blue("owl", "lark"))
    site.work()
    site.admin("submissions", "rescore", "1")
    problems = [Problem("/models/0", "owl", "must be a model of the registry")]
    assert finish(site.database, take(site.database), Outcome("refused", problems=problems))
    record = site.read("/api/submissions/1")
    assert (record["state"], record["score"], record["problems"][0]["value"]) == ("refused", None, "owl")
    assert ranked(site) == []
    with site.database.writing() as session:
        assert record_basis(session, "other") == 0

    # It uses up no quota.
    assert site.submit(blue("owl", "wren")).status_code == 201
    site.admin("submissions", "rescore", "1")
    site.work()
    assert site.read("/api/submissions/1")["problems"] == []
    board = site.client.get("/api/leaderboard?team=blue").json()
    assert [line["submissions"] for line in board["standings"]] == [2]


def test_the_best_score_counts_and_of_equal_ones_the_earlier(open_site: OpenSite) -> None:
    site = open_site()
    larks = site.add_team("Larks")
    documents: list[tuple[Any, str]] = [
        (blue("owl", "lark") + b" ", larks),
        (blue("owl", "wren") + b" ", site.token),
        (blue("owl", "lark") + b" " * 9, site.token),
        (blue("owl", "lark") + b" " * 9, larks),
    ]
    for content, token in documents:
        site.submit(content, token=token)
    site.work()
    lines = site.client.get("/api/leaderboard?team=blue").json()["standings"]
    assert [(line["participant"], line["submission"]) for line in lines] == [("Larks", 1), ("Owls", 2)]
    # Without the better one, the next counts; the others stay where they are.
    site.admin("submissions", "hide", "1")
    assert ranked(site) == [(1, "Owls"), (2, "Larks")]
    site.admin("submissions", "unhide", "1")
    assert ranked(site) == [(1, "Larks"), (2, "Owls")]

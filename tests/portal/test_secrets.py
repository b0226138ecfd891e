"""Held-out names and scores are in no page, no JSON, no header and no error, whatever a client sends."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from headstart.portal.records.accounts import add_team
from headstart.portal.records.tables import AccountRow
from headstart.portal.work.queue import Outcome, claim, finish, put_back
from headstart.tests.material.arena import make_entry
from headstart.tests.material.portals import RULES, STIMULI, Site, blue, make_settings, red
from headstart.tests.material.stub_scores import MODELS, stub_score

DEADLINE = datetime(2020, 1, 1, tzinfo=UTC)
TOLD = "The reason is /srv/secret/model.safetensors of heron-7"
PUBLIC_ROOTS = (
    *("/", "/login", "/blue", "/red", "/submissions", "/leaderboard", "/log", "/log.atom", "/health", "/metrics"),
    *("/api/challenge", "/api/submissions", "/api/leaderboard?team=blue", "/api/leaderboard?team=red", "/api/log"),
    *("/api/examples/blue", "/api/examples/red", "/api/stimuli", "/api/schemas/blue_submission"),
)
WRONG = (
    *("/none", "/submissions/0", "/submissions/x", "/submissions/99", "/submissions/99/heatmap.png"),
    *("/static/../app.py", "/static/%2e%2e/app.py", "/api/none", "/api/submissions/99", "/api/submissions/x"),
    *("/api/leaderboard", "/api/leaderboard?team=heron-7", "/api/schemas/none", "/api/examples/none"),
    *("/blue?example=heron-7", "/submissions/%00", "/api/schemas/blue_submission?version=9", "/docs"),
    *("/openapi.json", "/submissions/1/document"),
)


@dataclass
class Crawl:
    """The answers to one visitor: of all pages that links lead to, and of wrong requests."""

    site: Site
    token: str = ""
    answers: dict[str, str] = field(default_factory=dict)

    def run(self) -> Crawl:
        waiting = [*PUBLIC_ROOTS, *WRONG, *(f"/{kind}submissions/{i}" for kind in ("", "api/") for i in range(1, 9))]
        waiting += [f"/submissions/{i}/heatmap.png" for i in range(1, 9)]
        while waiting:
            path = waiting.pop()
            if path not in self.answers and path.startswith("/") and not path.startswith("//"):
                self._ask("GET", path)
                waiting += re.findall(r'(?:href|src|action)="([^"#]+)"', self.answers[path])
        for track in ("blue", "red"):
            for number, content in enumerate(self._documents()):
                self._ask("POST", f"/api/validate?team={track}", content, f" {number}")
                self._ask("POST", f"/{track}", content, f" {number}")
        self._ask("POST", "/api/submissions?team=blue", b"{", " without a document")
        return self

    def _documents(self) -> Iterator[bytes]:
        # The requests use held-out names, so an answer could reveal that they exist.
        yield blue("heron-7", "owl")
        yield red() + b"x"
        stimulus = {"dataset_name": "marsh", "image_identifier": "reed.png"}
        yield json.dumps({"differentiating_images": [stimulus]}).encode()
        yield b"\xff\x00"

    def _ask(self, method: str, path: str, content: bytes | None = None, more: str = "") -> None:
        headers = self.site.headers(self.token) if self.token else {}
        answer = self.site.client.request(method, path, content=content, headers=headers)
        assert answer.status_code < 500, path
        sent = "" if content is None else content.decode(errors="replace")
        text = answer.content.decode(errors="replace")
        if "heron-7" in sent or "marsh" in sent or "heron-7" in path:
            # The answer may repeat the request, but must not reveal whether there is such a name.
            text = text.replace("heron-7", "").replace("marsh", "").replace("reed.png", "")
        self.answers[f"{path}{more}"] = f"{answer.status_code} {dict(answer.headers)}\n{text}"


def write_held_out(folder: Path) -> dict[str, Any]:
    """Write held-out models and stimuli, and return the settings that name them."""
    entries = [make_entry(name, "fc", "flatten", 8) for name in ("heron-7", "egret-9")]
    (folder / "heldmodels.json").write_text(json.dumps(entries))
    stimuli = [{"dataset_name": "marsh", "image_identifier": name} for name in ("reed.png", "rush.png")]
    (folder / "heldstimuli.jsonl").write_text("\n".join(map(json.dumps, stimuli)))
    return {"held_out_registry": str(folder / "heldmodels.json"), "held_out_catalog": str(folder / "heldstimuli.jsonl")}


@dataclass
class Scene:
    site: Site
    tokens: dict[str, str]
    secrets: dict[str, str]


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    """Open a portal with submissions of two participants in every state; each has a second score."""
    future = (datetime.now(UTC) + timedelta(days=1)).isoformat()
    held = write_held_out(tmp_path)
    site = Site(make_settings(tmp_path, {"deadline": future}, show_submissions=True, **held))
    with site.client:
        tokens = {name: add_team(site.database, name) for name in ("Owls", "Larks")}
        for models in (("owl", "lark"), ("owl", "lark", "wren"), ("owl", "crow")):
            for token in tokens.values():
                site.submit(blue(*models), token=token)
        site.submit(red(0, 1, 2), "red", tokens["Owls"])
        secrets = {}
        for number in range(9):
            job = claim(site.database, "worker-on-secret-host")
            if job is None:
                break
            outcome = stub_score(job)
            if job.kind == "held_out":
                secrets[f"held-out score of {job.submission_id}"] = str(outcome.scores.score)[:7]
            if number == 1:
                outcome = Outcome("failed", "It could not be scored, for a reason on our side.", TOLD)
            if number == 2:
                put_back(site.database, job, "It will try again soon.", TOLD)
            else:
                assert finish(site.database, job, outcome)
        assert len(secrets) > 2
        secrets |= {f"token of {name}": text for name, text in tokens.items()}
        with site.database.reading() as session:
            accounts = session.scalars(select(AccountRow)).all()
        secrets |= {f"digest of {account.name}": account.token_sha256 for account in accounts}
        secrets |= {name: name for name in ("heron-7", "egret-9", "marsh", "reed.png", "rush.png")}
        secrets |= {name: name for name in ("heldmodels", "heldstimuli", "catalog.jsonl", "portal.sqlite3")}
        secrets |= {"reason": "model.safetensors", "worker": "secret-host"}
        secrets |= {"folder": str(tmp_path), "code": str(Path(__file__).parents[2])}
        yield Scene(site, tokens, secrets)


@pytest.mark.parametrize("visitor", [None, "Owls", "Larks"])
def test_withheld_data_is_never_shown(scene: Scene, visitor: str | None) -> None:
    crawl = Crawl(scene.site, "" if visitor is None else scene.tokens[visitor]).run()
    assert len(crawl.answers) > 60
    statuses = {text[:3] for text in crawl.answers.values()}
    assert {"200", "404", "401" if visitor is None else "403"} <= statuses
    leaks = [
        (what, path) for what, secret in scene.secrets.items() for path, text in crawl.answers.items() if secret in text
    ]
    assert leaks == []
    # A public score is found, so an empty crawl does not pass.
    assert any(f"{1 / len(blue('owl', 'lark')):.6f}" in text for text in crawl.answers.values())


def test_documents_are_for_their_participant(scene: Scene) -> None:
    document = scene.site.read("/api/submissions", scene.tokens["Owls"])
    mine = [each["id"] for each in document if each["state"] != "scored"]
    assert mine
    others, own = (Crawl(scene.site, scene.tokens[name]).run().answers for name in ("Larks", "Owls"))
    for number in mine:
        for path in (f"/submissions/{number}", f"/api/submissions/{number}"):
            assert own[path].startswith("200"), path
            assert others[path].startswith("404"), path
            # The answer is the same as for a submission that does not exist.
            assert others[path].partition("\n")[2] == others[path.replace(str(number), "99")].partition("\n")[2]


def test_held_back_names_are_answered_as_any_other(scene: Scene) -> None:
    def ask(name: str, dataset: str) -> list[Any]:
        stimulus = {"dataset_name": dataset, "image_identifier": "reed.png"}
        documents = (blue(name, "owl"), json.dumps({"differentiating_images": [stimulus, STIMULI[0]]}).encode())
        answers = [
            scene.site.client.post(f"/api/validate?team={track}", content=content).json()
            for track, content in zip(("blue", "red"), documents, strict=True)
        ]
        return [json.loads(json.dumps(each).replace(name, "X").replace(dataset, "Y")) for each in answers]

    assert ask("heron-7", "marsh") == ask("gull-33", "beach")


def test_held_out_scores_are_reported_after_the_deadline(tmp_path: Path) -> None:
    """The search of the crawl would find held-out scores."""
    site = Site(make_settings(tmp_path, {}, **write_held_out(tmp_path)))
    with site.client:
        site.token = add_team(site.database, "Owls")
        site.submit(blue(*MODELS))
        site.work()
    over = Site(make_settings(tmp_path, {**RULES, "deadline": DEADLINE.isoformat()}, **write_held_out(tmp_path)))
    with over.client:
        assert f"{1 - 1 / len(blue(*MODELS)):.6f}" in over.client.get("/leaderboard").text

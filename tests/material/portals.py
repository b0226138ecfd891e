"""A portal of a small challenge with a stub for its scoring."""

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml
from fastapi.testclient import TestClient

from headstart.portal import admin
from headstart.portal.database import Database
from headstart.portal.queue import Job, claim, finish
from headstart.portal.settings import Settings
from headstart.portal.teams import add_team
from headstart.portal.web.app import create_app
from headstart.portal.web.state import Portal
from headstart.tests.material.arena import make_entry
from headstart.tests.material.stub_scores import MODELS, StubScorer

STIMULI = [{"dataset_name": "birds", "image_identifier": f"{number}.png"} for number in range(8)]
RULES: dict[str, Any] = {"name": "small", "title": "A small challenge", "teams": {"blue": {}, "red": {}}}


def make_settings(folder: Path, rules: dict[str, Any], **settings: Any) -> Settings:
    """Write a challenge, a registry and a catalog, none of whose networks can run."""
    folder.mkdir(exist_ok=True)
    entries = [make_entry(name, "fc", "flatten", 8) for name in MODELS]
    (folder / "registry.json").write_text(json.dumps(entries))
    (folder / "catalog.jsonl").write_text("\n".join(map(json.dumps, STIMULI)))
    (folder / "challenge.yaml").write_text(yaml.safe_dump({**RULES, **rules}))
    if name := settings.get("held_out_catalog"):
        # The file of a test stays as it is.
        settings["held_out_catalog"] = str(folder / name)
        if not (folder / name).exists():
            (folder / name).write_text("\n".join(map(json.dumps, STIMULI[:4])))
    return Settings(
        challenge=str(folder / "challenge.yaml"),
        registry=str(folder / "registry.json"),
        catalog=str(folder / "catalog.jsonl"),
        data=str(folder),
        **settings,
    )


def blue(*models: str) -> bytes:
    return json.dumps({"models": models}).encode()


def red(*indices: int) -> bytes:
    return json.dumps({"differentiating_images": [STIMULI[index] for index in indices]}).encode()


@dataclass
class Site:
    """A portal in this process, and one team's token."""

    settings: Settings
    token: str = ""

    @cached_property
    def client(self) -> TestClient:
        address = self.settings.url or "http://testserver"
        return TestClient(create_app(self.settings), address, follow_redirects=False)

    @property
    def portal(self) -> Portal:
        portal: Portal = self.client.app.state.portal  # type: ignore[attr-defined] # an application
        return portal

    @property
    def database(self) -> Database:
        return self.portal.database

    @property
    def scorer(self) -> StubScorer:
        return StubScorer(self.portal.documents.bases)

    def headers(self, token: str | None = None) -> dict[str, str]:
        return {"Authorization": f"Bearer {token or self.token}"}

    def add_team(self, name: str) -> str:
        """Add a team, and return its token."""
        with self.database.writing() as session:
            return add_team(session, name)

    def submit(self, content: bytes, token: str | None = None) -> Any:
        return self.client.post("/api/submissions", content=content, headers=self.headers(token))

    def check(self, content: bytes) -> Any:
        return self.client.post("/api/validate", content=content, headers=self.headers())

    def read(self, path: str, token: str | None = None) -> Any:
        answer = self.client.get(path, headers=self.headers(token))
        assert answer.status_code == 200, answer.text
        return answer.json()

    def work(self) -> list[Job]:
        """Score all waiting submissions."""
        done = []
        while (job := claim(self.database)) is not None:
            finish(self.database, job, self.scorer(job))
            done.append(job)
        return done

    def log_in(self, token: str | None = None) -> None:
        answer = self.client.post("/login", data={"token": token or self.token})
        assert answer.status_code == 303, answer.text

    def admin(self, *words: str) -> None:
        """Run an organiser's command with the settings of the portal."""
        names = ("challenge", "registry", "catalog", "held_out_catalog", "data")
        values = {name: getattr(self.settings, name) for name in names}
        options = [f"--{name}={'null' if value is None else value}" for name, value in values.items()]
        admin.main([*options, "--held_out_registry=null", *words])

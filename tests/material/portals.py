"""A portal of a small challenge with a stub for its scoring."""

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import uvicorn
import yaml
from fastapi.testclient import TestClient

from headstart.contract.challenge import CHALLENGE, Challenge
from headstart.portal import admin
from headstart.portal.database import Database
from headstart.portal.queue import Job, claim, finish
from headstart.portal.serve import server_config
from headstart.portal.settings import Settings
from headstart.portal.teams import add_team
from headstart.portal.web.app import create_app
from headstart.tests.material.arena import make_entry
from headstart.tests.material.stub_scores import MODELS, stub_score

STIMULI = [{"dataset_name": "birds", "image_identifier": f"{number}.png"} for number in range(8)]
RULES: dict[str, Any] = {"name": "small", "title": "A small challenge", "teams": {"blue": {}, "red": {}}}


def make_settings(folder: Path, rules: dict[str, Any], **settings: Any) -> Settings:
    """Write a challenge, a registry and a catalog, none of whose networks can run."""
    folder.mkdir(exist_ok=True)
    entries = [make_entry(name, "fc", "flatten", 8) for name in MODELS]
    (folder / "registry.json").write_text(json.dumps(entries))
    (folder / "catalog.jsonl").write_text("\n".join(map(json.dumps, STIMULI)))
    (folder / "challenge.yaml").write_text(yaml.safe_dump({**RULES, **rules}))
    return Settings(
        challenge=str(folder / "challenge.yaml"),
        registry=str(folder / "registry.json"),
        catalog=str(folder / "catalog.jsonl"),
        data=str(folder),
        **{"documents_per_minute": 10_000, **settings},
    )


def blue(*models: str) -> bytes:
    return json.dumps({"models": models}).encode()


def red(*indices: int) -> bytes:
    return json.dumps({"differentiating_images": [STIMULI[index] for index in indices]}).encode()


def take(database: Database) -> Job:
    """Claim a scoring, which must be due."""
    job = claim(database)
    assert job is not None
    return job


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
    def database(self) -> Database:
        database: Database = self.client.app.state.portal.database  # type: ignore[attr-defined] # an application
        return database

    def headers(self, token: str | None = None) -> dict[str, str]:
        return {"Authorization": f"Bearer {token or self.token}"}

    def add_team(self, name: str) -> str:
        """Add a team, and return its token."""
        with self.database.writing() as session:
            return add_team(session, name)

    def submit(self, content: bytes, track: str = "blue", token: str | None = None) -> Any:
        headers = self.headers(token)
        return self.client.post(f"/api/submissions?team={track}", content=content, headers=headers)

    def check(self, content: bytes, token: str | None = None) -> Any:
        """Check a document of the Blue Team without submitting it."""
        return self.client.post("/api/validate?team=blue", content=content, headers=self.headers(token))

    def read(self, path: str, token: str | None = None) -> Any:
        answer = self.client.get(path, headers=self.headers(token))
        assert answer.status_code == 200, answer.text
        return answer.json()

    def work(self) -> list[Job]:
        """Score all waiting submissions."""
        done = []
        while (job := claim(self.database)) is not None:
            assert finish(self.database, job, stub_score(job))
            done.append(job)
        return done

    def log_in(self, token: str | None = None) -> None:
        answer = self.client.post("/login", data={"token": token or self.token})
        assert answer.status_code == 303, answer.text

    def admin(self, *words: str) -> None:
        """Run an organiser's command with the settings of the portal."""
        names = ("challenge", "registry", "catalog", "data", "database")
        values = {name: getattr(self.settings, name) for name in names}
        options = [f"--{name}={'null' if value is None else value}" for name, value in values.items()]
        admin.main([*options, *words])


@contextmanager
def serve_portal(settings: Settings) -> Iterator[str]:
    """Serve a portal from this process at a free port, and yield its address."""
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(server_config(create_app(settings)))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(10)
        listening.close()


def make_challenge(**changes: Any) -> Challenge:
    """Build the rules of the small challenge, with changes."""
    return CHALLENGE.validate_python({**RULES, **changes})

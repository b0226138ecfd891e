"""A portal of a small challenge with a stub for its scoring."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml
from fastapi.testclient import TestClient

from headstart.contract.challenge import CHALLENGE, Challenge
from headstart.contract.documents import Catalog, Registry
from headstart.contract.problems import ContractError
from headstart.contract.schema import Team as Track
from headstart.contract.submissions import check_submission
from headstart.portal.phases import Phase
from headstart.portal.records.database import Database
from headstart.portal.settings import Settings
from headstart.portal.web.app import create_app
from headstart.portal.work.queue import Job, claim, finish
from headstart.portal.work.validation import DOCUMENT
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
        **{"submissions_per_minute": 10_000, "validations_per_minute": 10_000, **settings},
    )


def blue(*models: str) -> bytes:
    return json.dumps({"models": models}).encode()


def red(*indices: int) -> bytes:
    return json.dumps({"differentiating_images": [STIMULI[index] for index in indices]}).encode()


class InProcessValidator:
    """Validates in this process."""

    def __init__(self, phases: Sequence[Phase]) -> None:
        self.phases = {phase.name: phase for phase in phases}

    async def find_problems(self, content: bytes, phase: str, track: Track, submitted: bool) -> list[dict[str, str]]:
        each = self.phases[phase]
        try:
            check_submission(content, DOCUMENT, each.registry, each.catalog, track, each.challenge)
        except ContractError as error:
            return [asdict(problem) for problem in error.problems]
        return []

    def close(self) -> None: ...


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

    def submit(self, content: bytes, track: str = "blue", token: str | None = None, key: str = "") -> Any:
        headers = {**self.headers(token), **({"Idempotency-Key": key} if key else {})}
        # Tests submit the same document many times.
        return self.client.post(f"/api/submissions?team={track}&again=true", content=content, headers=headers)

    def read(self, path: str, token: str | None = None) -> Any:
        answer = self.client.get(path, headers=self.headers(token))
        assert answer.status_code == 200, answer.text
        return answer.json()

    def work(self) -> list[Job]:
        """Score all waiting submissions."""
        done = []
        while (job := claim(self.database, "test")) is not None:
            assert finish(self.database, job, stub_score(job))
            done.append(job)
        return done

    def log_in(self, token: str | None = None) -> None:
        answer = self.client.post("/login", data={"token": token or self.token})
        assert answer.status_code == 303, answer.text


def make_phase(held_out: bool = False, **changes: Any) -> Phase:
    """Build a phase without documents."""
    registry, catalog = Registry(Path("registry.json"), {}, ""), Catalog(Path("stimuli.jsonl"), (), "")
    return Phase(read_rules(**changes), registry, catalog, None, catalog if held_out else None, {})


def read_rules(**changes: Any) -> Challenge:
    return CHALLENGE.validate_python({**RULES, **changes})

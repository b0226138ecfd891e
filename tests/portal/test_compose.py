"""The Compose file: what it names exists, its commands are understood, and its processes serve a portal together."""

from typing import Any

import yaml

from headstart.portal.settings import parse_settings
from headstart.tests.material.root import ROOT, require_checkout

require_checkout()

FILE = ROOT / "portal" / "compose.yaml"
COMPOSE: dict[str, Any] = yaml.safe_load(FILE.read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OURS = {name: service for name, service in SERVICES.items() if name != "database"}


def command(name: str) -> list[str]:
    """Return what a service runs; the image's entry point comes first where it names none."""
    service = SERVICES[name]
    return [*service.get("entrypoint", ["headstart"]), *service.get("command", [])]


def options(name: str) -> list[str]:
    return [word for word in command(name) if word.startswith("--")]


def test_what_it_names_exists_and_is_understood() -> None:
    build = OURS["portal"]["build"]
    context = FILE.parent / build["context"]
    assert (context / build["dockerfile"]).samefile(ROOT / "portal" / "Containerfile")
    # One image is built, by the service that the others wait for.
    assert {service["image"] for service in OURS.values()} == {"headstart-portal"}
    settings = {name: parse_settings("", options(name)[1:]) for name in OURS}
    assert all(options(name)[0] == "--config=/data/portal.yaml" for name in OURS)
    assert (settings["portal"].host, settings["portal"].worker) == ("0.0.0.0", False)
    assert SERVICES["portal"]["ports"] == ["127.0.0.1:8000:8000"]
    # The file of the password is beside it, and in no image and no commit.
    assert all(".env" in (ROOT / name).read_text() for name in (".gitignore", ".dockerignore"))

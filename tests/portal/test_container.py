"""The container file and the Compose file: what they name exists, and what they start is understood."""

import fnmatch
import tomllib
from typing import Any

import yaml

from headstart.portal.settings import parse_settings
from headstart.tests.material.root import ROOT, require_checkout

require_checkout()

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def arguments(name: str) -> list[str]:
    """Return the arguments of all instructions of a name in the container file, in order."""
    text = (ROOT / "portal" / "Containerfile").read_text().replace("\\\n", " ")
    return [line.split(maxsplit=1)[1] for line in text.splitlines() if line.startswith(f"{name} ")]


def test_all_packages_are_copied_and_not_ignored() -> None:
    patterns = (ROOT / ".dockerignore").read_text().splitlines()
    copied = [source for rest in arguments("COPY") for source in rest.split()[:-1]]
    packages = [name.split(".")[1] for name in PROJECT["tool"]["setuptools"]["packages"] if "." in name]
    assert set(packages) <= set(copied)
    assert [source for source in copied if any(fnmatch.fnmatch(source, pattern) for pattern in patterns)] == []
    # Secrets and what git does not know stay outside of the image.
    assert {".*", "**/.env", "**/__pycache__"} <= set(patterns)


def test_what_compose_names_exists_and_is_understood() -> None:
    file = ROOT / "portal" / "compose.yaml"
    services: dict[str, dict[str, Any]] = yaml.safe_load(file.read_text())["services"]
    build = services["portal"]["build"]
    assert (file.parent / build["context"] / build["dockerfile"]).samefile(ROOT / "portal" / "Containerfile")
    for name in services.keys() - {"database"}:
        words = [*services[name].get("entrypoint", []), *services[name].get("command", [])]
        first, *options = [word for word in words if word.startswith("--")]
        settings = parse_settings("", options)
        assert (services[name]["image"], first) == ("headstart-portal", "--config=/data/portal.yaml")
        if name == "portal":
            assert (settings.host, settings.worker) == ("0.0.0.0", False)
    assert services["portal"]["ports"] == ["127.0.0.1:8000:8000"]
    # The file of the password is beside it, and in no image and no commit.
    assert all(".env" in (ROOT / name).read_text() for name in (".gitignore", ".dockerignore"))

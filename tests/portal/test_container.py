"""The container file starts a portal as a user who cannot write what is installed; `.ci/run container` builds it."""

import json
import tomllib

from headstart.portal.settings import parse_settings
from headstart.tests.material.root import ROOT, require_checkout

require_checkout()

LINES = (ROOT / "portal" / "Containerfile").read_text().replace("\\\n", " ").splitlines()
INSTRUCTIONS = [(line.split()[0], line.split(maxsplit=1)[1]) for line in LINES if line and not line.startswith("#")]


def test_it_starts_the_portal_as_a_user_who_cannot_write_what_is_installed() -> None:
    arguments = dict(INSTRUCTIONS)
    command, *words = json.loads(arguments["CMD"])
    assert (json.loads(arguments["ENTRYPOINT"]), command) == (["headstart"], "portal")
    settings = parse_settings("", [word for word in words if not word.startswith("--config=")])
    # It listens at all addresses of the container, at the port that is exposed and checked for health.
    assert (settings.host, arguments["EXPOSE"]) == ("0.0.0.0", str(settings.port))
    assert f"127.0.0.1:{settings.port}/health" in arguments["HEALTHCHECK"]
    names = [name for name, _ in INSTRUCTIONS]
    assert names.index("USER") > max(index for index, name in enumerate(names) if name in {"RUN", "COPY"})
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert arguments["FROM"] == f"python:{project['requires-python'].removeprefix('>=')}-slim"
    # Secrets stay outside of the image.
    assert {".*", "**/.*"} <= set((ROOT / ".dockerignore").read_text().splitlines())

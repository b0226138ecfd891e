"""A portal with two phases."""

from pathlib import Path
from typing import Any

import yaml

from headstart.portal.settings import PhaseSettings, Settings
from headstart.tests.material.portals import RULES, make_settings


def make_two_phases(folder: Path, first: dict[str, Any], second: dict[str, Any], **settings: Any) -> Settings:
    """Write the rules of the phases `development` and `final`, which share the documents."""
    files = []
    for name, rules in (("development", first), ("final", second)):
        path = folder / f"{name}.yaml"
        title = f"The {name} phase"
        path.write_text(yaml.safe_dump({**RULES, "name": name, "title": title, **rules}))
        files.append(PhaseSettings(str(path)))
    return make_settings(folder, {}, phases=files, **settings)

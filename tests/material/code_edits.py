"""Edits that can change a count, in the files of a user's project, and methods that a text makes."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from headstart.tests.material.own_project import method


@dataclass
class Case:
    """Files of a project, and an edit: in a file 1.0 becomes 3.0, or a variable gets another value."""

    files: dict[str, str]
    edited: str = "b.py"
    options: dict[str, Any] = field(default_factory=dict)


CONTENT = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
CASES = {
    name: Case({"mine.py": method(**case.pop("method", {})), **case.pop("files", {})}, **case)
    for name, case in CONTENT["edits"].items()
}
# Parts of methods that a text makes: none of them is ever stored.
MADE, RULE = CONTENT["made"], CONTENT["rule"]

"""Print the notes of a release: the version's section of CHANGELOG.md. `python .ci/release_notes.py v0.1.0`.

The tag, the package, the changelog and the citation must name the same version.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def release_notes(tag: str, root: Path = ROOT) -> str:
    """Return the notes of a release, in Markdown.

    Args:
        tag: Its tag: `v` and the version.
        root: The checkout.

    Raises:
        ValueError: Versions or dates differ, or the changelog has no section of the version.
    """
    version = tag.removeprefix("v")
    package = _search(r'^__version__ = "(.+)"$', root / "__init__.py")
    citation = _search(r"^version: (.+)$", root / "CITATION.cff")
    for name, stated in (("__init__.py", package), ("CITATION.cff", citation)):
        if stated != version or not tag.startswith("v"):
            raise ValueError(f"tag: {tag} does not match version {stated} of {name}; use v{stated}")

    changelog = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    section = re.search(
        rf"^## \[{re.escape(version)}\] - (.+?)\n(.*?)(?=^## \[|^\[|\Z)", changelog, re.MULTILINE | re.DOTALL
    )
    if section is None:
        raise ValueError(f"CHANGELOG.md: there is no section [{version}]; rename [Unreleased]")
    released = _search(r"^date-released: (.+)$", root / "CITATION.cff")
    if section[1] != released:
        raise ValueError(f"CHANGELOG.md: {version} is of {section[1]}, and of {released} in CITATION.cff")
    return section[2].strip() + "\n"


def _search(pattern: str, path: Path) -> str:
    match = re.search(pattern, path.read_text(encoding="utf-8"), re.MULTILINE)
    if match is None:
        raise ValueError(f"{path.name}: no line matches {pattern}")
    return match[1]


if __name__ == "__main__":
    try:
        print(release_notes(sys.argv[1]), end="")
    except ValueError as error:
        sys.exit(f"error: {error}")

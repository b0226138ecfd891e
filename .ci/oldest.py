"""Print the lower bounds of `pyproject.toml` as constraints for pip: the oldest versions that are supported."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

PROJECT = Path(__file__).parents[1] / "pyproject.toml"
REQUIREMENT = re.compile(r"(?P<name>[\w-]+)(\[[\w,]+\])?>=(?P<bound>[\w.]+)")


def oldest() -> list[str]:
    """Read the bound of every dependency, those of extras included.

    Returns:
        Lines such as `numpy==2.0`; a requirement without a bound is left out.
    """
    project = tomllib.loads(PROJECT.read_text())["project"]
    extras = project["optional-dependencies"].values()
    bounds = map(REQUIREMENT.match, [*project["dependencies"], *(line for extra in extras for line in extra)])
    return sorted({f"{match['name']}=={match['bound']}" for match in bounds if match})


if __name__ == "__main__":
    print("\n".join(oldest()))

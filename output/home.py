"""Paths that begin with `~`."""

import os
from pathlib import Path


def expand_home(chosen: str | Path) -> Path:
    """Return a path with the home folder for a leading `~` or `~name`; an unknown name stays."""
    return Path(os.path.expanduser(chosen))  # noqa: PTH111 - Path.expanduser raises for the name of nobody

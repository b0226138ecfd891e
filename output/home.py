"""Paths that begin with `~`."""

from __future__ import annotations

import os
from pathlib import Path


def expand_home(chosen: str | Path) -> Path:
    """Put the home folder in place of a leading `~` or `~name`.

    That of nobody stays as it is, so that it is told as any other file that there is not.
    """
    return Path(os.path.expanduser(chosen))  # noqa: PTH111 - Path.expanduser raises for the name of nobody

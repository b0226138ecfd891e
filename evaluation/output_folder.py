"""Folders of results, checked before anything is computed."""

from __future__ import annotations

import os
from pathlib import Path

from cli.errors import UserError


def output_folder(option: str, chosen: str | Path) -> Path:
    """Check that a folder can be written, without creating it: a command that fails later leaves none behind.

    Args:
        option: What the folder is called in messages.
        chosen: The folder.

    Returns:
        Its path.

    Raises:
        UserError: Nothing is given, or the folder, or the closest one above it that exists, cannot be written.
    """
    if not str(chosen):
        msg = f"{option}: nothing is given; name a folder"
        raise UserError(msg)
    path = Path(chosen).expanduser()
    there = next(folder for folder in (path, *path.absolute().parents) if folder.exists())
    if not (there.is_dir() and os.access(there, os.W_OK | os.X_OK)):
        msg = f"{option}: {str(path)!r} cannot be written, because {str(there)!r} cannot; choose another folder"
        raise UserError(msg)
    return path

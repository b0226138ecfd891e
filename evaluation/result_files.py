"""Files of results, each complete or not there."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from cli.errors import UserError
from store.replacing import replacing


def write_texts(folder: Path, texts: Mapping[str, str]) -> list[Path]:
    """Write texts.

    Args:
        folder: Folder of the files, created where it is missing.
        texts: Contents by file name.

    Returns:
        The files, in order.

    Raises:
        UserError: The folder cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            with replacing(folder / name) as partial:
                partial.write_text(text, encoding="utf-8", newline="")
    except OSError as error:
        msg = f"output: {str(folder)!r} cannot be written ({error}); choose another folder"
        raise UserError(msg) from error
    return [folder / name for name in texts]

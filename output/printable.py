"""Texts of strangers as a terminal and a picture may show them: no character of them is a command, or unseen."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path


def printable(text: str) -> str:
    """Escape, into one line, what a terminal does not show as a character, undecodable bytes of paths included.

    These are control characters, marks of writing direction, characters without width, and blanks that are none.
    """
    return text if text.isprintable() else "".join(map(_escaped, text))


def print_written(files: Iterable[Path]) -> None:
    """Print where files are that were written."""
    print(f"wrote {printable(', '.join(map(str, files)))}")


def _escaped(character: str) -> str:
    return character if character.isprintable() else character.encode("unicode_escape").decode()

"""A command that only its own name imports."""

from __future__ import annotations


def heavy_command() -> None:
    """Do something heavy."""

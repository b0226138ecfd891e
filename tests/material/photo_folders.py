"""Folders of files that sources of photos list, and the line in which sources refuse what they cannot list."""

from collections.abc import Callable
from pathlib import Path

import pytest

from headstart.output.errors import UserError


def lay_out(root: Path, *names: str) -> str:
    """Write empty files, which are no photos: nothing may be decoded while they are listed; return the folder."""
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()
    return str(root)


def refusal(*actions: Callable[[], object], start: str = "") -> str:
    """Return the line with which actions are refused, the same for all of them, which begins in this way."""
    messages = set()
    for action in actions:
        with pytest.raises(UserError) as caught:
            action()
        messages.add(str(caught.value))
    (message,) = messages
    assert message.startswith(start)
    assert "\n" not in message
    return message

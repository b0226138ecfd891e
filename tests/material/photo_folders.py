"""Folders of files that sources of photos list, and the error messages of sources that cannot list them."""

from collections.abc import Callable
from pathlib import Path

import pytest

from headstart.output.errors import UserError


def lay_out(root: Path, *names: str) -> str:
    """Write files that are no photos, so that a source must list them without decoding; return the folder."""
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()
    return str(root)


def refusal(*actions: Callable[[], object], start: str = "") -> str:
    """Check that all actions raise the same UserError, of one line that begins with `start`; return its message."""
    messages = set()
    for action in actions:
        with pytest.raises(UserError) as caught:
            action()
        messages.add(str(caught.value))
    (message,) = messages
    assert message.startswith(start)
    assert "\n" not in message
    return message

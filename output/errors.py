"""The user's mistakes."""

from __future__ import annotations


class UserError(ValueError):
    """A mistake of the user, whose message is one line that says how to mend it; the entries print it alone."""

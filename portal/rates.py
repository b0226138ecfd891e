"""How often somebody may ask for what costs time."""

from __future__ import annotations

from limits import parse
from limits.storage import MemoryStorage
from limits.strategies import MovingWindowRateLimiter


class Rates:
    """Counts requests of the last minute, in this process.

    Args:
        per_minute: How many are allowed, by what they are for.
    """

    def __init__(self, **per_minute: int) -> None:
        self._limiter = MovingWindowRateLimiter(MemoryStorage())
        self._allowed = {what: parse(f"{count}/minute") for what, count in per_minute.items()}

    def take(self, what: str, who: str) -> bool:
        """Count a request, and tell whether it is still within what is allowed.

        Args:
            what: What it is for.
            who: Who asks.
        """
        return self._limiter.hit(self._allowed[what], what, who)

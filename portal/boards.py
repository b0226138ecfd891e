"""The tables of the leaderboard as they were last made: there are many readers between two changes."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from markupsafe import Markup

from headstart.contract.challenge import Challenge
from headstart.contract.schema import Team as Track
from headstart.portal.leaderboard import Standing
from headstart.portal.template_files import TEMPLATES, local_times


class Boards:
    """Makes tables of standings, each once.

    Args:
        challenge: The challenge, whose times are shown.
    """

    def __init__(self, challenge: Challenge) -> None:
        self._challenge = challenge
        self._made: dict[tuple[Track, bool], tuple[Sequence[Standing], Markup]] = {}
        self._lock = threading.Lock()

    def show(self, track: Track, standings: Sequence[Standing], held_out: bool, team: str | None) -> Markup:
        """Give a table, in which one participant's line stands out.

        Args:
            track: Team of the contract.
            standings: What `headstart.portal.leaderboard.Leaderboard` gives: the same object until something happens.
            held_out: Whether held-out scores are shown.
            team: The participant; None for nobody.

        Returns:
            The table; empty where nobody is ranked.
        """
        # Of many readers who come after a change one makes the table.
        with self._lock:
            there = self._made.get((track, held_out))
            if there is None or there[0] is not standings:
                there = standings, self._make(track, standings, held_out)
                self._made[track, held_out] = there
        own = next((line for line in standings if line.team == team), None)
        if own is None:
            return there[1]
        row = Markup('<tr id="{}-{}"').format(track, own.submission_id)
        return Markup(there[1].replace(row, row + Markup(' class="own"'), 1))

    def _make(self, track: Track, standings: Sequence[Standing], held_out: bool) -> Markup:
        if not standings:
            return Markup()
        ends = [end for line in standings for end in (line.low, line.high, line.score) if end is not None]
        made = TEMPLATES.get_template("board.html").render(
            track=track,
            standings=standings,
            held_out=held_out,
            scale=(min(ends), max(ends)),
            local=local_times(self._challenge),
        )
        return Markup(made)

"""The cache of the leaderboards: they are ranked and rendered once for each change, however many read them."""

import threading
from dataclasses import dataclass

from markupsafe import Markup
from sqlalchemy.orm import Session

from headstart.contract.challenge import Challenge
from headstart.contract.schema import Team as Track
from headstart.portal.records.leaderboard import Standing, count_ended, rank_teams
from headstart.portal.web.template_files import TEMPLATES, local_times


@dataclass(frozen=True)
class Board:
    """A leaderboard.

    Attributes:
        ended: Number of ended scorings that it takes into account.
        track: Team of the contract.
        standings: Its lines.
        table: The table of a page; empty where nobody is ranked.
    """

    ended: int
    track: Track
    standings: list[Standing]
    table: Markup

    def highlight(self, team: str | None) -> Markup:
        """Return the table with the line of a participant highlighted, if there is one."""
        line = next((line for line in self.standings if line.team == team), None)
        if line is None:
            return self.table
        row = Markup('<tr id="{}-{}"').format(self.track, line.submission_id)
        return Markup(self.table.replace(row, row + Markup(' class="own"'), 1))


class Boards:
    """The leaderboards as they were last ranked, until a scoring ends.

    Args:
        challenge: The challenge.
    """

    def __init__(self, challenge: Challenge) -> None:
        self._challenge = challenge
        self._lock = threading.Lock()
        self._boards: dict[tuple[Track, bool], Board] = {}

    def find(self, session: Session, track: Track, show_held_out: bool) -> Board:
        """Return a leaderboard.

        Args:
            session: Session of the portal's database.
            track: Team of the contract.
            show_held_out: Whether held-out scores are shown, and decide the order.
        """
        ended = count_ended(session)
        # After a change, the first of many readers ranks and renders for all.
        with self._lock:
            board = self._boards.get((track, show_held_out))
            if board is None or board.ended < ended:
                standings = rank_teams(session, self._challenge, track, show_held_out)
                board = Board(ended, track, standings, self._render(track, standings, show_held_out))
                self._boards[track, show_held_out] = board
            return board

    def _render(self, track: Track, standings: list[Standing], held_out: bool) -> Markup:
        if not standings:
            return Markup()
        scores = [line.scores for line in standings]
        ends = [end for each in scores for end in (each.low, each.high, each.score) if end is not None]
        table = TEMPLATES.get_template("board.html").render(
            track=track,
            standings=standings,
            held_out=held_out,
            scale=(min(ends), max(ends)),
            local=local_times(self._challenge),
        )
        return Markup(table)

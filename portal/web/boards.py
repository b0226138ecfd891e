"""The cache of the leaderboards: they are ranked and rendered once for each change, however many read them."""

import threading
from dataclasses import dataclass

from markupsafe import Markup
from sqlalchemy.orm import Session

from headstart.contract.challenge import Challenge
from headstart.contract.schema import Team as Track
from headstart.portal.phases import Phase
from headstart.portal.records.leaderboard import Standing, count_changes, rank_teams, read_disqualified
from headstart.portal.web.template_files import TEMPLATES, local_times


@dataclass(frozen=True)
class Board:
    """A leaderboard.

    Attributes:
        changes: Number of events that it takes into account.
        track: Team of the contract.
        standings: Its lines.
        held_out: Whether held-out scores are shown, and decide the order.
        held_back: Number of submissions that are not in it, because they were scored with other documents or rules.
        disqualified: Number, participant and reason of each disqualified submission.
        table: The table of a page; empty where nobody is ranked.
    """

    changes: int
    track: Track
    standings: list[Standing]
    held_out: bool
    held_back: int
    disqualified: list[tuple[int, str, str]]
    table: Markup

    def highlight(self, team: str | None) -> Markup:
        """Return the table with the line of a participant highlighted, if there is one."""
        line = next((line for line in self.standings if line.team == team), None)
        if line is None:
            return self.table
        row = Markup('<tr id="{}-{}"').format(self.track, line.submission_id)
        return Markup(self.table.replace(row, row + Markup(' class="own"'), 1))


class Boards:
    """The leaderboards as they were last ranked, until something changes them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._boards: dict[tuple[str, Track, bool], Board] = {}

    def find(self, session: Session, phase: Phase, track: Track, is_over: bool) -> Board:
        """Return a leaderboard.

        Args:
            session: Session of the portal's database.
            phase: Phase of the challenge.
            track: Team of the contract.
            is_over: Whether the phase is over, so that held-out scores are shown and decide the order.
        """
        changes, key = count_changes(session), (phase.name, track, is_over)
        # After a change, the first of many readers ranks and renders for all.
        with self._lock:
            board = self._boards.get(key)
            if board is None or board.changes < changes:
                bases = phase.shown_bases(track, is_over)
                standings, held_back = rank_teams(session, phase.challenge, track, bases)
                held_out = "held_out" in bases
                table = _render(phase.challenge, track, standings, held_out)
                disqualified = read_disqualified(session, phase.name, track)
                board = Board(changes, track, standings, held_out, held_back, disqualified, table)
                self._boards[key] = board
            return board


def _render(challenge: Challenge, track: Track, standings: list[Standing], held_out: bool) -> Markup:
    if not standings:
        return Markup()
    scores = [line.scores for line in standings]
    ends = [end for each in scores for end in (each.low, each.high, each.score) if end is not None]
    table = TEMPLATES.get_template("board.html").render(
        track=track,
        standings=standings,
        held_out=held_out,
        epsilon=challenge.score.epsilon,
        scale=(min(ends), max(ends)),
        local=local_times(challenge),
    )
    return Markup(table)

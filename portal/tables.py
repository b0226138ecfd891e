"""The tables of the portal's database: teams, and their submissions with scores."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Literal

from sqlalchemy import DateTime, Dialect, ForeignKey, LargeBinary, String, Text
from sqlalchemy.orm import DeclarativeBase, Mapped, deferred, mapped_column, relationship
from sqlalchemy.types import TypeDecorator

from headstart.contract.schema import Team as Track

State = Literal["queue", "running", "scored", "refused", "failed"]

# The largest key of a row.
MAX_ID = 2**63 - 1

# The numbers of a score: the score, where higher is better; by the debiased estimate and calibrated against chance; its
# 95 % interval over stimuli; with the epsilon that the rules name. One that is undefined or not computed is null.
SCORE_NAMES = ("score", "debiased", "calibrated", "low", "high", "with_epsilon")


def read_scores(document: Mapping[str, Any]) -> dict[str, float | None]:
    """Return the numbers of the content of `score.json` by their names.

    A Blue Team's numbers are means of CKA, a Red Team's are 1 minus these means.
    """
    is_blue = document["team"] == "blue"
    ends = (document.get("ci95") or {}).get("mean") or (None, None)
    low, high = ends if is_blue else reversed(ends)
    means = (document.get("mean_cka_debiased"), document.get("mean_cka_calibrated"), low, high)
    numbers = [mean if is_blue or mean is None else 1 - mean for mean in means]
    return dict(zip(SCORE_NAMES, (document["score"], *numbers, document.get("score_with_epsilon")), strict=True))


class UtcTime(TypeDecorator[datetime]):
    """A time in UTC; SQLite stores no time zone."""

    impl = DateTime
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Convert a time to UTC for the database."""
        return None if value is None else value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Return a time of the database in UTC."""
        return None if value is None else value.replace(tzinfo=UTC)


class Table(DeclarativeBase):
    """Base of all tables."""

    type_annotation_map = {datetime: UtcTime, str: Text}  # noqa: RUF012 - SQLAlchemy's own


class TeamRow(Table):
    """A participant, which may submit until it is revoked; only a digest of its token is stored."""

    __tablename__ = "teams"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]
    canonical: Mapped[str] = mapped_column(String(256), unique=True)
    token_sha256: Mapped[str] = mapped_column(String(64), unique=True)
    added: Mapped[datetime]
    revoked: Mapped[datetime | None]


class SubmissionRow(Table):
    """A valid document that a team submitted, its state in the queue, and its latest score.

    A score stays until another one replaces it, also while the submission is scored again or where that fails. `tries`
    counts the attempts since it was queued. `basis` identifies the documents and rules of the score. A `hidden` one is
    on no leaderboard.
    """

    __tablename__ = "submissions"
    id: Mapped[int] = mapped_column(primary_key=True)
    team_id: Mapped[int] = mapped_column(ForeignKey("teams.id"), index=True)
    track: Mapped[Track] = mapped_column(String(8))
    content: Mapped[bytes] = deferred(mapped_column(LargeBinary))
    sha256: Mapped[str] = mapped_column(String(64))
    received: Mapped[datetime]
    hidden: Mapped[bool] = mapped_column(default=False)
    state: Mapped[State] = mapped_column(String(8), default="queue", index=True)
    tries: Mapped[int] = mapped_column(default=0)
    ended: Mapped[datetime | None]
    note: Mapped[str] = mapped_column(default="")
    error: Mapped[str] = mapped_column(default="")
    basis: Mapped[str] = mapped_column(String(64), default="")
    score: Mapped[float | None]
    debiased: Mapped[float | None]
    calibrated: Mapped[float | None]
    low: Mapped[float | None]
    high: Mapped[float | None]
    with_epsilon: Mapped[float | None]
    held_out_score: Mapped[float | None]
    document: Mapped[str | None] = deferred(mapped_column(Text))
    held_out_document: Mapped[str | None] = deferred(mapped_column(Text))
    team: Mapped[TeamRow] = relationship()

"""The tables of the first version."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Create the tables."""
    op.create_table(
        "teams",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("canonical", sa.String(256), nullable=False, unique=True),
        sa.Column("token_sha256", sa.String(64), nullable=False, unique=True),
        sa.Column("added", TIME, nullable=False),
        sa.Column("revoked", TIME),
    )
    op.create_table(
        "submissions",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("team_id", sa.Integer, sa.ForeignKey("teams.id"), nullable=False, index=True),
        sa.Column("track", sa.String(8), nullable=False),
        sa.Column("key", sa.String(160), nullable=False),
        sa.Column("content", sa.LargeBinary, nullable=False),
        sa.Column("sha256", sa.String(64), nullable=False),
        sa.Column("received", TIME, nullable=False),
        sa.Column("refused", sa.Text),
        sa.Column("is_refused", sa.Boolean, nullable=False),
        sa.UniqueConstraint("team_id", "key"),
    )
    op.create_table(
        "scorings",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("submission_id", sa.Integer, sa.ForeignKey("submissions.id"), nullable=False),
        sa.Column("kind", sa.String(8), nullable=False),
        sa.Column("round", sa.Integer, nullable=False),
        sa.Column("state", sa.String(8), nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        *(sa.Column(name, TIME, nullable=False) for name in ("queued", "not_before")),
        *(sa.Column(name, TIME) for name in ("started", "lease_until")),
        sa.Column("worker", sa.String(128)),
        sa.Column("ended", TIME),
        *(sa.Column(name, sa.Text, nullable=False) for name in ("note", "error")),
        *(sa.Column(name, sa.Float) for name in ("score", "debiased", "calibrated", "low", "high")),
        sa.Column("document", sa.Text),
        sa.Column("heatmap", sa.LargeBinary),
        sa.UniqueConstraint("submission_id", "kind", "round"),
        sa.Index("ix_scorings_queue", "state", "kind", "id"),
    )
    op.create_table(
        "events",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("at", TIME, nullable=False),
        sa.Column("kind", sa.String(32), nullable=False),
        sa.Column("public", sa.Boolean, nullable=False),
        sa.Column("team_id", sa.Integer, sa.ForeignKey("teams.id")),
        sa.Column("submission_id", sa.Integer, sa.ForeignKey("submissions.id")),
        sa.Column("text", sa.Text, nullable=False),
    )
    op.create_table(
        "facts", sa.Column("name", sa.String(64), primary_key=True), sa.Column("value", sa.Text, nullable=False)
    )

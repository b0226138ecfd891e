"""People with accounts, phases, decisions on submissions, and what each score was computed from."""

import json

import sqlalchemy as sa
from alembic import op

from headstart.portal.records.basis import documents_digest, unknown_rules

revision = "0002"
# The first version had no migrations.
down_revision = None

TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Change the tables."""
    _create_tables()
    with op.batch_alter_table("teams") as teams:
        teams.add_column(sa.Column("approved", TIME))
    op.execute("UPDATE teams SET approved = added")
    op.execute(
        "INSERT INTO accounts (team_id, name, is_organiser, token_sha256, added, revoked) "
        "SELECT id, name, false, token_sha256, added, revoked FROM teams"
    )
    with op.batch_alter_table("teams") as teams:
        teams.drop_column("token_sha256")

    _change_submissions()
    with op.batch_alter_table("scorings") as scorings:
        scorings.add_column(sa.Column("basis", sa.String(65), nullable=False, server_default=""))
        scorings.add_column(sa.Column("with_epsilon", sa.Float))
        scorings.alter_column("state", existing_type=sa.String(8), type_=sa.String(16), existing_nullable=False)
    _find_bases()
    for column in ("kind", "submission_id"):
        op.create_index(f"ix_events_{column}", "events", [column])
    op.execute("DELETE FROM facts WHERE name = 'format'")


def _create_tables() -> None:
    op.create_table(
        "accounts",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("team_id", sa.Integer, sa.ForeignKey("teams.id"), index=True),
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("email", sa.String(254), unique=True),
        sa.Column("is_organiser", sa.Boolean, nullable=False),
        sa.Column("token_sha256", sa.String(64), nullable=False, unique=True),
        sa.Column("recovery_sha256", sa.String(64), unique=True),
        sa.Column("added", TIME, nullable=False),
        sa.Column("revoked", TIME),
    )

    op.create_table(
        "invitations",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("code_sha256", sa.String(64), nullable=False, unique=True),
        sa.Column("team_id", sa.Integer, sa.ForeignKey("teams.id")),
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("email", sa.String(254)),
        *(sa.Column(name, TIME, nullable=False) for name in ("created", "expires")),
        sa.Column("used", TIME),
    )

    op.create_table(
        "sessions",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("cookie_sha256", sa.String(64), nullable=False, unique=True),
        sa.Column("account_id", sa.Integer, sa.ForeignKey("accounts.id"), nullable=False, index=True),
        *(sa.Column(name, TIME, nullable=False) for name in ("begun", "expires")),
    )

    op.create_table(
        "acceptances",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("account_id", sa.Integer, sa.ForeignKey("accounts.id"), nullable=False),
        sa.Column("phase", sa.String(128), nullable=False),
        sa.Column("version", sa.String(64), nullable=False),
        sa.Column("text_sha256", sa.String(64), nullable=False),
        sa.Column("at", TIME, nullable=False),
        sa.UniqueConstraint("account_id", "phase", "version"),
    )


def _change_submissions() -> None:
    with op.batch_alter_table("submissions") as submissions:
        submissions.alter_column("content", existing_type=sa.LargeBinary(), nullable=True)
        submissions.add_column(
            sa.Column("account_id", sa.Integer, sa.ForeignKey("accounts.id", name="submissions_account_id_fkey"))
        )
        submissions.add_column(sa.Column("phase", sa.String(128), nullable=False, server_default=""))
        submissions.add_column(sa.Column("size", sa.Integer, nullable=False, server_default="0"))
        submissions.add_column(sa.Column("withdrawn", TIME))
        submissions.add_column(sa.Column("disqualified", sa.Text))
        submissions.add_column(sa.Column("chosen", sa.Boolean, nullable=False, server_default=sa.false()))
    op.execute("UPDATE submissions SET size = length(content)")
    # A document that was refused on arrival has no scoring, and is not needed any more.
    op.execute(
        "UPDATE submissions SET content = NULL "
        "WHERE is_refused AND NOT EXISTS (SELECT 1 FROM scorings WHERE submission_id = submissions.id)"
    )


def _find_bases() -> None:
    """Read from each result by which documents it was computed; its rules were not stored."""
    connection = op.get_bind()
    scorings = sa.table("scorings", *map(sa.column, ("id", "document", "basis")))
    numbers = connection.scalars(sa.select(scorings.c.id).where(scorings.c.document.is_not(None))).all()
    for number in numbers:
        # One document at a time: the matrices of all may be larger than the memory.
        text = connection.scalar(sa.select(scorings.c.document).where(scorings.c.id == number))
        result = json.loads(text or "{}")
        digests = result.get("digests", {})
        documents = documents_digest(digests.get("registry"), digests.get("catalog"), result.get("extraction"))
        basis = unknown_rules(documents)
        connection.execute(scorings.update().where(scorings.c.id == number).values(basis=basis))

"""Sessions: conversations turn by turn, and what share of a context each memory may have.

Revision ID: 0029
Revises: 0032
Create Date: 2026-11-22 20:20:00.000000
"""

import re

import sqlalchemy as sa

from alembic import op

revision = "0029"
down_revision = "0032"
branch_labels = None
depends_on = None

OWN = "user_sub = nullif(current_setting('app.user_sub', true), '')"
TABLES = ("sessions", "turns")

# As 0011 made it, for more tables.
GATHER = """
CREATE OR REPLACE FUNCTION casebank_gather_statistics() RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    ANALYZE {tables};
END $$
"""


def gathered() -> list[str]:
    """The tables whose statistics are gathered now."""
    body = op.get_bind().scalar(sa.text("SELECT prosrc FROM pg_proc WHERE oid = 'casebank_gather_statistics'::regproc"))
    return re.findall(r"\w+", re.search(r"ANALYZE ([^;]*);", body)[1])


def upgrade() -> None:
    op.create_table(
        "sessions",
        sa.Column("user_sub", sa.Text(), nullable=False),
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False, comment="as the backend named it"),
        sa.Column("agent_key", sa.Text(), nullable=False),
        sa.Column("key_id", sa.Uuid(), nullable=False),
        sa.Column("turn_count", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column(
            "turn_bytes", sa.Integer(), server_default=sa.text("0"), nullable=False, comment="of all its turns as JSON"
        ),
        sa.Column(
            "taken_turns",
            sa.Integer(),
            server_default=sa.text("0"),
            nullable=False,
            comment="those that runs have taken so far",
        ),
        sa.Column(
            "last_turn_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
            comment="as it was told",
        ),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.ForeignKeyConstraint(
            ["user_sub", "agent_key"],
            ["profiles.user_sub", "profiles.agent_key"],
            name=op.f("sessions_user_sub_agent_key_fkey"),
        ),
        sa.ForeignKeyConstraint(
            ["user_sub", "key_id"],
            ["user_keys.user_sub", "user_keys.key_id"],
            name=op.f("sessions_user_sub_key_id_fkey"),
        ),
        sa.PrimaryKeyConstraint("user_sub", "id", name=op.f("sessions_pkey")),
        sa.UniqueConstraint("user_sub", "name", name=op.f("sessions_user_sub_name_key")),
        comment="conversations of a user with an agent",
    )
    op.create_index("sessions_agent_idx", "sessions", ["user_sub", "agent_key", "last_turn_at"])
    op.create_table(
        "turns",
        sa.Column("user_sub", sa.Text(), nullable=False),
        sa.Column("session_id", sa.Uuid(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False, comment="1-based, in the order in which they were told"),
        sa.Column(
            "said_at", sa.DateTime(timezone=True), nullable=False, comment="never earlier than the turn before it"
        ),
        sa.Column("payload", sa.LargeBinary(), nullable=False, comment="sealed: role, content, tool calls"),
        sa.Column("call_key", sa.Text(), comment="idempotency key of the call that it was the first turn of"),
        sa.Column("call_hash", sa.LargeBinary(), comment="keyed hash of that call"),
        sa.Column("call_size", sa.Integer(), comment="turns of that call"),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.CheckConstraint("number > 0", name=op.f("turns_number_check")),
        sa.CheckConstraint("num_nonnulls(call_key, call_hash, call_size) IN (0, 3)", name=op.f("turns_call_check")),
        sa.ForeignKeyConstraint(
            ["user_sub", "session_id"],
            ["sessions.user_sub", "sessions.id"],
            name=op.f("turns_user_sub_session_id_fkey"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("user_sub", "session_id", "number", name=op.f("turns_pkey")),
        sa.UniqueConstraint("user_sub", "session_id", "call_key", name=op.f("turns_user_sub_session_id_call_key_key")),
        comment="the messages of sessions",
    )
    for table in TABLES:
        op.execute(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")
        op.execute(f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY")
        op.execute(f"CREATE POLICY own_rows ON {table} TO casebank_service USING ({OWN}) WITH CHECK ({OWN})")
        op.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON {table} TO casebank_service")
    op.execute("ALTER TABLE turns ALTER COLUMN payload SET STATISTICS 0")
    op.add_column(
        "cases",
        sa.Column(
            "session_id", sa.Uuid(), comment="the session that it was a part of; null: none, or one that is gone"
        ),
    )
    op.create_foreign_key(
        op.f("cases_user_sub_session_id_fkey"),
        "cases",
        "sessions",
        ["user_sub", "session_id"],
        ["user_sub", "id"],
        ondelete="SET NULL (session_id)",
    )
    op.create_index(
        "cases_session_idx",
        "cases",
        ["user_sub", "session_id"],
        postgresql_where=sa.text("session_id IS NOT NULL"),
    )
    _add_settings()
    op.execute(GATHER.format(tables=", ".join((*gathered(), *TABLES))))


def _add_settings() -> None:
    op.add_column(
        "profiles", sa.Column("session_ttl_days", sa.Integer(), comment="since its last turn; null: a session stays")
    )
    for name, share, comment in (
        ("session_share", "0.4", "of a context's tokens, at most"),
        ("procedures_share", "0.33333334", "likewise"),
    ):
        op.add_column(
            "profiles", sa.Column(name, sa.REAL(), server_default=sa.text(share), nullable=False, comment=comment)
        )
        op.create_check_constraint(op.f(f"profiles_{name}_check"), "profiles", f"{name} >= 0 AND {name} <= 1")


def downgrade() -> None:
    op.execute(GATHER.format(tables=", ".join(table for table in gathered() if table not in TABLES)))
    for name in ("procedures_share", "session_share", "session_ttl_days"):
        op.drop_column("profiles", name)
    op.drop_column("cases", "session_id")
    op.drop_table("turns")
    op.drop_table("sessions")

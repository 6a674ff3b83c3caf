"""Facts that users told of themselves, and the queue of sessions that the worker reads for them.

Revision ID: 0030
Revises: 0029
Create Date: 2026-11-22 20:30:00.000000
"""

import re

import sqlalchemy as sa

from alembic import op

revision = "0030"
down_revision = "0029"
branch_labels = None
depends_on = None

OWN = "user_sub = nullif(current_setting('app.user_sub', true), '')"

# As 0011 made it, for more tables.
GATHER = """
CREATE OR REPLACE FUNCTION casebank_gather_statistics() RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    ANALYZE {tables};
END $$
"""

# What the worker role may see of everybody's sessions: which wait and since when, never what was said.
QUEUE_COLUMNS = "user_sub, id, agent_key, status, attempts, available_at, lease_token, created_at"


def queue() -> tuple[sa.Column, ...]:
    """The columns of a session's entry in the queue."""
    return (
        sa.Column(
            "status",
            sa.Text(),
            server_default=sa.text("'ready'"),
            nullable=False,
            comment="pending: it has turns to be read",
        ),
        sa.Column(
            "read_turns",
            sa.Integer(),
            server_default=sa.text("0"),
            nullable=False,
            comment="those that facts were read off",
        ),
        sa.Column("attempts", sa.SmallInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("available_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("lease_token", sa.Uuid()),
        sa.Column("last_error", sa.Text()),
    )


def gathered() -> list[str]:
    """The tables whose statistics are gathered now."""
    body = op.get_bind().scalar(sa.text("SELECT prosrc FROM pg_proc WHERE oid = 'casebank_gather_statistics'::regproc"))
    return re.findall(r"\w+", re.search(r"ANALYZE ([^;]*);", body)[1])


def upgrade() -> None:
    op.create_table(
        "facts",
        sa.Column("user_sub", sa.Text(), nullable=False),
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("agent_key", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("category", sa.Text(), server_default=sa.text("'other'"), nullable=False),
        sa.Column("key_id", sa.Uuid(), nullable=False),
        sa.Column("words", sa.LargeBinary(), nullable=False, comment="sealed: text, subject, attribute, value, unit"),
        sa.Column(
            "slot",
            sa.LargeBinary(),
            comment="keyed hash of what there is one value of at a time; null: of any number",
        ),
        sa.Column("said", sa.LargeBinary(), nullable=False, comment="keyed hash of what it says, whatever the wording"),
        sa.Column("about_from", sa.Date(), comment="first day that it speaks of"),
        sa.Column("about_to", sa.Date(), comment="last day"),
        sa.Column("origin", sa.Text(), nullable=False),
        sa.Column("said_by", sa.Text(), server_default=sa.text("'user'"), nullable=False),
        sa.Column("session_id", sa.Uuid(), comment="where it was first told; null: elsewhere, or it is gone"),
        sa.Column("turn_number", sa.Integer(), comment="in that session"),
        sa.Column(
            "case_id", sa.Uuid(), comment="the run in whose turns it was first told; null: elsewhere, or it is gone"
        ),
        sa.Column("told", sa.Integer(), server_default=sa.text("1"), nullable=False),
        sa.Column("last_told_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("valid_from", sa.DateTime(timezone=True), nullable=False),
        sa.Column("valid_to", sa.DateTime(timezone=True), comment="null: it holds"),
        sa.Column("superseded_by", sa.Uuid(), comment="the newer one that contradicts it"),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.CheckConstraint("kind IN ('goal', 'preference', 'event', 'fact')", name=op.f("facts_kind_check")),
        sa.CheckConstraint(
            "category IN ('money', 'health', 'learning', 'work', 'home', 'travel', 'people', 'other')",
            name=op.f("facts_category_check"),
        ),
        sa.CheckConstraint("origin IN ('turn', 'run', 'hand')", name=op.f("facts_origin_check")),
        sa.CheckConstraint("said_by IN ('user', 'assistant', 'tool')", name=op.f("facts_said_by_check")),
        sa.CheckConstraint("valid_to >= valid_from", name=op.f("facts_valid_check")),
        sa.CheckConstraint(
            "(about_from IS NULL) = (about_to IS NULL) AND about_from <= about_to", name=op.f("facts_about_check")
        ),
        sa.ForeignKeyConstraint(
            ["user_sub", "agent_key"],
            ["profiles.user_sub", "profiles.agent_key"],
            name=op.f("facts_user_sub_agent_key_fkey"),
        ),
        sa.ForeignKeyConstraint(
            ["user_sub", "key_id"], ["user_keys.user_sub", "user_keys.key_id"], name=op.f("facts_user_sub_key_id_fkey")
        ),
        sa.ForeignKeyConstraint(
            ["user_sub", "session_id"],
            ["sessions.user_sub", "sessions.id"],
            name=op.f("facts_user_sub_session_id_fkey"),
            ondelete="SET NULL (session_id)",
        ),
        sa.ForeignKeyConstraint(
            ["user_sub", "case_id"],
            ["cases.user_sub", "cases.id"],
            name=op.f("facts_user_sub_case_id_fkey"),
            ondelete="SET NULL (case_id)",
        ),
        sa.ForeignKeyConstraint(
            ["user_sub", "superseded_by"],
            ["facts.user_sub", "facts.id"],
            name=op.f("facts_user_sub_superseded_by_fkey"),
            ondelete="SET NULL (superseded_by)",
        ),
        sa.PrimaryKeyConstraint("user_sub", "id", name=op.f("facts_pkey")),
        comment="what users told of themselves, and when it held",
    )
    op.create_index("facts_said_idx", "facts", ["user_sub", "agent_key", "said"])
    op.create_index("facts_slot_idx", "facts", ["user_sub", "agent_key", "slot", "valid_from"])
    op.create_index("facts_session_idx", "facts", ["user_sub", "session_id"])
    op.create_index("facts_case_idx", "facts", ["user_sub", "case_id"])
    op.create_index("facts_superseded_idx", "facts", ["user_sub", "superseded_by"])
    op.execute("ALTER TABLE facts ENABLE ROW LEVEL SECURITY")
    op.execute("ALTER TABLE facts FORCE ROW LEVEL SECURITY")
    op.execute(f"CREATE POLICY own_rows ON facts TO casebank_service USING ({OWN}) WITH CHECK ({OWN})")
    op.execute("GRANT SELECT, INSERT, UPDATE, DELETE ON facts TO casebank_service")
    op.execute("ALTER TABLE facts ALTER COLUMN words SET STATISTICS 0")
    op.add_column(
        "profiles",
        sa.Column("facts_share", sa.REAL(), server_default=sa.text("0.2"), nullable=False, comment="likewise"),
    )
    op.create_check_constraint(op.f("profiles_facts_share_check"), "profiles", "facts_share >= 0 AND facts_share <= 1")
    _queue_sessions()
    op.execute(GATHER.format(tables=", ".join((*gathered(), "facts"))))


def _queue_sessions() -> None:
    """What was said before is read once its session goes on."""
    for column in queue():
        op.add_column("sessions", column)
    op.create_check_constraint(op.f("sessions_status_check"), "sessions", "status IN ('pending', 'ready', 'dead')")
    op.create_index(
        "sessions_queue_idx",
        "sessions",
        ["user_sub", "available_at"],
        postgresql_where=sa.text("status = 'pending'"),
    )
    op.execute("CREATE POLICY queue ON sessions TO casebank_worker USING (true)")
    op.execute(f"GRANT SELECT ({QUEUE_COLUMNS}) ON sessions TO casebank_worker")
    op.execute("GRANT UPDATE (status, attempts, available_at, lease_token, last_error) ON sessions TO casebank_worker")


def downgrade() -> None:
    op.execute(GATHER.format(tables=", ".join(table for table in gathered() if table != "facts")))
    op.execute("DROP POLICY queue ON sessions")
    op.execute("REVOKE ALL ON sessions FROM casebank_worker")
    for column in reversed(queue()):
        op.drop_column("sessions", column.name)
    op.drop_column("profiles", "facts_share")
    op.drop_table("facts")

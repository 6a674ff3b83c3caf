"""Runs whose steps are told while they are under way.

Revision ID: 0027
Revises: 0020
Create Date: 2026-11-22 16:30:00.000000
"""

import sqlalchemy as sa

from alembic import op

revision = "0027"
down_revision = "0020"
branch_labels = None
depends_on = None

OWN = "user_sub = nullif(current_setting('app.user_sub', true), '')"

TABLES = ("runs", "run_steps")
WORDS = {"runs": ("words",), "run_steps": ("payload",), "procedure_reviews": ("note", "actor")}

# As 0011 made it, for more tables.
GATHER = """
CREATE OR REPLACE FUNCTION casebank_gather_statistics() RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    ANALYZE {tables};
END $$
"""
GATHERED_BEFORE = (
    "audit",
    "case_embeddings",
    "case_tools",
    "cases",
    "decision_slots",
    "decisions",
    "erasures",
    "llm_usage",
    "policies",
    "procedures",
    "profiles",
    "rate_limits",
    "rewards",
    "user_keys",
    "audit_links",
    "audit_heads",
)


def upgrade() -> None:
    op.create_table(
        "runs",
        sa.Column("user_sub", sa.Text(), nullable=False),
        sa.Column("id", sa.Uuid(), nullable=False, comment="as the backend named it"),
        sa.Column("agent_key", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), server_default=sa.text("'under_way'"), nullable=False),
        sa.Column("key_id", sa.Uuid(), nullable=False),
        sa.Column("words", sa.LargeBinary(), nullable=False, comment="sealed: task"),
        sa.Column(
            "retrieval_id", sa.Uuid(), comment="that it began with; looked up when it ends, and so no foreign key"
        ),
        sa.Column("step_count", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column(
            "step_bytes",
            sa.Integer(),
            server_default=sa.text("0"),
            nullable=False,
            comment="of all its steps as JSON",
        ),
        sa.Column("last_step_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("ended_at", sa.DateTime(timezone=True)),
        sa.Column("case_id", sa.Uuid(), comment="the case that it became; null: none yet, or one that is gone"),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.CheckConstraint("status IN ('under_way', 'retained', 'aborted')", name=op.f("runs_status_check")),
        sa.CheckConstraint("(status = 'under_way') = (ended_at IS NULL)", name=op.f("runs_ended_at_check")),
        sa.ForeignKeyConstraint(
            ["user_sub", "agent_key"],
            ["profiles.user_sub", "profiles.agent_key"],
            name=op.f("runs_user_sub_agent_key_fkey"),
        ),
        sa.ForeignKeyConstraint(
            ["user_sub", "key_id"],
            ["user_keys.user_sub", "user_keys.key_id"],
            name=op.f("runs_user_sub_key_id_fkey"),
        ),
        sa.ForeignKeyConstraint(
            ["user_sub", "case_id"],
            ["cases.user_sub", "cases.id"],
            name=op.f("runs_user_sub_case_id_fkey"),
            ondelete="SET NULL (case_id)",
        ),
        sa.PrimaryKeyConstraint("user_sub", "id", name=op.f("runs_pkey")),
        comment="runs whose steps are told while they are under way",
    )
    op.create_index("runs_status_idx", "runs", ["user_sub", "agent_key", "status", "last_step_at"])
    op.create_index(op.f("runs_user_sub_case_id_idx"), "runs", ["user_sub", "case_id"])
    op.create_table(
        "run_steps",
        sa.Column("user_sub", sa.Text(), nullable=False),
        sa.Column("run_id", sa.Uuid(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False, comment="1-based, as the backend counts"),
        sa.Column("payload", sa.LargeBinary(), nullable=False, comment="sealed: the tool trace"),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.CheckConstraint("number > 0", name=op.f("run_steps_number_check")),
        sa.ForeignKeyConstraint(
            ["user_sub", "run_id"],
            ["runs.user_sub", "runs.id"],
            name=op.f("run_steps_user_sub_run_id_fkey"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("user_sub", "run_id", "number", name=op.f("run_steps_pkey")),
        comment="the steps of runs under way; those of a run that was retained are in its case",
    )
    for table in TABLES:
        op.execute(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")
        op.execute(f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY")
        op.execute(f"CREATE POLICY own_rows ON {table} TO casebank_service USING ({OWN}) WITH CHECK ({OWN})")
        op.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON {table} TO casebank_service")
    for table, columns in WORDS.items():
        for column in columns:
            op.execute(f"ALTER TABLE {table} ALTER COLUMN {column} SET STATISTICS 0")
    op.execute(GATHER.format(tables=", ".join((*GATHERED_BEFORE, "procedure_reviews", *TABLES))))


def downgrade() -> None:
    op.execute(GATHER.format(tables=", ".join(GATHERED_BEFORE)))
    for column in WORDS["procedure_reviews"]:
        op.execute(f"ALTER TABLE procedure_reviews ALTER COLUMN {column} SET STATISTICS -1")
    op.drop_table("run_steps")
    op.drop_table("runs")

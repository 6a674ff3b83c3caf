"""Procedures as a registry with versions, what each tool did, and what language models were asked for.

Revision ID: 0004
Revises: 0003
Create Date: 2026-11-21 19:02:49.274076
"""

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

CURRENT_USER_SUB = "nullif(current_setting('app.user_sub', true), '')"
OWN = f"user_sub = {CURRENT_USER_SUB}"
NEW_TABLES = ("llm_usage", "case_tools")


def _text(name: str, default: str, comment: str | None = None) -> sa.Column[str]:
    return sa.Column(name, sa.Text(), server_default=sa.text(f"'{default}'"), nullable=False, comment=comment)


def _number(name: str, default: str, kind: type[sa.types.TypeEngine], comment: str | None = None) -> sa.Column:
    return sa.Column(name, kind(), server_default=sa.text(default), nullable=False, comment=comment)


def _ids(name: str, kind: type[sa.types.TypeEngine], comment: str) -> sa.Column:
    return sa.Column(name, postgresql.ARRAY(kind()), server_default=sa.text("'{}'"), nullable=False, comment=comment)


COLUMNS = {
    "cases": (sa.Column("used_procedure_ids", postgresql.ARRAY(sa.Uuid()), comment="null: the backend did not say"),),
    "decisions": (
        sa.Column(
            "rewritten", sa.Text(), comment="what was searched for in place of the query; null: the query itself"
        ),
        _ids("procedure_ids", sa.Uuid, "told with the slate"),
        _ids("procedure_versions", sa.Integer, "of those"),
        sa.Column(
            "used_procedure_ids",
            postgresql.ARRAY(sa.Uuid()),
            comment="of those, what the backend said it used; null: it did not say",
        ),
    ),
    "procedures": (
        _text("kind", "script"),
        _text("origin", "rules"),
        sa.Column("level", sa.Text(), comment="how abstract it is; null of a lesson from a failure"),
        _text("status", "active"),
        _number("pinned", "false", sa.Boolean, "by hand: nothing replaces it"),
        sa.Column("parent_version", sa.Integer(), comment="the version that this one revises"),
        _text("task_type", ""),
        _text("trigger", "", "one sentence: when to use it"),
        _text("domain", ""),
        _ids("source_case_ids", sa.Uuid, "runs merged into it"),
        _number("occurrences", "1", sa.Integer),
        _number("uses", "0", sa.REAL),
        _number("use_reward", "0", sa.REAL, "sum over uses"),
        sa.Column("last_used_at", sa.DateTime(timezone=True)),
        _text("search_text", ""),
        sa.Column(
            "search_vector",
            postgresql.TSVECTOR(),
            sa.Computed("to_tsvector('english'::regconfig, search_text)", persisted=True),
        ),
        sa.Column("embedding_model", sa.Text()),
        sa.Column("embedding", postgresql.ARRAY(sa.REAL()), comment="of the trigger, in the space of embedding_model"),
    ),
    "profiles": (
        _text("rewrite", "off", "who turns a query into a search"),
        _text("analyst", "rules", "who explains failures"),
        _text("abstraction", "hybrid", "off, or the level"),
        _number("least_success", "0.7", sa.REAL, "of a run that makes a procedure"),
        _number("procedures", "2", sa.SmallInteger, "most in one answer"),
        sa.Column(
            "procedure_similarity",
            sa.REAL(),
            comment="least of trigger and query; null: the embedding model's own",
        ),
        sa.Column("llm_tokens_per_day", sa.Integer(), comment="null: as many as the service allows"),
    ),
}

CHECKS = {
    "profiles": {
        "rewrite": "rewrite IN ('off', 'rules', 'llm')",
        "analyst": "analyst IN ('rules', 'llm')",
        "abstraction": "abstraction IN ('off', 'concrete', 'abstract', 'hybrid')",
        "least_success": "least_success >= 0 AND least_success <= 1",
        "procedures": "procedures BETWEEN 0 AND 10",
    },
    "procedures": {
        "kind": "kind IN ('script', 'failure_lesson', 'revision')",
        "origin": "origin IN ('run', 'rules', 'llm')",
        "level": "level IN ('concrete', 'abstract', 'hybrid')",
        "status": "status IN ('active', 'superseded', 'retired', 'rolled_back')",
    },
}

# What was learned before had no trigger of its own: the description says when it helps.
FILL = """
UPDATE procedures SET
    trigger = coalesce(record->>'semantic_description', ''),
    search_text = concat_ws(E'\\n', record->>'procedure_name', record->>'semantic_description'),
    source_case_ids = CASE WHEN case_id IS NULL THEN '{}' ELSE ARRAY[case_id] END
"""


def upgrade() -> None:
    op.create_table(
        "llm_usage",
        sa.Column("user_sub", sa.Text(), nullable=False),
        sa.Column("agent_key", sa.Text(), nullable=False),
        sa.Column("day", sa.Date(), nullable=False, comment="UTC"),
        sa.Column("purpose", sa.Text(), nullable=False),
        sa.Column("calls", sa.Integer(), nullable=False),
        sa.Column("failures", sa.Integer(), nullable=False, comment="calls without a usable answer"),
        sa.Column("prompt_tokens", sa.BigInteger(), nullable=False),
        sa.Column("completion_tokens", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.CheckConstraint(
            "purpose IN ('rewrite', 'analyse', 'abstract', 'revise')", name=op.f("llm_usage_purpose_check")
        ),
        sa.PrimaryKeyConstraint("user_sub", "agent_key", "day", "purpose", name=op.f("llm_usage_pkey")),
    )
    op.create_table(
        "case_tools",
        sa.Column("user_sub", sa.Text(), nullable=False),
        sa.Column("case_id", sa.Uuid(), nullable=False),
        sa.Column("tool", sa.Text(), nullable=False),
        sa.Column("agent_key", sa.Text(), nullable=False),
        sa.Column("calls", sa.Integer(), nullable=False),
        sa.Column("errors", sa.Integer(), nullable=False),
        sa.Column("duration_ms", sa.REAL(), nullable=True, comment="of all calls together; null: not told"),
        sa.Column(
            "forms",
            postgresql.ARRAY(sa.Text()),
            nullable=False,
            comment="the arguments of calls that worked, values as placeholders",
        ),
        sa.Column(
            "failures",
            postgresql.JSONB(astext_type=sa.Text()),
            nullable=False,
            comment="[{cause, fix}], fix null: never put right",
        ),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.ForeignKeyConstraint(
            ["user_sub", "case_id"],
            ["cases.user_sub", "cases.id"],
            name=op.f("case_tools_user_sub_case_id_fkey"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("user_sub", "case_id", "tool", name=op.f("case_tools_pkey")),
    )
    op.create_index(
        op.f("case_tools_user_sub_agent_key_tool_idx"), "case_tools", ["user_sub", "agent_key", "tool"], unique=False
    )
    for table, columns in COLUMNS.items():
        for column in columns:
            op.add_column(table, column)
    for table, checks in CHECKS.items():
        for name, condition in checks.items():
            op.create_check_constraint(op.f(f"{table}_{name}_check"), table, condition)
    op.execute("COMMENT ON COLUMN procedures.case_id IS 'the run whose words it is made of; null once that was pruned'")
    op.create_index(
        "procedures_active_idx",
        "procedures",
        ["user_sub", "agent_key", "id"],
        unique=True,
        postgresql_where=sa.text("status = 'active'"),
    )
    op.create_foreign_key(
        "procedures_parent_fkey",
        "procedures",
        "procedures",
        ["user_sub", "id", "parent_version"],
        ["user_sub", "id", "version"],
        ondelete="CASCADE",
    )
    op.execute("ALTER TABLE procedures NO FORCE ROW LEVEL SECURITY")  # for the owner, who fills every user's rows
    op.execute(FILL)
    op.execute("ALTER TABLE procedures FORCE ROW LEVEL SECURITY")
    for table in NEW_TABLES:
        op.execute(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")
        op.execute(f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY")
        op.execute(f"CREATE POLICY own_rows ON {table} TO casebank_service USING ({OWN}) WITH CHECK ({OWN})")
        op.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON {table} TO casebank_service")


def downgrade() -> None:
    op.drop_constraint("procedures_parent_fkey", "procedures", type_="foreignkey")
    op.drop_index("procedures_active_idx", table_name="procedures", postgresql_where=sa.text("status = 'active'"))
    op.execute("COMMENT ON COLUMN procedures.case_id IS 'the run it was learned from'")
    for table, columns in COLUMNS.items():
        for column in reversed(columns):
            op.drop_column(table, column.name)
    for table in NEW_TABLES:
        op.drop_table(table)

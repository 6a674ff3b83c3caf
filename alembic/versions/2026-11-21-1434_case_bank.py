"""The case bank: tables, roles, row-level security.

Revision ID: 0001
Revises:
Create Date: 2026-11-21 14:34:26.031799
"""

import sqlalchemy as sa
from pgvector.sqlalchemy import Vector
from sqlalchemy.dialects import postgresql

from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

USER_TABLES = (
    "profiles",
    "user_keys",
    "decisions",
    "decision_slots",
    "cases",
    "case_embeddings",
    "procedures",
    "rewards",
    "audit",
)

# Roles belong to the whole cluster, so another database may have made them already.
ROLES = """
DO $$ BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'casebank_worker') THEN
        CREATE ROLE casebank_worker NOLOGIN NOINHERIT;
    END IF;
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'casebank_service') THEN
        CREATE ROLE casebank_service NOLOGIN NOINHERIT;
    END IF;
    GRANT casebank_worker TO casebank_service;
    IF NOT (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) THEN
        EXECUTE format('GRANT casebank_service TO %I', current_user);
    END IF;
EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL;
END $$
"""

CURRENT_USER_SUB = "nullif(current_setting('app.user_sub', true), '')"

# Every transaction of a user begins here. The shared lock keeps an erasure (which takes it alone) out until
# the transaction ends, and the check keeps out whoever was authorised before the last erasure.
ENTER = """
CREATE FUNCTION casebank_enter(p_user_sub text, p_authorised_at timestamptz) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('app.user_sub', p_user_sub, true);
    PERFORM pg_advisory_xact_lock_shared(hashtextextended(p_user_sub, 0));
    IF EXISTS (
        SELECT FROM erasures
        WHERE user_sub = encode(sha256(convert_to(p_user_sub, 'UTF8')), 'hex') AND erased_at >= p_authorised_at
    ) THEN
        RAISE EXCEPTION 'the user was erased' USING ERRCODE = 'CB410';
    END IF;
    RETURN true;
END $$
"""

# What the worker role may see of everybody: who waits and since when, never what they wrote.
QUEUE_COLUMNS = "user_sub, id, agent_key, status, attempts, available_at, lease_token, created_at"


def vector_type() -> sa.types.TypeEngine:
    """Pgvector's type where the extension can be had, else an array that the service compares by itself."""
    wanted = op.get_context().config.attributes.get("pgvector", "auto")
    available = sa.text("SELECT count(*) FROM pg_available_extensions WHERE name = 'vector'")
    if wanted == "off" or not op.get_bind().scalar(available):
        return sa.ARRAY(sa.REAL())
    op.execute("CREATE EXTENSION IF NOT EXISTS vector")
    return Vector()


def forbid_strangers() -> None:
    """Row-level security, for the owner too."""
    for table in (*USER_TABLES, "erasures"):
        op.execute(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")
        op.execute(f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY")
    for table in USER_TABLES:
        op.execute(
            f"CREATE POLICY own_rows ON {table} TO casebank_service"
            f" USING (user_sub = {CURRENT_USER_SUB}) WITH CHECK (user_sub = {CURRENT_USER_SUB})"
        )
        op.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON {table} TO casebank_service")
    digest = f"encode(sha256(convert_to({CURRENT_USER_SUB}, 'UTF8')), 'hex')"
    op.execute(
        "CREATE POLICY own_rows ON erasures TO casebank_service"
        f" USING (user_sub = {digest}) WITH CHECK (user_sub = {digest})"
    )
    op.execute("GRANT SELECT, INSERT ON erasures TO casebank_service")


def open_the_queue() -> None:
    """What the worker role sees and changes across users."""
    op.execute("CREATE POLICY queue ON cases TO casebank_worker USING (true)")
    op.execute("CREATE POLICY queue ON profiles FOR SELECT TO casebank_worker USING (true)")
    op.execute(f"GRANT SELECT ({QUEUE_COLUMNS}) ON cases TO casebank_worker")
    op.execute("GRANT UPDATE (status, attempts, available_at, lease_token, last_error) ON cases TO casebank_worker")
    op.execute("GRANT SELECT (user_sub, agent_key, embedding_model) ON profiles TO casebank_worker")


def upgrade() -> None:
    op.execute(ROLES)
    op.create_table(
        "audit",
        sa.Column("user_sub", sa.Text(), nullable=False),
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("agent_key", sa.Text(), nullable=True),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("subject_id", sa.Uuid(), nullable=True),
        sa.Column("payload", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.PrimaryKeyConstraint("user_sub", "id", name=op.f("audit_pkey")),
    )
    op.create_table(
        "decisions",
        sa.Column("user_sub", sa.Text(), nullable=False),
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("agent_key", sa.Text(), nullable=False),
        sa.Column("query", sa.Text(), nullable=False),
        sa.Column("mode", sa.Text(), nullable=False),
        sa.Column("degraded", sa.ARRAY(sa.Text()), nullable=False),
        sa.Column("policy_version", sa.Text(), nullable=False),
        sa.Column("feature_version", sa.SmallInteger(), nullable=False),
        sa.Column("seed", sa.BigInteger(), nullable=False),
        sa.Column("candidate_ids", sa.ARRAY(sa.Uuid()), nullable=False),
        sa.Column(
            "features",
            sa.ARRAY(sa.REAL()),
            nullable=False,
            comment="row-major, candidates x features of feature_version",
        ),
        sa.Column("scores", sa.ARRAY(sa.REAL()), nullable=False, comment="what the policy ordered the candidates by"),
        sa.Column("tokens", sa.Integer(), nullable=False),
        sa.Column("reward", sa.REAL(), nullable=True),
        sa.Column("reward_source", sa.Text(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.CheckConstraint("reward >= 0 AND reward <= 1", name=op.f("decisions_reward_check")),
        sa.PrimaryKeyConstraint("user_sub", "id", name=op.f("decisions_pkey")),
    )
    op.create_table(
        "erasures",
        sa.Column("user_sub", sa.Text(), nullable=False, comment="sha256 of the erased user's name, in hex"),
        sa.Column("erased_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("receipt", postgresql.JSONB(astext_type=sa.Text()), nullable=False, comment="rows deleted, by table"),
        sa.PrimaryKeyConstraint("user_sub", "erased_at", name=op.f("erasures_pkey")),
    )
    op.create_table(
        "profiles",
        sa.Column("user_sub", sa.Text(), nullable=False),
        sa.Column("agent_key", sa.Text(), nullable=False),
        sa.Column("enabled", sa.Boolean(), server_default=sa.text("true"), nullable=False),
        sa.Column("window_size", sa.Integer(), server_default=sa.text("200"), nullable=False),
        sa.Column("ttl_days", sa.Integer(), nullable=True),
        sa.Column("k", sa.SmallInteger(), server_default=sa.text("4"), nullable=False),
        sa.Column("full_text_weight", sa.REAL(), server_default=sa.text("1"), nullable=False),
        sa.Column("semantic_weight", sa.REAL(), server_default=sa.text("1"), nullable=False),
        sa.Column("rrf_k", sa.REAL(), server_default=sa.text("50"), nullable=False),
        sa.Column(
            "embedding_model",
            sa.Text(),
            nullable=True,
            comment="the one vector space that searches of this profile use",
        ),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.CheckConstraint("k BETWEEN 1 AND 50", name=op.f("profiles_k_check")),
        sa.CheckConstraint("window_size > 0", name=op.f("profiles_window_size_check")),
        sa.PrimaryKeyConstraint("user_sub", "agent_key", name=op.f("profiles_pkey")),
    )
    op.create_table(
        "user_keys",
        sa.Column("user_sub", sa.Text(), nullable=False),
        sa.Column("key_id", sa.Uuid(), nullable=False),
        sa.Column(
            "wrapped_key", sa.LargeBinary(), nullable=False, comment="AES key of the user, wrapped by the master key"
        ),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.PrimaryKeyConstraint("user_sub", "key_id", name=op.f("user_keys_pkey")),
        sa.UniqueConstraint("user_sub", name=op.f("user_keys_user_sub_key")),
    )
    op.create_table(
        "cases",
        sa.Column("user_sub", sa.Text(), nullable=False),
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("agent_key", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column(
            "parent_case_id", sa.Uuid(), nullable=True, comment="of a subtask or tool case: the run it belongs to"
        ),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("task", sa.Text(), nullable=False),
        sa.Column("plan", sa.ARRAY(sa.Text()), nullable=False),
        sa.Column("tools", sa.ARRAY(sa.Text()), nullable=False, comment="distinct tool names in order of first use"),
        sa.Column("tags", sa.ARRAY(sa.Text()), nullable=False),
        sa.Column("outcome", sa.Text(), nullable=False),
        sa.Column("reward", sa.REAL(), nullable=True),
        sa.Column("reward_source", sa.Text(), nullable=True),
        sa.Column("step_count", sa.Integer(), nullable=False),
        sa.Column("error_count", sa.Integer(), nullable=False),
        sa.Column("retrieval_id", sa.Uuid(), nullable=True),
        sa.Column("used_case_ids", sa.ARRAY(sa.Uuid()), nullable=True, comment="null: the backend did not say"),
        sa.Column("search_text", sa.Text(), nullable=False),
        sa.Column(
            "search_vector",
            postgresql.TSVECTOR(),
            sa.Computed("to_tsvector('english'::regconfig, search_text)", persisted=True),
            nullable=True,
        ),
        sa.Column("message_hash", sa.LargeBinary(), nullable=False, comment="sha256 of the normalised task and plan"),
        sa.Column("idempotency_key", sa.Text(), nullable=True),
        sa.Column("request_hash", sa.LargeBinary(), nullable=False, comment="sha256 of the request as it was sent"),
        sa.Column("key_id", sa.Uuid(), nullable=False),
        sa.Column(
            "payload",
            sa.LargeBinary(),
            nullable=False,
            comment="sealed: prompt snapshot, tool traces, turns, procedure",
        ),
        sa.Column("occurrences", sa.Integer(), server_default=sa.text("1"), nullable=False),
        sa.Column("merged_into", sa.Uuid(), nullable=True),
        sa.Column("reuse_count", sa.REAL(), server_default=sa.text("0"), nullable=False),
        sa.Column(
            "reuse_reward", sa.REAL(), server_default=sa.text("0"), nullable=False, comment="sum over reuse_count"
        ),
        sa.Column("last_used_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("attempts", sa.SmallInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("available_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("lease_token", sa.Uuid(), nullable=True),
        sa.Column("last_error", sa.Text(), nullable=True),
        sa.Column("pruned_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.CheckConstraint("kind IN ('task', 'subtask', 'tool')", name=op.f("cases_kind_check")),
        sa.CheckConstraint("outcome IN ('success', 'failure', 'partial', 'aborted')", name=op.f("cases_outcome_check")),
        sa.CheckConstraint(
            "status IN ('pending', 'ready', 'merged', 'pruned', 'dead')", name=op.f("cases_status_check")
        ),
        sa.CheckConstraint("reward >= 0 AND reward <= 1", name=op.f("cases_reward_check")),
        sa.ForeignKeyConstraint(
            ["user_sub", "agent_key"],
            ["profiles.user_sub", "profiles.agent_key"],
            name=op.f("cases_user_sub_agent_key_fkey"),
        ),
        sa.ForeignKeyConstraint(
            ["user_sub", "key_id"], ["user_keys.user_sub", "user_keys.key_id"], name=op.f("cases_user_sub_key_id_fkey")
        ),
        sa.ForeignKeyConstraint(
            ["user_sub", "retrieval_id"],
            ["decisions.user_sub", "decisions.id"],
            name=op.f("cases_user_sub_retrieval_id_fkey"),
            ondelete="SET NULL (retrieval_id)",
        ),
        sa.PrimaryKeyConstraint("user_sub", "id", name=op.f("cases_pkey")),
        sa.UniqueConstraint("user_sub", "idempotency_key", name=op.f("cases_user_sub_idempotency_key_key")),
    )
    op.create_index("cases_bank_idx", "cases", ["user_sub", "agent_key", "status", "created_at", "id"], unique=False)
    op.create_index(
        "cases_queue_idx", "cases", ["available_at"], unique=False, postgresql_where=sa.text("status = 'pending'")
    )
    op.create_index("cases_search_vector_idx", "cases", ["search_vector"], unique=False, postgresql_using="gin")
    op.create_table(
        "decision_slots",
        sa.Column("user_sub", sa.Text(), nullable=False),
        sa.Column("decision_id", sa.Uuid(), nullable=False),
        sa.Column("place", sa.SmallInteger(), nullable=False, comment="1-based"),
        sa.Column("case_id", sa.Uuid(), nullable=False, comment="no foreign key: the log outlives a pruned case"),
        sa.Column("propensity", sa.REAL(), nullable=False),
        sa.Column(
            "used",
            sa.Boolean(),
            nullable=True,
            comment="whether the backend said that it used the case; null: it did not say",
        ),
        sa.CheckConstraint("propensity > 0 AND propensity <= 1", name=op.f("decision_slots_propensity_check")),
        sa.ForeignKeyConstraint(
            ["user_sub", "decision_id"],
            ["decisions.user_sub", "decisions.id"],
            name=op.f("decision_slots_user_sub_decision_id_fkey"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("user_sub", "decision_id", "place", name=op.f("decision_slots_pkey")),
    )
    op.create_index(
        op.f("decision_slots_user_sub_case_id_idx"), "decision_slots", ["user_sub", "case_id"], unique=False
    )
    op.create_table(
        "case_embeddings",
        sa.Column("user_sub", sa.Text(), nullable=False),
        sa.Column("agent_key", sa.Text(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("case_id", sa.Uuid(), nullable=False),
        sa.Column("dimension", sa.Integer(), nullable=False),
        sa.Column("embedding", vector_type(), nullable=False, comment="real[] where pgvector is missing"),
        sa.Column(
            "approximate", sa.Boolean(), server_default=sa.text("false"), nullable=False, comment="in the HNSW index"
        ),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.ForeignKeyConstraint(
            ["user_sub", "case_id"],
            ["cases.user_sub", "cases.id"],
            name=op.f("case_embeddings_user_sub_case_id_fkey"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("user_sub", "agent_key", "model", "case_id", name=op.f("case_embeddings_pkey")),
    )
    op.create_index(
        op.f("case_embeddings_user_sub_case_id_idx"), "case_embeddings", ["user_sub", "case_id"], unique=False
    )
    op.create_table(
        "procedures",
        sa.Column("user_sub", sa.Text(), nullable=False),
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("agent_key", sa.Text(), nullable=False),
        sa.Column("case_id", sa.Uuid(), nullable=True, comment="the run it was learned from"),
        sa.Column(
            "record",
            postgresql.JSONB(astext_type=sa.Text()),
            nullable=False,
            comment="procedure_name, semantic_description, …: the learned-procedure record",
        ),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.ForeignKeyConstraint(
            ["user_sub", "case_id"],
            ["cases.user_sub", "cases.id"],
            name=op.f("procedures_user_sub_case_id_fkey"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("user_sub", "id", "version", name=op.f("procedures_pkey")),
    )
    op.create_index(op.f("procedures_user_sub_case_id_idx"), "procedures", ["user_sub", "case_id"], unique=False)
    op.create_table(
        "rewards",
        sa.Column("user_sub", sa.Text(), nullable=False),
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("case_id", sa.Uuid(), nullable=True),
        sa.Column("decision_id", sa.Uuid(), nullable=True),
        sa.Column("reward", sa.REAL(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.CheckConstraint("source IN ('heuristic', 'user', 'judge', 'metric')", name=op.f("rewards_source_check")),
        sa.CheckConstraint("num_nonnulls(case_id, decision_id) = 1", name=op.f("rewards_one_subject_check")),
        sa.CheckConstraint("reward >= 0 AND reward <= 1", name=op.f("rewards_reward_check")),
        sa.ForeignKeyConstraint(
            ["user_sub", "case_id"],
            ["cases.user_sub", "cases.id"],
            name=op.f("rewards_user_sub_case_id_fkey"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["user_sub", "decision_id"],
            ["decisions.user_sub", "decisions.id"],
            name=op.f("rewards_user_sub_decision_id_fkey"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("user_sub", "id", name=op.f("rewards_pkey")),
    )
    op.create_index(op.f("rewards_user_sub_case_id_idx"), "rewards", ["user_sub", "case_id"], unique=False)
    op.create_index(op.f("rewards_user_sub_decision_id_idx"), "rewards", ["user_sub", "decision_id"], unique=False)
    op.execute(ENTER)
    forbid_strangers()
    open_the_queue()


def downgrade() -> None:
    op.execute("DROP FUNCTION casebank_enter")
    op.drop_index(op.f("rewards_user_sub_decision_id_idx"), table_name="rewards")
    op.drop_index(op.f("rewards_user_sub_case_id_idx"), table_name="rewards")
    op.drop_table("rewards")
    op.drop_index(op.f("procedures_user_sub_case_id_idx"), table_name="procedures")
    op.drop_table("procedures")
    op.drop_index(op.f("case_embeddings_user_sub_case_id_idx"), table_name="case_embeddings")
    op.drop_table("case_embeddings")
    op.drop_index(op.f("decision_slots_user_sub_case_id_idx"), table_name="decision_slots")
    op.drop_table("decision_slots")
    op.drop_index("cases_search_vector_idx", table_name="cases", postgresql_using="gin")
    op.drop_index("cases_queue_idx", table_name="cases", postgresql_where=sa.text("status = 'pending'"))
    op.drop_index("cases_bank_idx", table_name="cases")
    op.drop_table("cases")
    op.drop_table("user_keys")
    op.drop_table("profiles")
    op.drop_table("erasures")
    op.drop_table("decisions")
    op.drop_table("audit")

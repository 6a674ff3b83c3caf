"""Learned policies: what a decision must record to learn from it, and the heads that were learned.

Revision ID: 0003
Revises: 0002
Create Date: 2026-11-21 17:00:41.118804
"""

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

CURRENT_USER_SUB = "nullif(current_setting('app.user_sub', true), '')"
DIGEST = f"encode(sha256(convert_to({CURRENT_USER_SUB}, 'UTF8')), 'hex')"
OWN = f"user_sub = {CURRENT_USER_SUB}"
WEIGHED_IN = f"user_sub = '' AND {DIGEST} = ANY (contributors)"
LIVE = "status IN ('candidate', 'serving')"

# The rows of a shared prior belong to nobody: everybody may read them, for they hold content-free numbers; whoever
# weighed in on one may delete it, as an erasure does.
POLICIES = (
    "ALTER TABLE policies ENABLE ROW LEVEL SECURITY",
    "ALTER TABLE policies FORCE ROW LEVEL SECURITY",
    f"CREATE POLICY own_rows ON policies TO casebank_service USING ({OWN}) WITH CHECK ({OWN})",
    "CREATE POLICY shared_prior ON policies FOR SELECT TO casebank_service USING (user_sub = '')",
    f"CREATE POLICY contributor ON policies FOR DELETE TO casebank_service USING ({WEIGHED_IN})",
    "CREATE POLICY trainer ON policies TO casebank_worker USING (user_sub = '') WITH CHECK (user_sub = '')",
    "GRANT SELECT, INSERT, UPDATE, DELETE ON policies TO casebank_service",
    "GRANT SELECT, INSERT, DELETE ON policies TO casebank_worker",
    "GRANT SELECT (learning, share_prior) ON profiles TO casebank_worker",
)

# What older decisions lack: they were the default's, certain, and of an older version of the features.
DECISION_COLUMNS = (
    sa.Column("arm", sa.Text(), nullable=False, server_default="default"),
    sa.Column("k", sa.SmallInteger(), nullable=False, server_default="4"),
    sa.Column("min_similarity", sa.REAL(), nullable=True),
    sa.Column(
        "slate_propensity",
        sa.REAL(),
        nullable=False,
        server_default="1",
        comment="of the whole slate, over every arm and draw",
    ),
    sa.Column(
        "candidate_groups",
        sa.ARRAY(sa.SmallInteger()),
        nullable=False,
        server_default="{}",
        comment="candidates of one group say the same",
    ),
    sa.Column(
        "candidate_sources",
        sa.ARRAY(sa.SmallInteger()),
        nullable=False,
        server_default="{}",
        comment="one number for each source",
    ),
    sa.Column("query_model", sa.Text(), nullable=True),
    sa.Column("query_vector", sa.ARRAY(sa.REAL()), nullable=True, comment="in the space of query_model"),
)


def upgrade() -> None:
    for column in DECISION_COLUMNS:
        op.add_column("decisions", column)
        if column.server_default is not None:
            op.alter_column("decisions", column.name, server_default=None)
    op.execute(  # of version 1, which nothing reads any more; that a downgrade emptied is none of version 2, either
        "ALTER TABLE decisions ALTER features TYPE bytea USING ''::bytea, ALTER feature_version TYPE smallint USING 1"
    )
    op.execute("COMMENT ON COLUMN decisions.features IS 'float16, candidates x features of feature_version'")
    op.execute("COMMENT ON COLUMN decisions.scores IS 'what the arm ordered the candidates by'")
    op.create_check_constraint(op.f("decisions_arm_check"), "decisions", "arm IN ('default', 'serving', 'candidate')")
    op.create_check_constraint(
        op.f("decisions_slate_propensity_check"), "decisions", "slate_propensity > 0 AND slate_propensity <= 1"
    )
    op.create_index(
        "decisions_rewarded_idx",
        "decisions",
        ["user_sub", "agent_key", "id"],
        postgresql_where=sa.text("reward IS NOT NULL"),
    )
    op.add_column(
        "cases",
        sa.Column(
            "effects",
            sa.ARRAY(sa.Text()),
            nullable=False,
            server_default=sa.text("'{}'"),
            comment="tools that changed something, once for each time they succeeded; without traces the plan's steps",
        ),
    )
    op.add_column(
        "cases",
        sa.Column(
            "source",
            sa.Text(),
            nullable=False,
            server_default=sa.text("''"),
            comment="who wrote it: the actor of the retain",
        ),
    )
    op.add_column(
        "profiles",
        sa.Column(
            "learning",
            sa.Boolean(),
            nullable=False,
            server_default=sa.text("true"),
            comment="whether a policy is trained",
        ),
    )
    op.add_column(
        "profiles",
        sa.Column(
            "explore",
            sa.REAL(),
            nullable=False,
            server_default=sa.text("0.05"),
            comment="share of slates with a drawn place",
        ),
    )
    op.add_column(
        "profiles",
        sa.Column(
            "canary", sa.REAL(), nullable=False, server_default=sa.text("0.25"), comment="share of a policy on trial"
        ),
    )
    op.add_column(
        "profiles",
        sa.Column(
            "share_prior",
            sa.Boolean(),
            nullable=False,
            server_default=sa.text("false"),
            comment="numbers may train the prior",
        ),
    )
    op.create_check_constraint(op.f("profiles_explore_check"), "profiles", "explore >= 0 AND explore <= 1")
    op.create_check_constraint(op.f("profiles_canary_check"), "profiles", "canary >= 0 AND canary <= 0.9")
    op.create_table(
        "policies",
        sa.Column("user_sub", sa.Text(), nullable=False),
        sa.Column("agent_key", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("feature_version", sa.SmallInteger(), nullable=False),
        sa.Column("weights", sa.LargeBinary(), nullable=False, comment="safetensors"),
        sa.Column("checksum", sa.LargeBinary(), nullable=False, comment="sha256 of the weights"),
        sa.Column("blend", sa.REAL(), nullable=False, comment="weight of the learned part, n / (n + n0)"),
        sa.Column("decisions", sa.Integer(), nullable=False, comment="rewarded decisions it was trained on"),
        sa.Column(
            "metrics",
            postgresql.JSONB(astext_type=sa.Text()),
            nullable=False,
            comment="losses, calibration, the learning curve",
        ),
        sa.Column(
            "verdict",
            postgresql.JSONB(astext_type=sa.Text()),
            nullable=True,
            comment="of the gate, with every number and reason",
        ),
        sa.Column("prior_version", sa.Integer(), nullable=True, comment="the shared prior that it was shrunk to"),
        sa.Column(
            "contributors",
            sa.ARRAY(sa.Text()),
            nullable=True,
            comment="of a shared prior: sha256 of each user whose numbers it saw",
        ),
        sa.Column("promoted_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("retired_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.CheckConstraint(
            "status IN ('candidate', 'serving', 'retired', 'rolled_back', 'rejected', 'failed')",
            name=op.f("policies_status_check"),
        ),
        sa.CheckConstraint("blend >= 0 AND blend <= 1", name=op.f("policies_blend_check")),
        sa.CheckConstraint("(user_sub = '') = (contributors IS NOT NULL)", name=op.f("policies_contributors_check")),
        sa.PrimaryKeyConstraint("user_sub", "agent_key", "version", name=op.f("policies_pkey")),
    )
    op.create_index(
        "policies_live_idx",
        "policies",
        ["user_sub", "agent_key", "status"],
        unique=True,
        postgresql_where=sa.text(LIVE),
    )
    for statement in POLICIES:
        op.execute(statement)


def downgrade() -> None:
    op.drop_table("policies")
    for name in ("share_prior", "canary", "explore", "learning"):
        op.drop_column("profiles", name)
    op.drop_column("cases", "source")
    op.drop_column("cases", "effects")
    op.drop_index("decisions_rewarded_idx", table_name="decisions")
    for column in reversed(DECISION_COLUMNS):
        op.drop_column("decisions", column.name)
    op.execute("ALTER TABLE decisions ALTER features TYPE real[] USING '{}'::real[]")
    op.execute("COMMENT ON COLUMN decisions.features IS 'row-major, candidates x features of feature_version'")
    op.execute("COMMENT ON COLUMN decisions.scores IS 'what the policy ordered the candidates by'")

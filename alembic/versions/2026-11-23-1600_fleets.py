"""Fleets: what profiles give to one, whether they do and are served by it, and its policies' lives.

Revision ID: 0042
Revises: 0041
Create Date: 2026-11-23 16:00:00.000000
"""

import re

import sqlalchemy as sa

from alembic import op

revision = "0042"
down_revision = "0041"
branch_labels = None
depends_on = None

CURRENT_USER_SUB = "nullif(current_setting('app.user_sub', true), '')"
OWN = f"user_sub = {CURRENT_USER_SUB}"
DIGEST = f"encode(sha256(convert_to({CURRENT_USER_SUB}, 'UTF8')), 'hex')"
WEIGHED_IN = f"user_sub = '' AND {DIGEST} = ANY (contributors)"
EMPTIED = "user_sub = '' AND weights = '' AND checksum = '' AND contributors = '{}'"

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
        "contributions",
        sa.Column("user_sub", sa.Text(), nullable=False),
        sa.Column("agent_key", sa.Text(), nullable=False),
        sa.Column("feature_version", sa.SmallInteger(), nullable=False),
        sa.Column("decisions", sa.Integer(), nullable=False, comment="rewarded ones that are in it"),
        sa.Column("examples", sa.LargeBinary(), nullable=False, comment="safetensors: what training sees of them"),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.ForeignKeyConstraint(
            ["user_sub", "agent_key"],
            ["profiles.user_sub", "profiles.agent_key"],
            name=op.f("contributions_user_sub_agent_key_fkey"),
        ),
        sa.PrimaryKeyConstraint("user_sub", "agent_key", name=op.f("contributions_pkey")),
        comment="what profiles give to their fleet: the numbers of their latest rewarded decisions",
    )
    op.execute("ALTER TABLE contributions ENABLE ROW LEVEL SECURITY")
    op.execute("ALTER TABLE contributions FORCE ROW LEVEL SECURITY")
    op.execute(f"CREATE POLICY own_rows ON contributions TO casebank_service USING ({OWN}) WITH CHECK ({OWN})")
    op.execute("CREATE POLICY trainer ON contributions FOR SELECT TO casebank_worker USING (true)")
    op.execute("GRANT SELECT, INSERT, UPDATE, DELETE ON contributions TO casebank_service")
    op.execute("GRANT SELECT ON contributions TO casebank_worker")
    op.execute("ALTER TABLE contributions ALTER COLUMN examples SET STATISTICS 0")
    op.execute("ALTER TABLE contributions ALTER COLUMN examples SET STORAGE EXTERNAL")  # float16 compress badly
    # an erasure empties a fleet's policy of which the user was a part; it is trained again without
    op.execute(
        f"CREATE POLICY contributor_empties ON policies FOR UPDATE TO casebank_service"
        f" USING ({WEIGHED_IN}) WITH CHECK ({EMPTIED})"
    )
    op.execute("GRANT UPDATE ON policies TO casebank_worker")
    for name, comment in (
        ("contribute", "whether its numbers train the fleet; null: as the service has it"),
        ("receive", "whether the fleet's policy serves it; null: as the service has it"),
    ):
        op.add_column("profiles", sa.Column(name, sa.Boolean(), nullable=True, comment=comment))
    op.add_column(
        "profiles",
        sa.Column(
            "fleet_left_at",
            sa.DateTime(timezone=True),
            nullable=True,
            comment="of the fleet's policies, those since then serve it",
        ),
    )
    op.execute("ALTER TABLE profiles NO FORCE ROW LEVEL SECURITY")  # the owner writes everybody's
    op.execute("UPDATE profiles SET contribute = true WHERE share_prior")
    op.execute("ALTER TABLE profiles FORCE ROW LEVEL SECURITY")
    op.drop_column("profiles", "share_prior")
    op.execute("GRANT SELECT (contribute) ON profiles TO casebank_worker")
    op.execute(GATHER.format(tables=", ".join((*gathered(), "contributions"))))


def downgrade() -> None:
    op.execute(GATHER.format(tables=", ".join(table for table in gathered() if table != "contributions")))
    op.add_column(
        "profiles",
        sa.Column(
            "share_prior",
            sa.Boolean(),
            server_default=sa.text("false"),
            nullable=False,
            comment="numbers may train the prior",
        ),
    )
    op.execute("ALTER TABLE profiles NO FORCE ROW LEVEL SECURITY")
    op.execute("UPDATE profiles SET share_prior = true WHERE contribute")
    op.execute("ALTER TABLE profiles FORCE ROW LEVEL SECURITY")
    op.execute("GRANT SELECT (learning, share_prior) ON profiles TO casebank_worker")
    for name in ("fleet_left_at", "receive", "contribute"):
        op.drop_column("profiles", name)
    op.execute("REVOKE UPDATE ON policies FROM casebank_worker")
    op.execute("DROP POLICY contributor_empties ON policies")
    op.execute("ALTER TABLE policies NO FORCE ROW LEVEL SECURITY")
    op.execute("DELETE FROM policies WHERE user_sub = '' AND (agent_key <> '' OR status <> 'retired')")
    op.execute("ALTER TABLE policies FORCE ROW LEVEL SECURITY")
    op.drop_table("contributions")

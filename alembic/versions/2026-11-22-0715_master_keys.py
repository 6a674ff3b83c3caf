"""Which master key wrapped each user's key, so that no process works with another one, and it can be rotated.

Revision ID: 0013
Revises: 0010
Create Date: 2026-11-22 07:15:00.000000
"""

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from alembic import op

revision = "0013"
down_revision = "0010"
branch_labels = None
depends_on = None

OWN = "user_sub = nullif(current_setting('app.user_sub', true), '')"

# Of master keys here are only fingerprints. A user's transaction looks up by which one to wrap; the worker's role takes
# one over, and re-wraps: it sees how every user's key is wrapped, and changes it for the user that it entered as.
ACCESS = (
    "ALTER TABLE master_keys ENABLE ROW LEVEL SECURITY",
    "ALTER TABLE master_keys FORCE ROW LEVEL SECURITY",
    "CREATE POLICY worker ON master_keys TO casebank_worker USING (true) WITH CHECK (true)",
    "CREATE POLICY reader ON master_keys FOR SELECT TO casebank_service USING (true)",
    "GRANT SELECT, INSERT, UPDATE ON master_keys TO casebank_worker",
    "GRANT SELECT ON master_keys TO casebank_service",
    "CREATE POLICY rotation_looks ON user_keys FOR SELECT TO casebank_worker USING (true)",
    f"CREATE POLICY rotation_wraps ON user_keys FOR UPDATE TO casebank_worker USING ({OWN}) WITH CHECK ({OWN})",
    "GRANT SELECT ON user_keys TO casebank_worker",
    "GRANT UPDATE (wrapped_key, master_key) ON user_keys TO casebank_worker",
)
TAKE_BACK = (
    "REVOKE ALL ON user_keys FROM casebank_worker",
    "REVOKE ALL (wrapped_key, master_key) ON user_keys FROM casebank_worker",
    "DROP POLICY rotation_wraps ON user_keys",
    "DROP POLICY rotation_looks ON user_keys",
)


def upgrade() -> None:
    op.create_table(
        "master_keys",
        sa.Column("fingerprint", sa.Text(), nullable=False, comment="of the key, which stands nowhere in the database"),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("began_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column(
            "replaces",
            postgresql.ARRAY(sa.Text()),
            server_default=sa.text("'{}'"),
            nullable=False,
            comment="fingerprints of the keys that the rotation to this one takes out of use",
        ),
        sa.Column("rewrapped", sa.Integer(), server_default=sa.text("0"), nullable=False, comment="users' keys so far"),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True, comment="of the rotation to this key"),
        sa.CheckConstraint("status IN ('current', 'retiring', 'retired')", name=op.f("master_keys_status_check")),
        sa.PrimaryKeyConstraint("fingerprint", name=op.f("master_keys_pkey")),
        comment="by which keys the users' keys are wrapped; no user_sub, for nothing of any user may stand here",
    )
    op.create_index(
        "master_keys_current_idx",
        "master_keys",
        ["status"],
        unique=True,
        postgresql_where=sa.text("status = 'current'"),
    )
    op.add_column(
        "user_keys",
        sa.Column(
            "master_key",
            sa.Text(),
            nullable=True,
            comment="fingerprint of the master key that wrapped it; null: from before they were noted",
        ),
    )
    for statement in ACCESS:
        op.execute(statement)


def downgrade() -> None:
    for statement in TAKE_BACK:
        op.execute(statement)
    op.drop_column("user_keys", "master_key")
    op.drop_index("master_keys_current_idx", table_name="master_keys", postgresql_where=sa.text("status = 'current'"))
    op.drop_table("master_keys")

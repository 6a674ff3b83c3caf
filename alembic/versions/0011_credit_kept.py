"""Adds what cases and procedures earned by decisions that pruning deleted; the log no longer has these.

Also adds the index that finds the repeats of a case, whose rewards may prove the case.

Revision ID: 0011_credit_kept
Revises: 0010_checkpoint_size
"""

from alembic import op

revision = "0011_credit_kept"
down_revision = "0010_checkpoint_size"
branch_labels = None
depends_on = None

COLUMNS = {
    "cases.kept_count": "part of reuse_count from decisions that pruning deleted",
    "cases.kept_reward": "part of reuse_reward from these",
    "cases.kept_confirmed": "sum of the shares that count for the proof, from these",
    "cases.kept_earned": "reward that counts for the proof, from these",
    "procedures.kept_uses": "part of uses from decisions that pruning deleted",
    "procedures.kept_use_reward": "part of use_reward from these",
}


def upgrade() -> None:
    for name, comment in COLUMNS.items():
        table, column = name.split(".")
        op.execute(f"ALTER TABLE {table} ADD COLUMN {column} double precision NOT NULL DEFAULT 0")
        op.execute(f"COMMENT ON COLUMN {name} IS '{comment}'")
    op.execute("CREATE INDEX cases_merged_idx ON cases (user_sub, merged_into) WHERE merged_into IS NOT NULL")


def downgrade() -> None:
    op.execute("DROP INDEX cases_merged_idx")
    for name in COLUMNS:
        table, column = name.split(".")
        op.execute(f"ALTER TABLE {table} DROP COLUMN {column}")

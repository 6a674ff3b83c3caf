"""Which cases are proven: what others than the run itself said of them afterwards.

Revision ID: 0010
Revises: 0009
Create Date: 2026-11-22 07:30:00.000000
"""

import sqlalchemy as sa

from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

# As writer.rewards.proof has it, over the rewards and the log that there are.
JUDGED = """
UPDATE cases c SET proven = (judged.reward >= 0.5) <> (c.outcome IN ('failure', 'aborted'))
FROM (
    SELECT DISTINCT ON (user_sub, case_id) user_sub, case_id, reward FROM rewards
    WHERE case_id IS NOT NULL AND source <> 'heuristic' AND actor <> 'retain'
    ORDER BY user_sub, case_id, created_at DESC, id DESC
) judged
WHERE judged.user_sub = c.user_sub AND judged.case_id = c.id
"""
USED_WELL = """
UPDATE cases c SET proven = true
FROM (
    SELECT user_sub, case_id, sum(share) AS count, sum(share * reward) AS earned
    FROM (
        SELECT s.user_sub, s.case_id, d.reward, 1.0 / count(*) OVER (PARTITION BY s.user_sub, s.decision_id) AS share
        FROM decision_slots s JOIN decisions d ON d.user_sub = s.user_sub AND d.id = s.decision_id
        WHERE s.used AND d.reward IS NOT NULL AND d.reward_source <> 'heuristic'
    ) uses
    GROUP BY user_sub, case_id
) used
WHERE used.user_sub = c.user_sub AND used.case_id = c.id AND used.earned >= 0.5 AND used.earned >= 0.5 * used.count
    AND NOT EXISTS (
        SELECT FROM rewards r
        WHERE r.user_sub = c.user_sub AND r.case_id = c.id AND r.source <> 'heuristic' AND r.actor <> 'retain'
    )
"""
TABLES = ("cases", "rewards", "decisions", "decision_slots")


def upgrade() -> None:
    op.add_column(
        "cases",
        sa.Column(
            "proven",
            sa.Boolean(),
            server_default=sa.text("false"),
            nullable=False,
            comment="others than the run itself said, later, that it went as it claims",
        ),
    )
    for table in TABLES:  # for the owner, who fills every user's rows
        op.execute(f"ALTER TABLE {table} NO FORCE ROW LEVEL SECURITY")
    op.execute(JUDGED)
    op.execute(USED_WELL)
    for table in TABLES:
        op.execute(f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY")


def downgrade() -> None:
    op.drop_column("cases", "proven")

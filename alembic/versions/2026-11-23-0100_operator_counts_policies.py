"""An operator sees how many policies of all users have which status and verdict, and nothing else of them.

The worker's role still sees no user's policy: it asks a function, which runs as the owner and answers counts.

Revision ID: 0035
Revises: 0033
Create Date: 2026-11-23 01:00:00.000000
"""

from alembic import op

revision = "0035"
down_revision = "0033"
branch_labels = None
depends_on = None

COUNT = """
CREATE FUNCTION casebank_count_policies()
RETURNS TABLE (status text, verdict text, policies bigint, decisions double precision)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
    SELECT p.status::text, p.verdict ->> 'outcome', count(*), avg(p.decisions)::double precision
    FROM policies AS p
    WHERE p.user_sub <> ''  -- whose the shared prior is
    GROUP BY 1, 2
    ORDER BY 1, 2
$$
"""


def upgrade() -> None:
    op.execute("CREATE POLICY owner_counts ON policies FOR SELECT TO CURRENT_USER USING (true)")
    op.execute(COUNT)
    op.execute("REVOKE ALL ON FUNCTION casebank_count_policies() FROM PUBLIC")
    op.execute("GRANT EXECUTE ON FUNCTION casebank_count_policies() TO casebank_worker")


def downgrade() -> None:
    op.execute("DROP FUNCTION casebank_count_policies()")
    op.execute("DROP POLICY owner_counts ON policies")

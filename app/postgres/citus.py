"""Distributes the tables over the nodes of a Citus cluster, by user; may be repeated, and adds what is missing."""

import asyncpg

from app.postgres.errors import MigrationRefused
from app.postgres.migration_rights import ROLES
from app.postgres.pools import one_connection
from retrieval.tables.installation import rate_limits
from retrieval.tables.metadata import USER_TABLES

BY_USER = tuple(table.name for table in reversed(USER_TABLES) if table is not rate_limits)
"""Tables that are distributed by user, parents first. The limits stay on the coordinator: they count by its clock."""
EVERYWHERE = ("shared_knowledge", "shared_memories", "erasures")
"""Tables of which each node has a copy: statements on a shard read them. All others stay on the coordinator."""

DISTRIBUTED = "SELECT logicalrelid::text FROM pg_dist_partition"
_UNKNOWN_FUNCTIONS = """
SELECT oid::regprocedure::text FROM pg_proc
WHERE pronamespace = 'public'::regnamespace AND (proname LIKE 'casebank\\_%' OR proname LIKE 'hybrid\\_search\\_%')
    AND NOT EXISTS (SELECT FROM pg_dist_object WHERE classid = 'pg_proc'::regclass AND objid = pg_proc.oid)
"""
"""Selects the functions that only the coordinator has: Citus leaves out those that take the row of a table."""
_OF_COLUMNS = """
SELECT attrelid::regclass::text AS name, format(
    'GRANT %s (%s) ON %%s TO %I', privilege_type, string_agg(quote_ident(attname), ', '), grantee::regrole
) AS statement
FROM pg_attribute JOIN pg_dist_partition ON logicalrelid = attrelid CROSS JOIN aclexplode(attacl)
WHERE NOT attisdropped
GROUP BY attrelid, privilege_type, grantee
UNION ALL
SELECT attrelid::regclass::text, 'ALTER TABLE %s ' || string_agg(
    format('ALTER COLUMN %I SET STATISTICS %s', attname, attstattarget), ', '
)
FROM pg_attribute JOIN pg_dist_partition ON logicalrelid = attrelid
WHERE attstattarget >= 0 AND attnum > 0 AND NOT attisdropped
GROUP BY attrelid
ORDER BY 1, 2
"""
"""Selects what Citus does not take to shards: rights on single columns, and how much the planner may know of one."""

_RECEIPTS = """
DO $$ BEGIN
    SET LOCAL citus.enable_ddl_propagation = off;
    GRANT UPDATE ON erasures TO casebank_eraser;
END $$
"""
"""Gives the eraser, on the other nodes, the right to the whole table, which Citus wants before it locks the copies.

A statement comes to the coordinator, where the eraser may change the receipt alone.
"""
_COUNTED = """
DO $$ BEGIN
    GRANT SELECT (status, verdict, decisions) ON %1$s TO casebank_worker;
    DROP POLICY IF EXISTS counted ON %1$s;
    CREATE POLICY counted ON %1$s FOR SELECT TO casebank_worker USING (true);
END $$
"""
"""Lets the worker count policies on the nodes, where it stays the worker in a function that runs as the owner."""


async def distribute(url: str) -> list[str]:
    """Distributes the tables and gives each node what it needs; returns the tables that were not distributed before.

    The URL must log in as the owner of the tables, with a role that may log in to the other nodes. Each table is
    distributed in a transaction of its own; after an interruption, a repeat does the rest. Repeat it after a later
    revision, and after shards were moved: a moved shard lacks the rights on single columns.

    Raises:
        MigrationRefused: there is no cluster, or a node refused.
    """
    try:
        async with one_connection(url) as connection:
            return await _distribute(connection)
    except asyncpg.PostgresError as error:
        raise MigrationRefused(f"the cluster refused: {error}".splitlines()[0]) from error


async def _distribute(connection: asyncpg.Connection) -> list[str]:
    if not await connection.fetchval("SELECT count(*) FROM pg_extension WHERE extname = 'citus'"):
        raise MigrationRefused("the database has no extension citus: see docs/scale.md")
    there = {row[0] for row in await connection.fetch(DISTRIBUTED)}
    new = [name for name in (*EVERYWHERE, *BY_USER) if name not in there]
    # a trigger on a shard reads and writes rows of its user alone, which are on the same node
    await connection.execute("SET citus.enable_unsafe_triggers = on")
    for name in new:
        if name in EVERYWHERE:
            await connection.execute("SELECT create_reference_table($1::regclass)", name)
        else:
            beside = "none" if name == BY_USER[0] else BY_USER[0]
            await connection.execute(
                "SELECT create_distributed_table($1::regclass, 'user_sub', colocate_with => $2)", name, beside
            )
    for row in await connection.fetch(_UNKNOWN_FUNCTIONS):
        await connection.execute("SELECT create_distributed_function($1::regprocedure)", row[0])
    for role in ROLES:  # nodes connect to each other as the role that a statement has
        await connection.execute(f"ALTER ROLE {role} LOGIN")
    for row in await connection.fetch(_OF_COLUMNS):
        await _tell(connection, "run_command_on_placements($1::regclass, $2)", row["name"], row["statement"])
    await _tell(connection, "run_command_on_placements('policies', $1)", _COUNTED)
    await _tell(connection, "run_command_on_workers($1)", _RECEIPTS)
    setting = "SELECT format('ALTER DATABASE %I SET citus.propagate_set_commands = local', current_database())"
    await connection.execute(await connection.fetchval(setting))
    return new


async def _tell(connection: asyncpg.Connection, call: str, *arguments: str) -> None:
    """Runs a command on nodes.

    Raises:
        MigrationRefused: a node refused.
    """
    refusals = f"SELECT min(result) FROM {call} WHERE NOT success"  # noqa: S608 - our own words
    if refused := await connection.fetchval(refusals, *arguments):
        raise MigrationRefused(f"a node refused: {refused}")

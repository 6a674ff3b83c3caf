"""Distributes the tables over the nodes of a Citus cluster, by user; may be repeated, and adds what is missing."""

import asyncpg

from app.postgres.migrate import ROLES
from app.postgres.pools import one_connection
from app.postgres.revisions import MigrationRefused
from retrieval.patterns import read
from retrieval.tables.keys import rate_limits
from retrieval.tables.metadata import USER_TABLES

_SQL = read("app.postgres", "statements.toml")["citus"]

BY_USER = tuple(table.name for table in reversed(USER_TABLES) if table is not rate_limits)
"""Tables that are distributed by user, parents first. The limits stay on the coordinator: they count by its clock."""
EVERYWHERE = ("shared_knowledge", "shared_memories", "erasures")
"""Tables of which each node has a copy: statements on a shard read them. All others stay on the coordinator."""

DISTRIBUTED = "SELECT logicalrelid::text FROM pg_dist_partition"


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
    # else shared_memories, which refers to the first copied table, is made anew without its comments
    await connection.execute("SET citus.enable_local_reference_table_foreign_keys = off")
    for name in new:
        async with connection.transaction():
            await _distribute_table(connection, name)
    for row in await connection.fetch(_SQL["left_behind"], [*EVERYWHERE, *BY_USER]):  # the rows are on the shards
        await connection.execute("SELECT truncate_local_data_after_distributing_table($1::regclass)", row[0])
    for row in await connection.fetch(_SQL["unknown_functions"]):
        await connection.execute("SELECT create_distributed_function($1::regprocedure)", row[0])
    for role in ROLES:  # nodes connect to each other as the role that a statement has
        await connection.execute(f"ALTER ROLE {role} LOGIN")
    for row in await connection.fetch(_SQL["of_columns"]):
        await _tell(connection, "run_command_on_placements($1::regclass, $2)", row["name"], row["statement"])
    await _tell(connection, "run_command_on_placements('policies', $1)", _SQL["counted"])
    await _tell(connection, "run_command_on_workers($1)", _SQL["receipts"])
    setting = "SELECT format('ALTER DATABASE %I SET citus.propagate_set_commands = local', current_database())"
    await connection.execute(await connection.fetchval(setting))
    return new


async def _distribute_table(connection: asyncpg.Connection, name: str) -> None:
    """Distributes a table, with its rows as they are: within a transaction, in which the rows pass no trigger.

    The triggers would link the entries of the audit and the tombstones once more. Until the transaction ends, row-level
    security does not bind the owner either, who copies the rows of all users.
    """
    forced = await connection.fetchval("SELECT relforcerowsecurity FROM pg_class WHERE oid = $1::regclass", name)
    await connection.execute(f"ALTER TABLE {name} DISABLE TRIGGER USER")
    if forced:
        await connection.execute(f"ALTER TABLE {name} NO FORCE ROW LEVEL SECURITY")
    if name in EVERYWHERE:
        await connection.execute("SELECT create_reference_table($1::regclass)", name)
    else:
        beside = "none" if name == BY_USER[0] else BY_USER[0]
        await connection.execute(
            "SELECT create_distributed_table($1::regclass, 'user_sub', colocate_with => $2)", name, beside
        )
    if forced:
        await connection.execute(f"ALTER TABLE {name} FORCE ROW LEVEL SECURITY")
    await connection.execute(f"ALTER TABLE {name} ENABLE TRIGGER USER")


async def _tell(connection: asyncpg.Connection, call: str, *arguments: str) -> None:
    """Runs a command on nodes.

    Raises:
        MigrationRefused: a node refused.
    """
    refusals = f"SELECT min(result) FROM {call} WHERE NOT success"  # noqa: S608 - our own words
    if refused := await connection.fetchval(refusals, *arguments):
        raise MigrationRefused(f"a node refused: {refused}")

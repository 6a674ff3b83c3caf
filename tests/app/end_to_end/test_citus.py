"""What only a Citus cluster has: shards, nodes and what they are told. Other tests of a database run on it as well."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import asyncpg
import pytest
from sqlalchemy import text
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import DBAPIError

from alembic import command as alembic
from app.auth.tokens import OPERATOR
from app.main import create_app
from app.postgres.citus import BY_USER, EVERYWHERE, distribute
from app.postgres.migrate import migrate, with_alembic
from app.postgres.pools import dsn
from app.settings import Settings
from retrieval.database.fast_path import FastConnection
from retrieval.errors import DatabaseUnavailable
from retrieval.pages.statistics import policies_of_all
from tests.cluster import CITUS_URL, Cluster
from tests.conftest import new_database
from tests.policies import stored
from tests.processes import ran
from tests.service import AGENT, Service, User
from writer.audit.tombstone_chain import verify_tombstones
from writer.audit.verify import read_erasures, verify_user
from writer.rights.erase import erase
from writer.training import lifecycle

pytestmark = pytest.mark.skipif(CITUS_URL is None, reason="CASEBANK_TEST_CITUS names no cluster")

TURNS = [{"role": "user", "content": "I live in York. I am allergic to nuts."}]


MOVE = """
SELECT citus_move_shard_placement(s.shardid, s.nodename, s.nodeport, n.nodename, n.nodeport, 'block_writes')
FROM citus_shards AS s JOIN pg_dist_node AS n ON n.shouldhaveshards AND n.nodeport <> s.nodeport
WHERE s.table_name = 'cases'::regclass AND s.shardid = get_shard_id_for_distribution_column('cases', $1::text)
LIMIT 1
"""
"""Moves the rows of a user to another node."""


PLACE = """
SELECT p.shardid, n.nodename, n.nodeport FROM pg_dist_placement AS p JOIN pg_dist_node AS n USING (groupid)
WHERE p.shardid = get_shard_id_for_distribution_column('cases', $1::text) AND n.noderole = 'primary'
"""
"""Reads which shard has the cases of a user, and on which node it is."""


def command(service: Service, *words: str) -> str:
    settings = service.settings
    environment = {"DATABASE_URL": str(settings.database_url), "CASEBANK_MASTER_KEY": settings.master_key_bytes.hex()}
    return ran(settings.home, *words, **environment).stdout


async def as_owner(url: str, statement: str, *arguments: object) -> list[asyncpg.Record]:
    connection = await asyncpg.connect(dsn(url))
    try:
        return await connection.fetch(statement, *arguments)
    finally:
        await connection.close()


async def test_the_tables_of_a_distributed_bank_are_those_of_the_schema(database_url: str):
    await with_alembic(database_url, lambda _connection, config: alembic.check(config))


async def test_a_repeat_finds_nothing_to_distribute(database_url: str):
    assert await distribute(database_url) == []


@asynccontextmanager
async def served(url: str, home: Path) -> AsyncIterator[Service]:
    settings = Settings(
        home=home,
        database_url=url,
        jwt_secret="a secret of at least thirty-two bytes",
        master_key="5" * 64,
        explore=False,
    )
    app = create_app(settings)
    async with AsyncExitStack() as clients, app.router.lifespan_context(app):
        yield Service(app, settings, clients)


async def test_a_bank_that_has_rows_is_distributed_with_them_and_leaves_none_behind(postgres: Cluster, tmp_path: Path):
    name = await postgres.new(pgvector="auto", distributed=False)
    postgres.made.append(name)
    url = postgres.url(name)
    async with served(url, tmp_path) as before:
        alice, bob = await before.user("alice"), await before.user("bob")
        kept = await alice.retain("water the roses", plan=["open the valve"])
        await alice.retrieve("water the roses")
        await bob.retain("sweep the yard")
        await alice.settle()
        assert (await erase(before.runtime.database, "bob")).clean
        audit = await verify_user(before.runtime.database, "alice", await read_erasures(before.runtime.database))
    await as_owner(url, "CREATE TABLE theirs AS SELECT 1 AS number")
    await as_owner(url, "SELECT create_distributed_table('theirs', 'number')")
    assert set(await distribute(url)) == {*BY_USER, *EVERYWHERE}
    assert await distribute(url) == []
    sizes = "SELECT logicalrelid::text FROM pg_dist_partition WHERE pg_relation_size(logicalrelid) > 0"
    assert [row[0] for row in await as_owner(url, sizes)] == ["theirs"]  # another's table is left alone
    async with served(url, tmp_path) as after:
        database = after.runtime.database
        assert await verify_user(database, "alice", await read_erasures(database)) == audit
        assert audit.fault is None
        assert (await verify_tombstones(database)).fault is None
        alice = await after.user("alice")
        found = await alice.retrieve("roses")
        assert [slot["case_id"] for slot in found["cases"]] == [kept]
        await alice.retain("water the tulips")
        await alice.settle()
        assert (await verify_user(database, "alice", await read_erasures(database))).seq > audit.seq


def granting(statement: str) -> str:
    """The statement, as a revision runs it: Citus would refuse to pass it on."""
    return f"DO $$ BEGIN SET LOCAL citus.enable_ddl_propagation = off; {statement}; END $$"


async def test_a_distributed_bank_goes_down_to_the_baseline_and_up_again(postgres: Cluster):
    url = await new_database(postgres)
    await migrate(url, "0001_baseline")
    await migrate(url)
    await distribute(url)
    shards = (
        "SELECT DISTINCT result FROM run_command_on_placements('cases'::regclass,"
        " $$SELECT has_column_privilege('casebank_worker', '%s', 'updated_at', 'UPDATE')$$)"
    )
    assert [row["result"] for row in await as_owner(url, shards)] == ["t"]


async def test_a_later_revisions_rights_on_a_column_reach_the_shards(database_url: str):
    revoked = "REVOKE SELECT (kind) ON %s FROM casebank_eraser"
    await as_owner(database_url, "SELECT run_command_on_placements('cases'::regclass, $1)", revoked)
    await as_owner(database_url, granting("GRANT SELECT (kind) ON cases TO casebank_eraser"))
    shards = (
        "SELECT DISTINCT result FROM run_command_on_placements('cases'::regclass,"
        " $$SELECT has_column_privilege('casebank_eraser', '%s', 'kind', 'SELECT')$$)"
    )
    try:
        assert [row["result"] for row in await as_owner(database_url, shards)] == ["f"]
        await distribute(database_url)
        assert [row["result"] for row in await as_owner(database_url, shards)] == ["t"]
    finally:
        await as_owner(database_url, granting("REVOKE SELECT (kind) ON cases FROM casebank_eraser"))


async def test_no_samples_of_words_are_gathered_on_the_shards(database_url: str):
    shards = (
        "SELECT DISTINCT result FROM run_command_on_placements('cases'::regclass, $$SELECT string_agg(attname, ' '"
        " ORDER BY attname) FROM pg_attribute WHERE attrelid = '%s'::regclass AND attstattarget = 0 AND attnum > 0$$)"
    )
    (row,) = await as_owner(database_url, shards)
    assert {"task", "plan", "payload", "search_vector"} <= set(row["result"].split())


async def test_a_user_sees_their_own_rows_alone_and_nobody_sees_any_before_entering(alice: User, bob: User):
    await alice.retain("water the roses")
    await bob.retain("sweep the yard")
    database = alice.service.runtime.database
    seen = text("SELECT count(*) FROM cases WHERE user_sub IN (:alice, :bob)")
    both = {"alice": alice.name, "bob": bob.name}
    async with database.as_user(alice.name, datetime.now(UTC)) as connection:
        assert await connection.scalar(seen, both) == 1
    async with database.engine.begin() as connection:
        assert await connection.scalar(seen, both) == 0
    with pytest.raises(DBAPIError, match="row-level security"):
        async with database.as_user(bob.name, datetime.now(UTC)) as connection:
            await connection.execute(text("INSERT INTO profiles VALUES (:alice, 'operator')"), both)


async def test_the_triggers_of_a_shard_index_the_words_and_link_the_audit(alice: User):
    await alice.retain("water the roses")
    await alice.settle()
    (row,) = await alice.rows("SELECT search_text, search_vector FROM cases WHERE user_sub = :user_sub")
    assert row.search_text == ""
    assert "'rose'" in row.search_vector
    chain = await verify_user(
        alice.service.runtime.database, alice.name, await read_erasures(alice.service.runtime.database)
    )
    assert chain.fault is None
    assert chain.seq == len(await alice.rows("SELECT id FROM audit WHERE user_sub = :user_sub")) > 0


async def test_the_service_cannot_delete_an_entry_of_the_audit_on_a_shard(alice: User):
    await alice.retain("water the roses")
    await alice.settle()
    with pytest.raises(DBAPIError, match="append-only"):
        await alice.rows("DELETE FROM audit WHERE user_sub = :user_sub RETURNING id")
    with pytest.raises(DatabaseUnavailable, match="did not commit"):  # the node's own words are in its log
        await alice.rows("DELETE FROM audit_heads WHERE user_sub = :user_sub RETURNING seq")


async def test_an_erased_user_is_gone_from_every_node_and_refused(alice: User, bob: User, database_url: str):
    await alice.retain("water the roses")
    turns = {"agent": "operator", "turns": TURNS}
    assert (await alice.http.post("/v1/sessions/chat/turns", json=turns)).status_code == 200
    await alice.settle()
    receipt = await erase(alice.service.runtime.database, alice.name)
    assert receipt.clean
    assert receipt.rows["cases"] == 1
    stones = "SELECT count(*) FROM run_command_on_placements('erasures'::regclass, $1) WHERE result = '1'"
    of_theirs = f"SELECT count(*) FROM %s WHERE user_sub = '{receipt.user_digest}'"  # noqa: S608 - a digest
    nodes = await as_owner(database_url, "SELECT FROM pg_dist_node")
    assert (await as_owner(database_url, stones, of_theirs))[0]["count"] == len(nodes)
    answer = await alice.http.post("/v1/retain", json={"agent": "operator", "task": "again", "outcome": "success"})
    assert answer.status_code == 410
    await bob.retain("sweep the yard")


async def test_what_an_operator_runs_runs_on_a_cluster(service: Service, alice: User):
    await alice.retain("water the roses", plan=["open the valve"])
    found = await alice.retrieve("water the roses")
    await alice.feedback(retrieval_id=found["retrieval_id"], reward=1)
    await alice.settle()
    await asyncio.to_thread(command, service, "prune")
    await asyncio.to_thread(command, service, "train", "--user", alice.name, "--agent", "operator")
    exported = await asyncio.to_thread(command, service, "export", "--user", alice.name)
    assert "water the roses" in exported
    verified = json.loads(await asyncio.to_thread(command, service, "audit", "verify", "--user", alice.name, "--json"))
    assert verified["fault"] is None
    receipt = json.loads(await asyncio.to_thread(command, service, "purge", "--user", alice.name, "--yes", "--json"))
    assert receipt["clean"]
    assert receipt["rows"]["decisions"] == 1


async def test_the_policies_of_all_users_are_counted_on_every_node(service: Service, alice: User, bob: User):
    database = service.runtime.database

    async def counted() -> int:
        async with database.as_worker() as connection:
            return sum(row.policies for row in await connection.execute(policies_of_all()))

    before = await counted()
    for user in (alice, bob):
        await user.retain("water the roses")
        async with database.as_user(user.name, datetime.now(UTC)) as connection:
            await lifecycle.add(connection, user.name, AGENT, stored())
    assert await counted() == before + 2


async def test_the_doctor_finds_shards_that_were_moved_and_a_repeat_mends_them(
    service: Service, alice: User, database_url: str
):
    def cluster() -> dict[str, object]:
        report = json.loads(command(service, "doctor", "--json"))
        return next(finding for finding in report if finding["name"] == "cluster")

    await alice.retain("water the roses")
    assert (await asyncio.to_thread(cluster))["ok"]
    await as_owner(database_url, MOVE, alice.name)
    assert not (await asyncio.to_thread(cluster))["ok"]
    assert await alice.retain("water the tulips")
    await distribute(database_url)
    assert (await asyncio.to_thread(cluster))["ok"]
    await alice.settle()
    assert len(await alice.cases()) == 2


async def test_while_a_users_rows_are_moved_requests_are_answered_and_none_is_lost(alice: User, database_url: str):
    moving = asyncio.create_task(as_owner(database_url, MOVE, alice.name))
    kept = [await alice.retain("water the roses")]
    while not moving.done():
        kept.append(await alice.retain(f"water rose {len(kept)}"))
        await alice.retrieve("water the roses")
    assert len(await moving) == 1
    await distribute(database_url)
    await alice.settle()
    ready = "SELECT id FROM cases WHERE user_sub = :user_sub AND status = 'ready'"
    assert {str(row.id) for row in await alice.rows(ready)} == set(kept)


async def place_of(url: str, user: User) -> asyncpg.Record:
    (row,) = await as_owner(url, PLACE, user.name)
    return row


async def node_of(cluster: Cluster, url: str, user: User) -> URL:
    """The URL of the node that has the user's rows, with a database beside the bank."""
    place = await place_of(url, user)
    return next(node for node in cluster.nodes[1:] if (node.host, node.port) == (place["nodename"], place["nodeport"]))


async def users_of_two_nodes(url: str, service: Service) -> tuple[User, User]:
    one = another = await service.user()
    while (await place_of(url, another))["shardid"] == (await place_of(url, one))["shardid"]:
        another = await service.user()
    if (await place_of(url, another))["nodeport"] == (await place_of(url, one))["nodeport"]:
        await as_owner(url, MOVE, one.name)
        await distribute(url)
    return one, another


async def end_sessions(node: URL, database: str) -> None:
    ended = "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = $1"
    await as_owner(node.render_as_string(hide_password=False), ended, database)


@asynccontextmanager
async def down(node: URL, database: str) -> AsyncIterator[None]:
    """A node that ends all connections to the bank's database, and takes none."""
    url = node.render_as_string(hide_password=False)
    await as_owner(url, f"ALTER DATABASE {database} ALLOW_CONNECTIONS false")
    await end_sessions(node, database)
    try:
        yield
    finally:
        await as_owner(url, f"ALTER DATABASE {database} ALLOW_CONNECTIONS true")


async def test_while_a_node_is_down_its_users_are_told_to_come_back_and_the_others_are_served(
    postgres: Cluster, service: Service, database_url: str
):
    alice, bob = await users_of_two_nodes(database_url, service)
    kept = {user.name: [await user.retain("water the roses")] for user in (alice, bob)}
    operator = await service.http(service.token("operator", scope=OPERATOR))
    run = {"agent": AGENT, "task": "water the tulips", "outcome": "success"}
    async with down(await node_of(postgres, database_url, alice), str(make_url(database_url).database)):
        for path, body in (("/v1/retain", run), ("/v1/retrieve", {"agent": AGENT, "query": "water the roses"})):
            refused = await alice.http.post(path, json=body)
            assert (refused.status_code, refused.json()["type"]) == (503, "urn:casebank:problem:database-unavailable")
            assert refused.headers["Retry-After"] == "1"
        kept[bob.name].append(await bob.retain("sweep the yard"))
        await bob.retrieve("water the roses")
        ready = await operator.get("/readyz")
        assert (ready.status_code, ready.json()) == (
            200,
            {"status": "ok", "detail": "a node of the cluster does not answer"},
        )
    assert "queue" in (await operator.get("/readyz")).json()
    kept[alice.name].append(await alice.retain("water the lilies"))
    for user in (alice, bob):
        await user.settle()
        ids = "SELECT id FROM cases WHERE user_sub = :user_sub AND status = 'ready'"
        assert {str(row.id) for row in await user.rows(ids)} == set(kept[user.name])


@pytest.mark.parametrize("fast", [False, True])
async def test_a_node_that_fails_before_it_commits_is_a_reason_to_try_again(
    postgres: Cluster, alice: User, database_url: str, *, fast: bool
):
    await alice.retain("water the roses")
    database, node = alice.service.runtime.database, await node_of(postgres, database_url, alice)
    change = f"UPDATE profiles SET agent_key = agent_key WHERE user_sub = '{alice.name}'"  # noqa: S608 - a made-up name
    opened = database.fast if fast else database.as_user

    async def changed() -> None:
        async with opened(alice.name, datetime.now(UTC)) as connection:
            if isinstance(connection, FastConnection):
                await connection.driver.execute(change)
            else:
                await connection.execute(text(change))
            await end_sessions(node, str(make_url(database_url).database))

    with pytest.raises(DatabaseUnavailable, match="did not commit"):
        await changed()
    assert await alice.retain("water the tulips")

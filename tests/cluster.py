"""Databases on the nodes of a Citus cluster, each under one name on all of them."""

import os
from dataclasses import dataclass, field
from uuid import uuid4

import asyncpg
import pytest
from sqlalchemy.engine import URL, make_url

from app.postgres.citus import distribute
from app.postgres.migrate import migrate

CITUS_URL = os.environ.get("CASEBANK_TEST_CITUS")
"""URL of a database on the coordinator of a Citus cluster, as a superuser; None: none is at hand.

The database has the extension citus and knows the nodes. Tests make databases of their own beside it.
"""
one_postgres = pytest.mark.skipif(CITUS_URL is not None, reason="it is about one Postgres, not about a cluster")
"""Marks what a cluster does not have, or has of its own."""
OF_ONE_POSTGRES = (
    "tests/app/backup",
    "tests/app/demo",
    "tests/app/doctor",
    "tests/app/postgres",
    "tests/bench",
    "tests/deploy",
)
"""Folders whose tests all have that mark: of a server of its own, or of one machine."""


@dataclass(frozen=True)
class Cluster:
    """A Citus cluster: the URLs of its nodes, the coordinator first, and the databases that were made on it."""

    nodes: tuple[URL, ...]
    made: list[str] = field(default_factory=list, compare=False)

    def url(self, database: str | None = None, role: str | None = None) -> str:
        """Returns the coordinator's URL of the database."""
        url = self.nodes[0].set(database=database or self.nodes[0].database, username=role or self.nodes[0].username)
        return url.update_query_dict({"citus": "true"}).render_as_string(hide_password=False)

    async def new(self, *, pgvector: str, distributed: bool = True) -> str:
        """Creates a migrated database, whose tables are distributed if nothing else is said, and returns its name."""
        name = f"t{uuid4().hex}"
        await self._everywhere(f"CREATE DATABASE {name}")
        extensions = "CREATE EXTENSION citus" + ("" if pgvector == "off" else "; CREATE EXTENSION vector")
        await self._everywhere(extensions, database=name)
        coordinator = await _connected(self.nodes[0].set(database=name))
        try:
            await coordinator.execute(
                f"SELECT citus_set_coordinator_host('{self.nodes[0].host}', {self.nodes[0].port})"
            )
            for node in self.nodes[1:]:
                await coordinator.execute(f"SELECT citus_add_node('{node.host}', {node.port})")
        finally:
            await coordinator.close()
        await migrate(self.url(name), pgvector=pgvector)
        if distributed:
            await distribute(self.url(name))
        return name

    async def copy(self, template: str) -> str:
        """Copies the database, to which nobody connects any more, and returns the copy's name."""
        name = f"t{uuid4().hex}"
        self.made.append(name)
        # a process of Citus keeps a connection to each database
        await self._everywhere(f"ALTER DATABASE {template} ALLOW_CONNECTIONS false")
        closed = f"SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = '{template}'"  # noqa: S608
        await self._everywhere(closed)
        await self._everywhere(f"CREATE DATABASE {name} TEMPLATE {template}")
        # distribute() sets it, and a copy has no settings
        await self._everywhere(f"ALTER DATABASE {name} SET citus.propagate_set_commands = local")
        return name

    async def drop(self, *names: str) -> None:
        """Drops databases."""
        for name in names:
            await self._everywhere(f"DROP DATABASE {name} WITH (FORCE)")

    async def _everywhere(self, statement: str, *, database: str | None = None) -> None:
        for node in self.nodes:
            connection = await _connected(node.set(database=database or node.database))
            try:
                await connection.execute(statement)
            finally:
                await connection.close()


async def cluster_of(url: str) -> Cluster:
    """Returns the cluster of whose coordinator the URL names a database."""
    coordinator = await _connected(make_url(url))
    try:
        nodes = await coordinator.fetch("SELECT nodename, nodeport FROM pg_dist_node ORDER BY groupid")
    finally:
        await coordinator.close()
    return Cluster(tuple(make_url(url).set(host=node["nodename"], port=node["nodeport"]) for node in nodes))


async def _connected(url: URL) -> asyncpg.Connection:
    return await asyncpg.connect(url.render_as_string(hide_password=False))

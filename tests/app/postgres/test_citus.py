"""Which tables are distributed over a cluster, and in which order; what a cluster makes of them is in end_to_end."""

import pytest

from app.postgres.citus import BY_USER, EVERYWHERE, distribute
from app.postgres.revisions import MigrationRefused
from retrieval.tables.metadata import metadata


def test_a_table_is_distributed_after_those_that_it_refers_to():
    distributed = [*EVERYWHERE, *BY_USER]
    for name in distributed:
        parents = {key.column.table.name for key in metadata.tables[name].foreign_keys} - {name}
        assert parents <= set(distributed[: distributed.index(name)])


async def test_a_database_without_the_extension_is_left_as_it_is(database_url: str):
    with pytest.raises(MigrationRefused, match="no extension citus"):
        await distribute(database_url)

"""Reads a schema from PostgreSQL's catalogues, to compare two databases object by object and not as text."""

import asyncpg

from tests.paths import ROOT

Catalog = dict[str, tuple[object, ...]]
"""Definition of each object, by its kind and name."""

QUERIES = dict(each.split("\n", 1) for each in (ROOT / "tests" / "catalog.sql").read_text()[3:].split("\n\n-- "))
"""The query of each kind of object, which answers the object's name first and then its definition."""


async def catalog(connection: asyncpg.Connection) -> Catalog:
    """Reads the definition of every object that comes neither with PostgreSQL nor with an extension."""
    return {
        f"{kind} {name}": tuple(definition)
        for kind, query in QUERIES.items()
        for name, *definition in await connection.fetch(query)
    }


def differences(one: Catalog, other: Catalog) -> dict[str, tuple[object, object]]:
    """Returns both definitions of each object that the databases define differently; None where it is missing."""
    return {
        name: (one.get(name), other.get(name))
        for name in sorted(one.keys() | other.keys())
        if one.get(name) != other.get(name)
    }

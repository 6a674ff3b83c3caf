"""References to rows that go: whoever deletes rows clears them first, in the same transaction.

The database refuses a deletion that leaves a reference. It does not clear the reference by itself, for a table that is
distributed over machines cannot: a statement that names the user does.
"""

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import Table, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from retrieval.tables.cases import cases
from retrieval.tables.decisions import decisions
from retrieval.tables.facts import facts
from retrieval.tables.failures import advice
from retrieval.tables.runs import runs
from retrieval.tables.sessions import sessions

REFERENCES = {
    cases: (runs.c.case_id, facts.c.case_id),
    decisions: (cases.c.retrieval_id,),
    facts: (facts.c.superseded_by,),
    sessions: (advice.c.session_id, cases.c.session_id, facts.c.session_id),
}
"""Columns that become null when the row of the table that they name is deleted."""


async def clear_references(table: Table, connection: AsyncConnection, user_sub: str, ids: Sequence[UUID]) -> None:
    """Sets every reference to these rows of the user to null; call it before the rows are deleted.

    Locks the rows, so that no other transaction refers to them until this one has deleted them.

    Args:
        table: a key of ``REFERENCES``.
        connection: a transaction as the user.
        user_sub: the user.
        ids: the rows that are about to go.
    """
    rows = select(table.c.id).where(table.c.user_sub == user_sub, table.c.id.in_(ids)).order_by(table.c.id)
    await connection.execute(rows.with_for_update())
    for column in REFERENCES[table]:
        referring = update(column.table).where(column.table.c.user_sub == user_sub, column.in_(ids))
        await connection.execute(referring.values({column.name: None}))

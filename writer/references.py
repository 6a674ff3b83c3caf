"""Clears the references to rows that are about to be deleted, in the same transaction.

The database refuses to delete a row that another row refers to. It cannot clear the reference by itself, because a
table that is distributed over machines needs a statement that names the user.
"""

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import Table, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from retrieval.tables.cases import cases
from retrieval.tables.decisions import decisions
from retrieval.tables.failures import advice
from retrieval.tables.memories import facts
from retrieval.tables.runs import runs
from retrieval.tables.sessions import sessions

REFERENCES = {
    cases: (runs.c.case_id, facts.c.case_id),
    decisions: (cases.c.retrieval_id,),
    facts: (facts.c.superseded_by,),
    sessions: (advice.c.session_id, cases.c.session_id, facts.c.session_id),
}
"""Columns that refer to each table's rows, and become null when the row is deleted."""


async def clear_references(table: Table, connection: AsyncConnection, user_sub: str, ids: Sequence[UUID]) -> None:
    """Sets every reference to these rows of the user to null; call it before deleting the rows.

    Locks the rows, so that no other transaction refers to them until this one has deleted them.
    """
    rows = select(table.c.id).where(table.c.user_sub == user_sub, table.c.id.in_(ids)).order_by(table.c.id)
    await connection.execute(rows.with_for_update())
    for column in REFERENCES[table]:
        referring = update(column.table).where(column.table.c.user_sub == user_sub, column.in_(ids))
        await connection.execute(referring.values({column.name: None}))

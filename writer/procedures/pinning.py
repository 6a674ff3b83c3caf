"""Changes of procedure versions by a person: pin, unpin and retire; each change is noted in the audit."""

from uuid import UUID

from sqlalchemy import update
from sqlalchemy.ext.asyncio import AsyncConnection

from retrieval.errors import NotFound
from retrieval.tables.procedures import procedures
from writer.audit import Change, note
from writer.author import Author
from writer.procedures.versions import StoredVersion, locked_versions, version_update


async def pin(connection: AsyncConnection, author: Author, procedure_id: UUID, version: int, *, pinned: bool) -> None:
    """Pins a version of a procedure, so that it is active and no revision replaces it, or unpins it.

    Raises:
        NotFound: the user has no such version.
    """
    rows = await locked_versions(connection, author.user_sub, procedure_id)
    row = next((row for row in rows if row.version == version), None)
    if row is None:
        raise NotFound("no such version of a procedure")
    if pinned:
        mine = procedures.c.user_sub == author.user_sub, procedures.c.id == procedure_id
        others = update(procedures).where(*mine, procedures.c.version != version)
        await connection.execute(others.where(procedures.c.status == "active").values(status="superseded"))
        await connection.execute(others.values(pinned=False))
    values = {"pinned": True, "status": "active"} if pinned else {"pinned": False}
    await connection.execute(version_update(author.user_sub, procedure_id, version).values(values))
    await note(connection, _change(author, row, "pin_procedure" if pinned else "unpin_procedure", version))


async def retire(connection: AsyncConnection, author: Author, procedure_id: UUID) -> int:
    """Retires the active version of a procedure and returns its number; later runs do not learn the procedure again.

    Raises:
        NotFound: the user has no such procedure, or no version of it is active.
    """
    rows = await locked_versions(connection, author.user_sub, procedure_id)
    row = next((row for row in rows if row.status == "active"), None)
    if row is None:
        raise NotFound("no such procedure, or no version of it is active")
    gone = version_update(author.user_sub, procedure_id, row.version)
    await connection.execute(gone.values(status="retired", pinned=False))
    await note(connection, _change(author, row, "retire_procedure", row.version))
    return row.version


def _change(author: Author, row: StoredVersion, action: str, version: int) -> Change:
    return Change.of((author.user_sub, row.agent_key), author.actor, action, row.id, version=version)

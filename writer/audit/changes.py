"""Changes and their audit entries, which are written in the transaction of the change."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Self
from uuid import UUID

import uuid_utils.compat as uuids
from sqlalchemy import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from retrieval.tables.audit import audit
from writer.audit.signing import AuditKey, key_of

_WAITING = "casebank_changes"
"""Key in ``connection.info`` of the changes that wait for the end of a block of ``noted_together``."""


@dataclass(frozen=True, slots=True)
class Change:
    """A change of a user's data, for the audit.

    Attributes:
        owner: the user and the agent; None in place of the agent for a change of all of the user's data.
        actor: the user, operator or process that made the change.
        action: name of the change, such as "add_procedure".
        subject_id: id of the changed row; None without one.
    """

    owner: tuple[str, str | None]
    actor: str
    action: str
    subject_id: UUID | None
    payload: Mapping[str, object]

    @classmethod
    def of(
        cls, owner: tuple[str, str | None], actor: str, action: str, subject_id: UUID | None = None, **payload: object
    ) -> Self:
        """Builds a change, with the keyword arguments as the payload."""
        return cls(owner, actor, action, subject_id, payload)

    def entry(self, key: AuditKey | None) -> dict[str, object]:
        """Returns the columns of a new audit entry for the change, signed if a key is passed."""
        user_sub, agent_key = self.owner
        of_user = {"id": uuids.uuid7(), "user_sub": user_sub, "agent_key": agent_key, "actor": self.actor}
        columns = of_user | {"action": self.action, "subject_id": self.subject_id, "payload": self.payload}
        return {**columns, "mac": None if key is None else key.entry(columns)}


@asynccontextmanager
async def noted_together(connection: AsyncConnection) -> AsyncIterator[None]:
    """Collects the changes that the block notes, and adds their audit entries at its end in one statement."""
    info = connection.info  # a connection that broke, or whose statement was cancelled, has none later
    info[_WAITING] = waiting = list[Change]()
    try:
        yield
    finally:
        del info[_WAITING]  # the connection goes back to its pool
    await note(connection, *waiting)


async def note(connection: AsyncConnection, *changes: Change) -> None:
    """Adds an audit entry for each change; the entries join the user's chain when the user's transaction commits."""
    if (waiting := connection.info.get(_WAITING)) is not None:
        waiting += changes
    elif changes:
        key = key_of(connection)
        await connection.execute(insert(audit), [change.entry(key) for change in changes])

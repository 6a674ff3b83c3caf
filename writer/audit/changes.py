"""A change and its entry, which is written in the change's own transaction."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Self
from uuid import UUID

import uuid_utils.compat as uuids
from sqlalchemy import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from retrieval.tables.audit import audit
from writer.audit.signing import AuditKey, key_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What was changed, whose it is, and who did it."""

    user_sub: str
    agent_key: str | None
    actor: str
    action: str
    subject_id: UUID | None = None
    payload: Mapping[str, object] = field(default_factory=dict)

    @classmethod
    def of(
        cls, owner: tuple[str, str | None], actor: str, action: str, subject_id: UUID | None = None, **payload: object
    ) -> Self:
        """Returns the change of a subject that belongs to this user and agent, with its details as the payload."""
        user_sub, agent_key = owner
        return cls(
            user_sub=user_sub,
            agent_key=agent_key,
            actor=actor,
            action=action,
            subject_id=subject_id,
            payload=payload,
        )

    def entry(self, key: AuditKey | None) -> dict[str, object]:
        """Returns the columns of a new entry, signed if there is a key."""
        # not asdict: it copies the payload, which takes a tenth of a retain
        columns: dict[str, object] = {"id": uuids.uuid7()} | {
            each.name: getattr(self, each.name) for each in fields(self)
        }
        return {**columns, "mac": None if key is None else key.entry(columns)}


async def note(connection: AsyncConnection, *changes: Change) -> None:
    """Adds an entry for each change; the connection is the user's. It joins the user's chain when that commits."""
    if changes:
        key = key_of(connection)
        await connection.execute(insert(audit), [change.entry(key) for change in changes])

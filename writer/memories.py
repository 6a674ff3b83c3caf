"""Makes turns, facts and knowledge findable: by words at once, and by vector once the worker has embedded them."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import uuid_utils.compat as uuids
from sqlalchemy import ARRAY, Uuid, any_, delete, insert, literal
from sqlalchemy.ext.asyncio import AsyncConnection

from policy.channels import searchable
from retrieval.sessions.messages import SessionTurn
from retrieval.tables.memories import memories
from retrieval.text import with_parts
from writer.storable import storable

MAX_CHARS = 8_192
"""Maximum number of characters of a text that are indexed and embedded."""


def text_of_turn(message: Mapping[str, Any]) -> str:
    """Returns a turn's text for search, as "speaker: content and calls"; empty for a turn without content."""
    turn = SessionTurn(0, datetime.now(UTC), message)
    text = turn.text.strip()
    return searched(f"{message.get('name') or turn.role}: {text}") if text else ""


def searched(text: str) -> str:
    """Returns the part of a text that is indexed and embedded: its first MAX_CHARS characters."""
    return text[:MAX_CHARS]


def search_text(text: str) -> str:
    """Returns the text whose words are indexed: of the first MAX_CHARS characters, with the parts of compound names."""
    return searchable(with_parts(storable(searched(text))))


async def remember_turns(
    connection: AsyncConnection, user_sub: str, agent_key: str, session_id: UUID, texts: Mapping[int, str]
) -> None:
    """Inserts search entries for the turns of a session; ``texts`` has each turn's ``search_text`` by its number.

    A turn with an empty text gets no entry.
    """
    rows = [
        {**_row(user_sub, agent_key, text), "kind": "turn", "session_id": session_id, "turn_number": number}
        for number, text in texts.items()
        if text
    ]
    if rows:
        await connection.execute(insert(memories), rows)


async def remember_facts(connection: AsyncConnection, user_sub: str, facts: Sequence[tuple[str, UUID, str]]) -> None:
    """Inserts the search entries of facts, each given by its agent, its id and its text."""
    rows = [
        {**_row(user_sub, agent_key, search_text(text)), "kind": "fact", "fact_id": fact_id}
        for agent_key, fact_id, text in facts
    ]
    await connection.execute(insert(memories), rows)


async def remember_knowledge(connection: AsyncConnection, user_sub: str, texts: Mapping[tuple[str, UUID], str]) -> None:
    """Replaces the texts by which entries of knowledge are found; ``texts`` has each by the entry's agent and id."""
    ids = any_(literal([entry_id for _, entry_id in texts], ARRAY(Uuid)))
    await connection.execute(delete(memories).where(memories.c.user_sub == user_sub, memories.c.knowledge_id == ids))
    rows = [
        {**_row(user_sub, agent_key, search_text(text)), "kind": "knowledge", "knowledge_id": entry_id}
        for (agent_key, entry_id), text in texts.items()
    ]
    await connection.execute(insert(memories), rows)


def _row(user_sub: str, agent_key: str, text: str) -> dict[str, object]:
    return {"user_sub": user_sub, "id": uuids.uuid7(), "agent_key": agent_key, "search_text": text}

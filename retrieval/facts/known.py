"""Writes the lines about the user in a context: the facts that hold, goals first, within a limit of tokens."""

from collections.abc import Collection
from datetime import datetime
from typing import Protocol
from uuid import UUID

from sqlalchemy import ColumnElement, case, func, literal_column, select

from retrieval.database.fast_path import FastConnection, FastStatement
from retrieval.database.parameters import AGENT_KEY, USER_SUB, may_enter
from retrieval.facts.listing import holds
from retrieval.sealed import SealOf
from retrieval.sections.quotes import Quotes
from retrieval.sections.quoting import quoted
from retrieval.tables.facts import facts
from retrieval.tables.kinds import FactKind, Speaker
from retrieval.tokens import count_tokens

MOST = 50
"""Largest number of facts that are read for one context."""


class FactRow(Protocol):
    """A fact about the user that holds now."""

    id: UUID
    kind: FactKind
    words: bytes
    key_id: UUID
    said_by: Speaker
    valid_from: datetime
    holding: int
    """Number of all facts of the profile that hold now."""


async def known_of_user(
    connection: FastConnection,
    agent_key: str,
    room: int,
    seal_of: SealOf,
    recalled: Collection[UUID] = (),
) -> Quotes | None:
    """Returns the lines about the user that fit into ``room``; None: the profile has no fact that holds.

    Facts in ``recalled`` are left out, because the context already has them from a recall.

    Raises:
        SealBroken: a fact was sealed with another key, or was changed.
    """
    rows = await connection.all(_KNOWN, {"agent_key": agent_key})
    if not rows:
        return None
    seal = await seal_of(connection, rows[0].key_id)
    lines: list[str] = []
    for row in rows:
        if row.id in recalled:
            continue
        line = line_of_fact(row.kind, seal.open("fact", row.words, row.id)["text"], row.valid_from, row.said_by)
        room -= count_tokens(line + "\n")
        if room < 0:
            break
        lines.append(line)
    return Quotes(lines, len(lines), rows[0].holding - len(lines) - len(recalled))


def line_of_fact(kind: FactKind, text: str, since: datetime, said_by: Speaker) -> str:
    """Returns a fact as one line: its text, quoted, the day since which it holds, and its speaker if not the user."""
    by = "" if said_by == "user" else f", said by the {said_by}"
    return f"[{kind}] {quoted(text)} (since {since.date().isoformat()}{by})"


_ORDER: dict[FactKind, int] = {"goal": 0, "preference": 1, "fact": 2, "event": 3}
_KINDS: list[tuple[ColumnElement[bool], ColumnElement[int]]] = [
    (facts.c.kind == literal_column(f"'{kind}'"), literal_column(str(place))) for kind, place in _ORDER.items()
]
_KNOWN: FastStatement[FactRow] = FastStatement.of(
    select(
        *(facts.c[name] for name in ("id", "kind", "words", "key_id", "said_by", "valid_from")),
        func.count().over().label("holding"),
    )
    .where(may_enter(), facts.c.user_sub == USER_SUB, facts.c.agent_key == AGENT_KEY, *holds())
    .order_by(case(*_KINDS), facts.c.last_told_at.desc(), facts.c.id.desc())
    .limit(literal_column(str(MOST)))
)

"""Facts about a user: those that hold at a time, those to rank; and the text of an entry of knowledge."""

from collections.abc import Collection, Mapping
from datetime import datetime
from uuid import UUID

from sqlalchemy import ColumnElement, func, or_

from retrieval.database.rows import Rows
from retrieval.pages.listing import shown
from retrieval.tables.kinds import FactKind
from retrieval.tables.memories import facts


def facts_to_rank(
    user_sub: str, agent_key: str, kinds: Collection[FactKind], first: Collection[UUID], limit: int
) -> Rows:
    """Returns the statement for at most ``limit`` facts of these kinds that hold now.

    The facts with the ids ``first`` come first, then goals and preferences, and of each the newest.
    """
    mine = facts.c.user_sub == user_sub, facts.c.agent_key == agent_key, facts.c.kind.in_(kinds)
    is_first, is_wish = facts.c.id.in_(first), facts.c.kind.in_(("goal", "preference"))
    return shown(facts).where(*mine, *holds()).order_by(is_first.desc(), is_wish.desc(), facts.c.id.desc()).limit(limit)


def holds(at: datetime | ColumnElement[datetime] | None = None) -> tuple[ColumnElement[bool], ...]:
    """Returns the conditions that select the facts that hold at a time; None: now."""
    time = func.now() if at is None else at
    return facts.c.valid_from <= time, or_(facts.c.valid_to.is_(None), facts.c.valid_to > time)


def text_of(said: Mapping[str, str]) -> str:
    """Returns the text of an entry of knowledge, below its title if it has one."""
    return f"{said['title']}\n{said['text']}" if said["title"] else said["text"]

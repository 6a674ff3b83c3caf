"""Statements that read facts about a user (those that hold now, or held at a time, or all) and entries of knowledge."""

from collections.abc import Collection, Mapping
from datetime import datetime
from uuid import UUID

from sqlalchemy import ColumnElement, func, or_, select

from retrieval.database.rows import Rows
from retrieval.pages.listing import paged
from retrieval.tables.columns import columns_of
from retrieval.tables.kinds import FactKind
from retrieval.tables.memories import facts, knowledge, shared_knowledge
from retrieval.tables.sessions import sessions

_SHOWN = """
id agent_key kind category words about_from about_to origin said_by turn_number case_id told last_told_at valid_from
valid_to superseded_by created_at
"""
"""Columns of a fact that are shown; its keyed hashes are not among them."""


def _facts() -> Rows:
    name = select(sessions.c.name).where(sessions.c.user_sub == facts.c.user_sub, sessions.c.id == facts.c.session_id)
    return select(*columns_of(facts, _SHOWN), name.scalar_subquery().label("session_id"))


def one_fact(user_sub: str, fact_id: UUID) -> Rows:
    """Returns the statement for the fact with this id."""
    return _facts().where(facts.c.user_sub == user_sub, facts.c.id == fact_id)


def page_of_facts(
    user_sub: str, only: Mapping[str, object], *held: ColumnElement[bool], before: UUID | None, limit: int
) -> Rows:
    """Returns the statement for the newest ``limit`` facts older than ``before``; ids rise with time (UUIDv7).

    ``only`` has, by column, the values that a fact must have (None: any value); ``held`` are conditions of ``holds``.
    """
    return paged(_facts().where(*held), facts, {"user_sub": user_sub, **only}, before, limit)


def facts_to_rank(
    user_sub: str, agent_key: str, kinds: Collection[FactKind], first: Collection[UUID], limit: int
) -> Rows:
    """Returns the statement for at most ``limit`` facts of these kinds that hold now.

    The facts with the ids ``first`` come first, then goals and preferences, and of each the newest.
    """
    mine = facts.c.user_sub == user_sub, facts.c.agent_key == agent_key, facts.c.kind.in_(kinds)
    is_first, is_wish = facts.c.id.in_(first), facts.c.kind.in_(("goal", "preference"))
    return _facts().where(*mine, *holds()).order_by(is_first.desc(), is_wish.desc(), facts.c.id.desc()).limit(limit)


def holds(at: datetime | ColumnElement[datetime] | None = None) -> tuple[ColumnElement[bool], ...]:
    """Returns the conditions that select the facts that hold at a time; None: now."""
    time = func.now() if at is None else at
    return facts.c.valid_from <= time, or_(facts.c.valid_to.is_(None), facts.c.valid_to > time)


def text_of(said: Mapping[str, str]) -> str:
    """Returns the text of an entry of knowledge, below its title if it has one."""
    return f"{said['title']}\n{said['text']}" if said["title"] else said["text"]


def one_entry(user_sub: str, entry_id: UUID) -> Rows:
    """Returns the statement for the entry of knowledge with this id."""
    return _entries().where(knowledge.c.user_sub == user_sub, knowledge.c.id == entry_id)


def page_of_knowledge(user_sub: str, only: Mapping[str, object], *, before: UUID | None, limit: int) -> Rows:
    """Returns the statement for the user's newest ``limit`` entries older than ``before``; ids rise with time.

    ``only`` has, by column, the values that an entry must have; None: any value.
    """
    return paged(_entries(), knowledge, {"user_sub": user_sub, **only}, before, limit)


def page_of_shared(only: Mapping[str, object], *, before: UUID | None, limit: int) -> Rows:
    """Returns the statement that ``page_of_knowledge`` returns, for the entries that all users of an agent share."""
    shown = columns_of(shared_knowledge, "id category entry_type title text")
    return paged(select(*shown), shared_knowledge, only, before, limit)


def _entries() -> Rows:
    return select(*columns_of(knowledge, "id agent_key category entry_type words created_at updated_at"))

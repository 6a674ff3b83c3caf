"""Statements of a retain: inserts a case unless it was inserted before, and asks whether the agent may write."""

from functools import cache
from uuid import UUID

from sqlalchemy import CTE, Boolean, bindparam, exists, func, or_, select
from sqlalchemy.dialects.postgresql import insert

from retrieval.database.fast_path import FastStatement
from retrieval.database.parameters import AGENT_KEY, USER_SUB, may_enter
from retrieval.tables.cases import cases
from retrieval.tables.profiles import profiles

INSERTED = (
    "user_sub",
    "id",
    "agent_key",
    "kind",
    "parent_case_id",
    "status",
    "task",
    "plan",
    "words",
    "tools",
    "effects",
    "tags",
    "outcome",
    "reward",
    "reward_source",
    "step_count",
    "error_count",
    "retrieval_id",
    "session_id",
    "used_case_ids",
    "used_procedure_ids",
    "search_text",
    "message_hash",
    "idempotency_key",
    "request_hash",
    "key_id",
    "payload",
    "source",
)
"""The columns of a case that a retain fills, besides ``created_at``; all other columns begin with their defaults."""


@cache
def insert_case() -> FastStatement[UUID]:
    """Returns a statement that inserts a case and selects its id.

    It inserts no row if the idempotency key is known, or if writing is off for the agent and ``even_off`` is false. Its
    other parameters are the INSERTED columns, ``created_at`` (None: now) and ``authorised_at``. It writes no audit
    entry: the worker does, in the transaction in which the case becomes ready.
    """
    created_at = func.coalesce(bindparam("created_at", type_=cases.c.created_at.type), func.now())
    given = (bindparam(name, type_=cases.c[name].type) for name in INSERTED)
    off = exists().where(profiles.c.user_sub == USER_SUB, profiles.c.agent_key == AGENT_KEY, ~profiles.c.writing)
    may_write = or_(bindparam("even_off", type_=Boolean), ~off)
    values = select(*given, created_at).where(may_enter(), may_write)  # in this order, see may_enter
    inserted: CTE = (
        insert(cases)
        .from_select([*INSERTED, "created_at"], values)
        .on_conflict_do_nothing(index_elements=["user_sub", "idempotency_key"])
        .returning(cases.c.id)
        .cte("inserted")
    )
    return FastStatement(select(inserted.c.id))


WRITING: FastStatement[bool] = FastStatement(
    select(profiles.c.writing).where(may_enter(), profiles.c.user_sub == USER_SUB, profiles.c.agent_key == AGENT_KEY)
)
"""A statement that selects whether writing is on for the agent; no row: the agent has no profile yet."""

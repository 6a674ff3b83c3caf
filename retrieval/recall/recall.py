"""Finds what a question means among an agent's memories."""

from collections.abc import Awaitable, Callable
from uuid import UUID

from sqlalchemy import DateTime, bindparam, func, select

from retrieval.context import count_tokens
from retrieval.database.fast_path import FastConnection, FastStatement
from retrieval.database.parameters import AGENT_KEY, USER_SUB, may_enter
from retrieval.fact_schema import facts
from retrieval.facts.listing import holds
from retrieval.recall.memory import FactSource, Memory, Recalled, RecallQuestion
from retrieval.sealed import UserSeal


async def recall(
    connection: FastConnection,
    question: RecallQuestion,
    seal_of: Callable[[FastConnection, UUID], Awaitable[UserSeal]],
) -> Recalled:
    """Returns the memories that share words with the question, the best first."""
    rows = await connection.all(_FACTS, {"agent_key": question.agent_key, "as_of": question.as_of})
    asked = set(question.query.casefold().split())
    found = []
    for row in rows if "fact" in question.kinds else ():
        text = (await seal_of(connection, row.key_id)).open_fact(row.id, row.words)["text"]
        if shared := len(asked & set(text.casefold().split())):
            found.append((shared, text, row))
    found.sort(key=lambda each: -each[0])
    memories, tokens = [], 0
    for rank, (shared, text, row) in enumerate(found[: question.top_k], start=1):
        if tokens + count_tokens(text) > question.token_budget:
            break
        tokens += count_tokens(text)
        source = FactSource(row.id, row.kind, row.said_by, row.valid_from, row.valid_to)
        memories.append(Memory("fact", text, rank, float(shared), None, source))
    return Recalled(memories, tokens, min(len(found), question.top_k) - len(memories))


def _facts() -> FastStatement:
    columns = ("id", "kind", "words", "key_id", "said_by", "valid_from", "valid_to")
    as_of = bindparam("as_of", type_=DateTime(timezone=True))
    statement = select(*(facts.c[name] for name in columns)).where(
        may_enter(),
        facts.c.user_sub == USER_SUB,
        facts.c.agent_key == AGENT_KEY,
        *holds(func.coalesce(as_of, func.now())),
    )
    return FastStatement.of(statement.order_by(facts.c.id.desc()))


_FACTS = _facts()

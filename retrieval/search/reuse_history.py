"""The statement that reads the outcomes of similar decisions, for a fast connection."""

from typing import Protocol
from uuid import UUID

from pgvector.sqlalchemy import Vector
from sqlalchemy import Float, and_, cast, func, literal_column, select

from retrieval.database.fast_path import FastStatement
from retrieval.database.parameters import AGENT_KEY, MODEL, USER_SUB, may_enter, vector
from retrieval.search.candidates import Search
from retrieval.search.credit import shared_credit
from retrieval.tables.cases import cases
from retrieval.tables.decisions import decision_slots, decisions

RECENT = 1_000
"""Latest rewarded decisions that are searched."""
NEAREST = 64


class Reuse(Protocol):
    """One use of a case, on the slate of a similar decision before.

    Attributes:
        similarity: cosine of that decision's query and this one, -1 to 1.
        reward: reward of the whole slate, 0 to 1.
        credit: the use's share of it.
    """

    case_id: UUID
    id: UUID
    words: bytes | None
    key_id: UUID
    similarity: float
    reward: float
    credit: float
    effects: list[str]
    plan: list[str]


def reuse_history(search: Search) -> tuple[FastStatement[Reuse], dict[str, object]]:
    """Returns the statement for the uses of cases on the NEAREST of the RECENT rewarded decisions, and its parameters.

    A use's credit is its share of the outcome by the rule of ``policy.examples.shared_credit``. Needs pgvector, and a
    query with a vector; decisions whose queries lie in another space are left out.
    """
    return _REUSE_HISTORY, {"agent_key": search.agent_key, "model": search.model, "vector": search.vector}


def _statement() -> FastStatement[Reuse]:
    recent = (
        select(decisions.c.id, decisions.c.reward, decisions.c.query_vector)
        .where(
            decisions.c.user_sub == USER_SUB,
            decisions.c.agent_key == AGENT_KEY,
            decisions.c.reward.is_not(None),
            decisions.c.query_model == MODEL,
            func.cardinality(decisions.c.query_vector) == func.cardinality(vector()),  # as any of that space should be
        )
        .order_by(decisions.c.id.desc())
        .limit(literal_column(str(RECENT)))
        .cte("recent")
        .prefix_with("MATERIALIZED")
    )
    distance = cast(recent.c.query_vector, Vector).op("<=>")(cast(vector(), Vector))
    nearest = (
        select(recent.c.id, recent.c.reward, (1 - cast(distance, Float)).label("similarity"))
        .order_by(distance, recent.c.id.desc())
        .limit(literal_column(str(NEAREST)))
        .cte("nearest")
    )
    slot = decision_slots.c
    credit = shared_credit(slot.used, slot.agreed, [nearest.c.id])
    uses = (  # before the cases are joined: a place whose case is gone has its share all the same
        select(*nearest.c, slot.place, slot.case_id, credit.label("credit"))
        .select_from(nearest)
        .join(decision_slots, and_(slot.user_sub == USER_SUB, slot.decision_id == nearest.c.id))
        .cte("uses")
    )
    statement = (
        select(
            uses.c.case_id,
            uses.c.similarity,
            uses.c.reward,
            uses.c.credit,
            cases.c.id,
            cases.c.words,
            cases.c.key_id,
            cases.c.effects,
            cases.c.plan,
        )
        .join(cases, and_(cases.c.user_sub == USER_SUB, cases.c.id == uses.c.case_id))
        .where(may_enter())
        .order_by(uses.c.similarity.desc(), uses.c.id.desc(), uses.c.place)
    )
    return FastStatement.of(statement)


_REUSE_HISTORY = _statement()

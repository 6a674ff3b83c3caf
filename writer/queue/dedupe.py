"""Near-duplicates: two runs of one profile that did the same for the same task become one case with a counter."""

from uuid import UUID

from sqlalchemy import Select, Update, and_, func, select, update

from retrieval.tables.cases import case_embeddings, cases
from writer.queue.case import ClaimedCase
from writer.rewards.repeats import one_more
from writer.vectors import cosine_distance

SAME_TASK = 0.98
"""Least cosine similarity of two tasks for which runs with equal plans become one case."""


def twin(user_sub: str, fresh: ClaimedCase, vector: list[float] | None, model: str) -> Select[UUID]:
    """Returns a statement that selects the ready case that the fresh case repeats, if there is one.

    A case is repeated by one with the same task and plan, or with an equal plan and a task of similar meaning
    (SAME_TASK). Only runs with the same outcome merge: a failure beside a success is news. Exact repeats win over near
    ones, older cases over newer ones.

    Args:
        user_sub: the owner of both.
        fresh: the case that the worker is about to finish.
        vector: the embedding of its task; None: only exact repeats are looked for.
        model: the name of the embedding model that the vector is from.
    """
    alike = cases.c.message_hash == fresh.message_hash
    statement = select(cases.c.id)
    if vector is not None and fresh.plan:
        similarity = 1 - cosine_distance(vector)
        statement = statement.outerjoin(
            case_embeddings,
            and_(
                case_embeddings.c.user_sub == user_sub,
                case_embeddings.c.agent_key == fresh.agent_key,
                case_embeddings.c.model == model,
                case_embeddings.c.case_id == cases.c.id,
            ),
        )
        alike = alike | and_(cases.c.plan == fresh.plan, similarity >= SAME_TASK)
    return (
        statement.where(
            cases.c.user_sub == user_sub,
            cases.c.agent_key == fresh.agent_key,
            cases.c.status == "ready",
            cases.c.kind == fresh.kind,
            cases.c.outcome == fresh.outcome,
            alike,
        )
        .order_by((cases.c.message_hash == fresh.message_hash).desc(), cases.c.created_at, cases.c.id)
        .limit(1)
    )


def count_again(user_sub: str, kept: UUID, fresh: ClaimedCase) -> Update:
    """Returns a statement that adds the fresh case's run to the kept case: one more occurrence, and the mean reward."""
    counted: dict[str, object] = {"occurrences": cases.c.occurrences + 1, "last_used_at": func.now()}
    if fresh.reward is not None:
        counted |= one_more(fresh.reward, fresh.reward_source)
    return update(cases).where(cases.c.user_sub == user_sub, cases.c.id == kept).values(counted)

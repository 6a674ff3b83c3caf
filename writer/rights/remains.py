"""Blanks the texts of a deleted case in other rows: the queries of its retrievals, and its run's task and steps."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import RowMapping, Select, and_, delete, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from retrieval.tables.cases import cases
from retrieval.tables.decisions import decisions
from retrieval.tables.failures import advice
from retrieval.tables.runs import run_steps, runs
from writer.privacy.contexts import BLANK, forget_advice
from writer.privacy.words import Words


def case_and_repeats(user_sub: str, case_id: UUID) -> Select[*tuple[Any, ...]]:
    """Returns a statement that selects a case, and the repeats that were merged into it: they have the same words."""
    names = ("id", "agent_key", "task", "plan", "words", "retrieval_id", "session_id")
    theirs = or_(cases.c.id == case_id, cases.c.merged_into == case_id)
    return select(*(cases.c[name] for name in names)).where(cases.c.user_sub == user_sub, theirs).order_by(cases.c.id)


async def forget_texts(connection: AsyncConnection, words: Words, found: Sequence[RowMapping]) -> None:
    """Blanks the texts of these cases in decisions and runs; call it before the cases are deleted.

    The rows stay. Decisions, because policies learned from them: the retrievals that the cases' runs began with, those
    with the same query, and the advice in these runs. Runs, so that a late step begins no new run.
    """
    user_sub = words.user_sub
    became = runs.c.user_sub == user_sub, runs.c.case_id.in_([row["id"] for row in found])
    run_ids = list((await connection.scalars(select(runs.c.id).where(*became))).all())
    retrieval_ids = [row["retrieval_id"] for row in found if row["retrieval_id"] is not None]
    tasks = {words.opened(row)["task"] for row in found}
    session_ids = [row["session_id"] for row in found if row["session_id"] is not None]
    given = (
        advice.c.run_id.in_(run_ids),
        advice.c.retrieval_id.in_(retrieval_ids),
        advice.c.session_id.in_(session_ids),
    )
    await forget_advice(connection, user_sub, or_(*given))
    same = or_(
        decisions.c.id.in_(retrieval_ids),
        and_(decisions.c.words.is_(None), decisions.c.query.in_(tasks)),
        decisions.c.query_group.in_([words.group_of(task) for task in tasks]),
    )
    await connection.execute(update(decisions).where(decisions.c.user_sub == user_sub, same).values(BLANK))
    await connection.execute(update(runs).where(*became).values(words=b""))
    await connection.execute(delete(run_steps).where(run_steps.c.user_sub == user_sub, run_steps.c.run_id.in_(run_ids)))

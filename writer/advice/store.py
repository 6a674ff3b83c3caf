"""Stores the failures of a finished run beside its case, and settles the advice that the run got.

To settle advice is to store whether the failure came back, and the reward of the decision.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from functools import cache
from typing import Any
from uuid import UUID

from sqlalchemy import Text, Uuid, and_, bindparam, exists, or_, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from retrieval.database.rows import Rows
from retrieval.sealed import ERROR, FIX, MOVES, SIGN, TOOL
from retrieval.tables.cases import cases
from retrieval.tables.decisions import decision_slots, decisions
from retrieval.tables.failures import advice, failures
from retrieval.tables.runs import runs
from writer.analysis.fixes import RunFailure
from writer.privacy.words import Words


async def store_failures(connection: AsyncConnection, rows: Sequence[Mapping[str, Any]]) -> None:
    """Inserts failures, given as ``failure_rows`` returns them; failures that are stored already stay as they are."""
    if rows:
        await connection.execute(insert(failures).on_conflict_do_nothing(), rows)


def failure_rows(words: Words, agent_key: str, case_id: UUID, run: Sequence[RunFailure]) -> list[dict[str, Any]]:
    """Returns a row of the table of failures for each failure of a run."""
    rows = []
    for place, failure in enumerate(run, start=1):
        sign, terms = failure.sign, [] if failure.fix is None else failure.fix.terms
        fix = None if failure.fix is None else asdict(failure.fix)
        texts = {"tool": sign.tool, "error": failure.error, "fix": fix}
        row = {
            "user_sub": words.user_sub,
            "case_id": case_id,
            "place": place,
            "agent_key": agent_key,
            "tool": words.numbers(TOOL, [sign.tool])[0],
            "sign": words.numbers(SIGN, [sign.line])[0],
            "error": words.numbers(ERROR, sign.error),
            "call": words.numbers(MOVES, sign.call),
            "fix": words.numbers(FIX, terms),
            "fix_id": fix_number(words, terms) if terms else None,
            "calls": failure.calls,
            "words": words.seal("failure", texts, case_id, place),
        }
        rows.append(row)
    return rows


def fix_number(words: Words, terms: Sequence[str]) -> int:
    """Returns the keyed hash that identifies a fix, given the terms of its changes in any order."""
    return words.numbers(FIX, ["\n".join(sorted(terms))])[0]


async def advised(connection: AsyncConnection, user_sub: str, case_ids: Collection[UUID]) -> set[UUID]:
    """Returns those of these cases whose runs got advice that is not settled yet."""
    rows = await connection.execute(_given(), {"owner": user_sub, "case_ids": list(case_ids)})
    return {row.case_id for row in rows}


@cache  # to build the statement takes as long as to run it
def _given() -> Rows:
    """Returns the statement for advice of the cases ``case_ids`` of ``owner`` that is not settled, each with its case.

    A session's advice was given to the run that is retained next, unless it names a run or a run's retrieval.
    """
    mine = bindparam("owner", type_=Text)
    names_none = advice.c.run_id.is_(None), advice.c.retrieval_id.is_(None)
    in_session = advice.c.session_id == cases.c.session_id, *names_none
    given_to = or_(
        runs.c.case_id == cases.c.id,
        advice.c.retrieval_id == cases.c.retrieval_id,
        and_(*in_session, advice.c.created_at <= cases.c.created_at),
    )
    shown = decision_slots.c.user_sub == mine, decision_slots.c.decision_id == advice.c.decision_id
    told = exists().where(*shown).label("told")
    return (
        select(advice.c.decision_id, advice.c.sign, told, cases.c.id.label("case_id"))
        .select_from(advice)
        .outerjoin(runs, and_(runs.c.user_sub == mine, runs.c.id == advice.c.run_id))
        .join(cases, and_(cases.c.user_sub == mine, given_to))
        .where(
            advice.c.user_sub == mine,
            advice.c.came_back.is_(None),
            cases.c.id.in_(bindparam("case_ids", type_=Uuid, expanding=True)),
        )
        .order_by(advice.c.decision_id)
    )


async def settle_advice(connection: AsyncConnection, words: Words, case_id: UUID, met: Sequence[RunFailure]) -> None:
    """Stores for each advice of a run whether the failure came back, and rewards advice that told a fix or a plan.

    An agent asks once for each failed call, so the failure came back after the nth advice on a kind of failure if more
    than n calls failed in that way. Advice gets the reward 1 if the failure stayed away, else 0.
    """
    rows = (await connection.execute(_given(), {"owner": words.user_sub, "case_ids": [case_id]})).all()
    if not rows:
        return
    calls: dict[int, int] = {}
    for failure, sign in zip(met, words.numbers(SIGN, [each.sign.line for each in met]), strict=True):
        calls[sign] = calls.get(sign, 0) + failure.calls
    asked_before: dict[int, int] = {}
    for row in rows:
        asked_before[row.sign] = asked_before.get(row.sign, 0) + 1
        came_back = calls.get(row.sign, 0) > asked_before[row.sign]
        mine = advice.c.user_sub == words.user_sub, advice.c.decision_id == row.decision_id
        await connection.execute(update(advice).where(*mine).values(came_back=came_back))
        if row.told:
            reward = {"reward": 0.0 if came_back else 1.0, "reward_source": "heuristic"}
            of_it = decisions.c.user_sub == words.user_sub, decisions.c.id == row.decision_id
            await connection.execute(update(decisions).where(*of_it, decisions.c.reward.is_(None)).values(reward))

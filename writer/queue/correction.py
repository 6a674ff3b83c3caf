"""Corrects the counts that retain made from the calls' statuses, once the worker has read the calls' outputs.

Retain answers before any output is read: a call that returned "Error: order not found" with the status "ok" counts as a
success in the case's row until the worker finalises the case.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pydantic import JsonValue
from sqlalchemy import exists, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from retrieval.tables.cases import cases
from retrieval.tables.decisions import rewards
from retrieval.tables.kinds import is_trusted
from writer.analysis.calls import StoredRun
from writer.audit import Change, note
from writer.queue.case import ClaimedCase, Work
from writer.retain.heuristic import heuristic_reward
from writer.retain.plan import plan_by_output
from writer.retain.prepare import message_hash
from writer.rewards.history import Given, add_reward


async def corrected(connection: AsyncConnection, work: Work) -> ClaimedCase:
    """Corrects the columns of a case that its calls' outputs contradict; returns the corrected case.

    The worker calls it when it finalises a case; the audit gets an entry, except for the plan. Only a reward that
    retain guessed is guessed again; a given reward stays, whatever its source. (A heuristic reward of the backend that
    equals retain's guess counts as a guess.)
    """
    held, case, wrong = work.held, work.now, dict[str, Any]()
    if work.counts is not None:
        right = work.counts.by_output
        guessed = heuristic_reward(case.outcome, unresolved=work.counts.by_status.unresolved)
        reward = heuristic_reward(case.outcome, unresolved=right.unresolved)
        if case.error_count != right.error_count:
            wrong["error_count"] = right.error_count
        if case.effects != right.effects:
            wrong["effects"] = right.effects
        if case.reward_source == "heuristic" and reward is not None and case.reward == guessed != reward:
            feedback = exists().where(rewards.c.user_sub == held.user_sub, rewards.c.case_id == held.row_id)
            if not await connection.scalar(select(feedback)):  # the case is locked: no feedback can come meanwhile
                wrong["reward"] = reward
    if wrong:
        changed = {name: {"from": getattr(case, name), "to": value} for name, value in wrong.items()}
        await note(connection, Change.of(work.owner, "worker", "correct_case", held.row_id, **changed))
    if columns := wrong | work.corrected_plan:
        row = update(cases).where(cases.c.user_sub == held.user_sub, cases.c.id == held.row_id)
        await connection.execute(row.values(columns))
    return replace(case, **columns)


def corrected_plan(work: Work, run: StoredRun, traces: Sequence[Mapping[str, JsonValue]]) -> dict[str, object]:
    """Returns the new columns of a case whose plan is another by its calls' outputs and statements; empty: it stays."""
    plan = plan_by_output(traces, run)
    if plan == run.plan:
        return {}
    if work.case.words is None:
        return {"plan": plan, "message_hash": message_hash(run.task, plan)}
    sealed = work.seal.seal_case(work.held.row_id, run.task, plan, ())
    return {name: sealed[name] for name in ("plan", "words", "message_hash")}


async def earlier_feedback(connection: AsyncConnection, user_sub: str, case: ClaimedCase) -> ClaimedCase:
    """Copies to the case the newest trusted reward that its retrieval got before the run was retained.

    Returns the case with that reward; unchanged if there is none, or if the case has a trusted reward already. Rewards
    of another run of the same retrieval do not count, because they do not judge this run; nor do rewards that came
    after another run.
    """
    if case.retrieval_id is None or is_trusted(case.reward_source):
        return case
    of_another = exists().where(
        cases.c.user_sub == user_sub,
        cases.c.retrieval_id == case.retrieval_id,
        cases.c.id != case.id,
        cases.c.created_at < rewards.c.created_at,
    )
    by_hand = (
        select(rewards.c.reward, rewards.c.source, rewards.c.actor)
        .where(
            rewards.c.user_sub == user_sub,
            rewards.c.decision_id == case.retrieval_id,
            rewards.c.source != "heuristic",
            ~rewards.c.of_run,
            ~of_another,
        )
        .order_by(rewards.c.created_at.desc(), rewards.c.id.desc())
        .limit(1)
    )
    newest = (await connection.execute(by_hand)).one_or_none()
    if newest is None:
        return case
    reward = Given(newest.reward, newest.source, case_id=case.id)
    counts = await add_reward(connection, user_sub, newest.actor, reward)
    return replace(case, reward=counts.reward, reward_source=counts.source)

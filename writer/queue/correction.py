"""Corrects the counts that retain made by the calls' statuses alone, once their outputs were read.

Retain answers before anybody has read an output, so a call that answered "Error: order not found" with the status "ok"
is a success in the case's row until the worker finalises it.
"""

from dataclasses import replace
from typing import TypedDict

from sqlalchemy import exists, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from retrieval.tables.cases import cases
from retrieval.tables.decisions import rewards
from retrieval.tables.kinds import is_trusted
from writer.analysis.recount import Recount
from writer.audit import Change, note
from writer.errors import LeaseLost
from writer.queue.case import ClaimedCase
from writer.queue.lease import Lease, is_held
from writer.retain.heuristic import heuristic_reward
from writer.rewards.history import Given, add_reward


class Counters(TypedDict, total=False):
    """The corrected columns of a case."""

    error_count: int
    effects: list[str]
    reward: float


async def corrected(connection: AsyncConnection, held: Lease, case: ClaimedCase, counts: Recount | None) -> ClaimedCase:
    """Puts right what retain counted wrongly, notes it in the audit, and returns the case as it now stands.

    Its reward is the one that counts now: feedback may have come since the case was claimed. Only the reward that
    retain itself guessed is guessed again; one that somebody gave stays, whatever its source. (A backend that names as
    its own heuristic exactly what retain would have guessed cannot be told from retain.)

    Raises:
        LeaseLost: another worker has the case, or it is gone.
    """
    current = select(cases.c.reward, cases.c.reward_source).where(is_held(cases, held)).with_for_update()
    now = (await connection.execute(current)).one_or_none()
    if now is None:
        raise LeaseLost("the lease ran out, or the case is gone")
    case = replace(case, reward=now.reward, reward_source=now.reward_source)
    if counts is None:
        return case
    wrong = _wrong(case, counts)
    if "reward" in wrong:  # the case is locked: no feedback can come meanwhile
        feedback = exists().where(rewards.c.user_sub == held.user_sub, rewards.c.case_id == held.row_id)
        if await connection.scalar(select(feedback)):
            del wrong["reward"]
    if wrong:
        row = update(cases).where(cases.c.user_sub == held.user_sub, cases.c.id == held.row_id)
        await connection.execute(row.values(wrong))
        was = {"error_count": case.error_count, "effects": case.effects, "reward": case.reward}
        changed = {name: {"from": was[name], "to": value} for name, value in wrong.items()}
        owner = held.user_sub, held.agent_key
        await note(connection, Change.of(owner, "worker", "correct_case", held.row_id, **changed))
    return replace(case, **wrong)


async def earlier_feedback(connection: AsyncConnection, user_sub: str, case: ClaimedCase) -> ClaimedCase:
    """Gives the run the trusted reward that its retrieval got before it was retained, and returns it as it now stands.

    A run that somebody judged already keeps that reward. What other runs that began with the same retrieval passed on
    to it, or were given by name, is no judgement of this one.
    """
    if case.retrieval_id is None or is_trusted(case.reward_source):
        return case
    by_hand = (
        select(rewards.c.reward, rewards.c.source, rewards.c.actor)
        .where(
            rewards.c.user_sub == user_sub,
            rewards.c.decision_id == case.retrieval_id,
            rewards.c.source != "heuristic",
            rewards.c.actor != "worker",
            ~rewards.c.of_run,
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


def _wrong(case: ClaimedCase, counts: Recount) -> Counters:
    """Returns those of the row's values that the outputs contradict, as they should be."""
    right, wrong = counts.by_output, Counters()
    if case.error_count != right.error_count:
        wrong["error_count"] = right.error_count
    if case.effects != right.effects:
        wrong["effects"] = right.effects
    guessed = heuristic_reward(case.outcome, unresolved=counts.by_status.unresolved)
    reward = heuristic_reward(case.outcome, unresolved=right.unresolved)
    if case.reward_source == "heuristic" and reward is not None and case.reward == guessed != reward:
        wrong["reward"] = reward
    return wrong

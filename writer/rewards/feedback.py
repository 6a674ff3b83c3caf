"""Rewards given after the fact: which one counts, and how it is passed on to what was reused."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Protocol
from uuid import UUID

import uuid_utils.compat as uuids
from sqlalchemy import Function, Row, Select, func, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from retrieval.errors import NotFound
from retrieval.kinds import RewardSource
from retrieval.schema import cases, decision_slots, decisions, rewards
from writer.audit import Change, note
from writer.rewards.credit import credit_slate


@dataclass(frozen=True, slots=True)
class Feedback:
    """A reward for a case or for a retrieval, given after the fact; exactly one of the two is named."""

    reward: float
    source: RewardSource
    case_id: UUID | None = None
    decision_id: UUID | None = None


def effective_reward(user_sub: str, *, case_id: UUID | None, decision_id: UUID | None) -> Select[float, str]:
    """Returns the statement for the reward that counts: the newest of a trusted source, else the newest of all.

    A heuristic is a guess by rule; whatever a user, a judge or a metric said outweighs it, however old.
    """
    subject = rewards.c.case_id == case_id if case_id else rewards.c.decision_id == decision_id
    return (
        select(rewards.c.reward, rewards.c.source)
        .where(rewards.c.user_sub == user_sub, subject)
        .order_by((rewards.c.source == "heuristic").asc(), rewards.c.created_at.desc(), rewards.c.id.desc())
        .limit(1)
    )


async def give_feedback(connection: AsyncConnection, user_sub: str, actor: str, feedback: Feedback) -> Feedback:
    """Adds the reward to the history, puts the one that counts on its subject, and passes it on to reused cases.

    Returns the reward that counts now, which may be an older one of a better source.

    Raises:
        NotFound: the user has no such case or retrieval.
    """
    table, subject = (cases, feedback.case_id) if feedback.case_id else (decisions, feedback.decision_id)
    found = (
        select(table.c.agent_key, table.c.reward, table.c.reward_source, table.c.created_at)
        .where(table.c.user_sub == user_sub, table.c.id == subject)
        .with_for_update()
    )
    row = (await connection.execute(found)).one_or_none()
    if row is None or subject is None:
        raise NotFound("no such case or retrieval")
    await _remember_first(connection, user_sub, feedback, row)
    # not the transaction's start: of two that overlap, the one that got the row lock last is the newer
    await _add(connection, user_sub, actor, feedback, func.clock_timestamp())
    counts = await _settle(connection, user_sub, feedback)
    payload = {"reward": feedback.reward, "source": feedback.source}
    given = Change(
        user_sub=user_sub, agent_key=row.agent_key, actor=actor, action="reward", subject_id=subject, payload=payload
    )
    await note(connection, given)
    return counts


async def _remember_first(
    connection: AsyncConnection,
    user_sub: str,
    feedback: Feedback,
    row: Row[str, float | None, str | None, datetime],
) -> None:
    """Begins the history of a case with the reward it was retained with."""
    known = select(rewards.c.id).where(rewards.c.user_sub == user_sub, rewards.c.case_id == feedback.case_id).limit(1)
    if feedback.case_id is None or row.reward is None or await connection.scalar(known):
        return
    first = replace(feedback, reward=row.reward, source=row.reward_source)
    await _add(connection, user_sub, "retain", first, row.created_at)


async def _add(
    connection: AsyncConnection,
    user_sub: str,
    actor: str,
    feedback: Feedback,
    at: datetime | Function[datetime],
) -> None:
    row = {"user_sub": user_sub, "id": uuids.uuid7(), "actor": actor, "created_at": at, **asdict(feedback)}
    await connection.execute(insert(rewards).values(row))


async def _settle(connection: AsyncConnection, user_sub: str, feedback: Feedback) -> Feedback:
    """Puts the reward that counts on the case or the decision, and returns it."""
    statement = effective_reward(user_sub, case_id=feedback.case_id, decision_id=feedback.decision_id)
    counts: Row[float, str] = (await connection.execute(statement)).one()
    table, subject = (cases, feedback.case_id) if feedback.case_id else (decisions, feedback.decision_id)
    await connection.execute(
        update(table)
        .where(table.c.user_sub == user_sub, table.c.id == subject)
        .values(reward=counts.reward, reward_source=counts.source),
    )
    if feedback.decision_id:
        await credit_slate(connection, user_sub, feedback.decision_id)
    return replace(feedback, reward=counts.reward, source=counts.source)


class FinishedCase(Protocol):
    """A case whose run is over: what it began with, what it said it used, and the reward that counts."""

    @property
    def retrieval_id(self) -> UUID | None:
        """The retrieval that it began with."""

    @property
    def used_case_ids(self) -> Sequence[UUID] | None:
        """What of the slate it used; None: the backend did not say."""

    @property
    def used_procedure_ids(self) -> Sequence[UUID] | None:
        """The same of the procedures."""

    @property
    def reward(self) -> float | None:
        """0 to 1; None: nobody gave one, and nobody guessed."""

    @property
    def reward_source(self) -> RewardSource | None:
        """Who gave the reward."""


async def credit_run(connection: AsyncConnection, user_sub: str, actor: str, finished: FinishedCase) -> None:
    """Passes a finished run's reward, if it has one, on to its retrieval, and so to the cases and procedures it used.

    Raises:
        NotFound: the run began with a retrieval that the user does not have.
    """
    if finished.retrieval_id is None or finished.reward is None:
        return
    used = finished.used_case_ids
    if used is not None:
        slots = update(decision_slots).where(
            decision_slots.c.user_sub == user_sub,
            decision_slots.c.decision_id == finished.retrieval_id,
        )
        await connection.execute(slots.values(used=decision_slots.c.case_id.in_(used)))
    if finished.used_procedure_ids is not None:
        decision = update(decisions).where(decisions.c.user_sub == user_sub, decisions.c.id == finished.retrieval_id)
        await connection.execute(decision.values(used_procedure_ids=list(finished.used_procedure_ids)))
    feedback = Feedback(finished.reward, finished.reward_source or "heuristic", decision_id=finished.retrieval_id)
    await give_feedback(connection, user_sub, actor, feedback)

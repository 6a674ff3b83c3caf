"""Feedback: a judgement of one loop reaches the run, what it was shown and used, and what was learned from it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from sqlalchemy import Select, select
from sqlalchemy.ext.asyncio import AsyncConnection

from retrieval.errors import NotFound
from retrieval.tables.cases import cases
from retrieval.tables.decisions import decisions
from retrieval.tables.kinds import FAILED_BELOW, RewardSource, is_trusted
from retrieval.telemetry import stage
from writer.errors import NotJoined
from writer.procedures.withdrawal import failed_runs, withdraw_learned
from writer.profiles import lock_loop
from writer.rewards.credit import credit_slate
from writer.rewards.history import Given, add_reward
from writer.rewards.slate_use import FollowingRun, remember_followed, remember_followed_by, speaks_for_slate


@dataclass(frozen=True, slots=True)
class Feedback:
    """A reward given after the fact for a loop: it names the retrieval, the case of the run, or both."""

    reward: float
    source: RewardSource
    case_id: UUID | None = None
    decision_id: UUID | None = None


@dataclass(frozen=True, slots=True)
class Reached:
    """The reward that counts now, which may be an older one of a better source, and what it reached."""

    reward: float
    source: RewardSource
    case_ids: Sequence[UUID]
    """The runs that it judges, oldest first."""
    decision_id: UUID | None
    """The retrieval whose slate and procedures it credits."""
    withdrawn: Sequence[UUID] = ()
    """Procedures that were learned from these runs, and are no longer in use."""


async def give_feedback(connection: AsyncConnection, user_sub: str, actor: str, feedback: Feedback) -> Reached:
    """Gives the reward to the retrieval and to every run that began with it, whichever of the two was named.

    The run's own row, the record of the cases and procedures that it was shown and used, and, where the reward says
    that it failed, the procedures learned from it follow.

    Raises:
        NotFound: the user has no such case or retrieval.
        NotJoined: both were named, and the run did not begin with that retrieval.
    """
    with stage("evaluate"):
        return await _evaluate(connection, user_sub, actor, feedback)


async def _evaluate(connection: AsyncConnection, user_sub: str, actor: str, feedback: Feedback) -> Reached:
    agent_key, decision_id, case_ids = await _loop(connection, user_sub, feedback)
    await lock_loop(connection, user_sub, agent_key, decision_id)  # the worker that finishes a run does so, too
    before = await failed_runs(connection, user_sub, case_ids)  # what a failure taught stays when it is confirmed
    if feedback.case_id and decision_id and await speaks_for_slate(connection, user_sub, decision_id, feedback.source):
        await remember_followed_by(connection, user_sub, feedback.case_id)
    subjects = [Given(feedback.reward, feedback.source, case_id=each) for each in case_ids]
    of_run = feedback.case_id is not None
    if decision_id:
        subjects.append(Given(feedback.reward, feedback.source, decision_id=decision_id, of_run=of_run))
    counted = [await add_reward(connection, user_sub, actor, each) for each in subjects]
    judged = zip(case_ids, counted, strict=False)  # the retrieval comes last
    failed = [
        case_id
        for case_id, each in judged
        if case_id not in before and is_trusted(each.source) and each.reward < FAILED_BELOW
    ]
    withdrawn = await withdraw_learned(connection, user_sub, actor, failed) if failed else []
    named = counted[0] if feedback.case_id else counted[-1]
    return Reached(named.reward, named.source, case_ids, decision_id, withdrawn)


async def _loop(connection: AsyncConnection, user_sub: str, feedback: Feedback) -> tuple[str, UUID | None, list[UUID]]:
    """Returns the agent, the retrieval, if any, and the runs that the feedback is about."""
    if feedback.case_id is None:
        return await _from_retrieval(connection, user_sub, feedback.decision_id)
    statement = select(cases.c.agent_key, cases.c.retrieval_id).where(
        cases.c.user_sub == user_sub, cases.c.id == feedback.case_id
    )
    run = (await connection.execute(statement)).one_or_none()
    if run is None:
        raise NotFound("no such case or retrieval")
    if feedback.decision_id not in {None, run.retrieval_id}:
        raise NotJoined("the run of that case did not begin with that retrieval: name one of the two")
    return run.agent_key, run.retrieval_id, [feedback.case_id]


async def _from_retrieval(
    connection: AsyncConnection, user_sub: str, decision_id: UUID | None
) -> tuple[str, UUID | None, list[UUID]]:
    agent = select(decisions.c.agent_key).where(decisions.c.user_sub == user_sub, decisions.c.id == decision_id)
    agent_key = await connection.scalar(agent)
    if agent_key is None:
        raise NotFound("no such case or retrieval")
    began = select(cases.c.id).where(cases.c.user_sub == user_sub, cases.c.retrieval_id == decision_id)
    return agent_key, decision_id, list((await connection.scalars(began.order_by(cases.c.id))).all())


class FinishedCase(FollowingRun, Protocol):
    """A case whose run is over, with the reward that counts."""

    @property
    def reward(self) -> float | None:
        """0 to 1; None: nobody gave one, and nobody guessed."""

    @property
    def reward_source(self) -> RewardSource | None:
        """Source of the reward; None: it has none."""


async def credit_run(connection: AsyncConnection, user_sub: str, actor: str, finished: FinishedCase) -> None:
    """Passes a finished run's reward, if it has one, on to its retrieval, and so to the cases and procedures it used.

    Raises:
        NotFound: the run began with a retrieval that the user does not have.
    """
    decision_id = finished.retrieval_id
    if decision_id is None:
        return
    source = None if finished.reward is None else finished.reward_source or "heuristic"
    speaks = await speaks_for_slate(connection, user_sub, decision_id, source)
    if speaks:
        await remember_followed(connection, user_sub, finished)
    with stage("evaluate"):
        if finished.reward is not None and source is not None:
            await add_reward(connection, user_sub, actor, Given(finished.reward, source, decision_id=decision_id))
        elif speaks and await connection.scalar(_is_rewarded(user_sub, decision_id)):  # before its run was over
            await credit_slate(connection, user_sub, decision_id)


def _is_rewarded(user_sub: str, decision_id: UUID) -> Select[bool]:
    return select(decisions.c.reward.is_not(None)).where(
        decisions.c.user_sub == user_sub, decisions.c.id == decision_id
    )

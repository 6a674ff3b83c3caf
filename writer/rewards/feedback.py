"""Passes a reward on to the judged run, to the cases and procedures that it used, and to those learned from it."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from retrieval.errors import NotFound
from retrieval.tables.cases import cases
from retrieval.tables.decisions import decisions
from retrieval.tables.kinds import FAILED_BELOW, RewardSource, is_trusted
from retrieval.telemetry import stage
from writer.errors import NotJoined
from writer.procedures.withdrawal import ask_to_reflect, failed_runs, withdraw_learned
from writer.profiles import lock_loop
from writer.rewards.credit import credit_slate
from writer.rewards.history import Given, add_reward
from writer.rewards.slate_use import remember_followed, speaks_for_slate


@dataclass(frozen=True, slots=True)
class Feedback:
    """A reward given after a run ended, with the retrieval that the run began with, the run's case, or both."""

    reward: float
    source: RewardSource
    case_id: UUID | None = None
    decision_id: UUID | None = None


@dataclass(frozen=True, slots=True)
class Reached:
    """The result of a feedback: the reward that counts now, and the rows that the feedback changed.

    The reward that counts may be an older one, if that is from a better source.
    """

    reward: float
    source: RewardSource
    case_ids: Sequence[UUID]
    """The cases of the runs that the reward judges, oldest first."""
    decision_id: UUID | None
    """The retrieval whose cases and procedures the reward credits."""
    withdrawn: Sequence[UUID] = ()
    """Procedures that were learned from these runs, and that the feedback took out of use."""


async def give_feedback(connection: AsyncConnection, user_sub: str, actor: str, feedback: Feedback) -> Reached:
    """Gives the reward to a retrieval and its runs: to the named run, or to all runs of the named retrieval.

    Updates the runs' cases, the records of the cases and procedures that the retrieval showed, and, if the reward says
    that a run failed, withdraws the procedures learned from it and has the worker revise those that it used.

    Raises:
        NotFound: the user has no such case or retrieval.
        NotJoined: a case and a retrieval were named, and the case's run did not begin with that retrieval.
    """
    with stage("evaluate"):
        agent_key, decision_id, case_ids = await _loop(connection, user_sub, feedback)
        await lock_loop(
            connection, user_sub, [agent_key], [decision_id] if decision_id else []
        )  # the worker that finishes a run does so, too
        _, _, case_ids = await _loop(connection, user_sub, feedback)  # who held the locks may have deleted some
        before = await failed_runs(connection, user_sub, case_ids)  # lessons of a failure stay when it is confirmed
        source = feedback.source
        if feedback.case_id and decision_id and await speaks_for_slate(connection, user_sub, decision_id, source):
            await remember_followed(connection, user_sub, feedback.case_id)
        subjects = [Given(feedback.reward, source, case_id=each) for each in case_ids]
        of_run = feedback.case_id is not None
        if decision_id:
            subjects.append(Given(feedback.reward, source, decision_id=decision_id, of_run=of_run))
        counted = [await add_reward(connection, user_sub, actor, each) for each in subjects]
        judged = zip(case_ids, counted, strict=False)  # the retrieval comes last
        failed = [
            case_id
            for case_id, each in judged
            if case_id not in before and is_trusted(each.source) and each.reward < FAILED_BELOW
        ]
        withdrawn = await withdraw_learned(connection, user_sub, actor, failed) if failed else []
        if failed:
            await ask_to_reflect(connection, user_sub, failed)
        named = counted[0] if feedback.case_id else counted[-1]
        return Reached(named.reward, named.source, case_ids, decision_id, withdrawn)


async def _loop(connection: AsyncConnection, user_sub: str, feedback: Feedback) -> tuple[str, UUID | None, list[UUID]]:
    """Returns the agent, the retrieval, if any, and the cases of the runs that the feedback is about."""
    if feedback.case_id is None:
        retrieval = decisions.c.user_sub == user_sub, decisions.c.id == feedback.decision_id
        agent_key = await connection.scalar(select(decisions.c.agent_key).where(*retrieval))
        if agent_key is None:
            raise NotFound("no such case or retrieval")
        began = select(cases.c.id).where(cases.c.user_sub == user_sub, cases.c.retrieval_id == feedback.decision_id)
        return agent_key, feedback.decision_id, list((await connection.scalars(began.order_by(cases.c.id))).all())
    statement = select(cases.c.agent_key, cases.c.retrieval_id).where(
        cases.c.user_sub == user_sub, cases.c.id == feedback.case_id
    )
    run = (await connection.execute(statement)).one_or_none()
    if run is None:
        raise NotFound("no such case or retrieval")
    if feedback.decision_id not in {None, run.retrieval_id}:
        raise NotJoined("the run of that case did not begin with that retrieval: name one of the two")
    return run.agent_key, run.retrieval_id, [feedback.case_id]


async def credit_run(connection: AsyncConnection, user_sub: str, actor: str, case_id: UUID) -> None:
    """Gives a run's reward, if any, to the retrieval that it began with, and so to the cases and procedures it used.

    Called by the worker as its last step with a run that began with a retrieval.
    """
    mine = select(cases.c.retrieval_id, cases.c.reward, cases.c.reward_source)
    run = (await connection.execute(mine.where(cases.c.user_sub == user_sub, cases.c.id == case_id))).one()
    decision_id, source = run.retrieval_id, run.reward_source
    speaks = await speaks_for_slate(connection, user_sub, decision_id, source)
    if speaks:
        await remember_followed(connection, user_sub, case_id)
    with stage("evaluate"):
        if run.reward is not None:
            given = Given(run.reward, source, decision_id=decision_id, of_run=True)
            await add_reward(connection, user_sub, actor, given)
        elif speaks:
            retrieval = decisions.c.user_sub == user_sub, decisions.c.id == decision_id
            if await connection.scalar(select(decisions.c.reward.is_not(None)).where(*retrieval)):
                await credit_slate(connection, user_sub, decision_id)  # rewarded before its run was over

"""The tools that write: store a fact, a run or feedback, and take a fact or procedure out of use.

A model's statement does not count as the user's: a fact is marked as said by the assistant, and a reward as heuristic.
So a text that the model read cannot pass for the user's judgement. The tools cannot delete or overwrite.
"""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from uuid import UUID

from sqlalchemy import Table, select
from sqlalchemy.ext.asyncio import AsyncConnection

from app.memory_tools.asking import Asking
from app.schemas.memory_tools import ForgetIn, RememberIn, RunEnd
from retrieval.errors import NotFound
from retrieval.tables.decisions import decisions
from retrieval.tables.kinds import RewardSource
from retrieval.tables.procedures import procedures
from retrieval.telemetry import REWARDS
from writer.facts.by_hand import FactWritten, write_fact
from writer.facts.remove import close_fact
from writer.procedures.curation import retire
from writer.retain.prepare import prepare
from writer.retain.retain import store
from writer.rewards.feedback import Feedback, give_feedback
from writer.run import FinishedRun

REWARD: Mapping[RunEnd, float] = {"success": 1.0, "partial": 0.5, "failure": 0.0}
GUESS: RewardSource = "heuristic"
"""Source of rewards from a model."""


async def remember(asking: Asking, given: RememberIn) -> str:
    """Stores a fact, a run or feedback, and returns a confirmation.

    Raises:
        NotFound: the retrieval is not a recall of this agent.
        NotNow: too many runs of the user are waiting.
        SecretInName: the agent's name looks like a secret.
    """
    if given.kind == "run":
        return await _run(asking, given)
    if given.kind == "feedback":
        author = asking.author
        reward = Feedback(REWARD[given.outcome or "failure"], GUESS, decision_id=given.retrieval_id)
        async with asking.parts.database.as_user(author.user_sub, author.authorised_at) as connection:
            await _check_agent(connection, asking, decisions, given.retrieval_id)
            reached = await give_feedback(connection, author.user_sub, author.actor, reward)
        REWARDS.labels(GUESS).inc()
        counts = f"The reward that counts is {reached.reward:g}, from {reached.source}."
        return f"Stored as a heuristic reward of {reward.reward:g}. {counts}"
    written = FactWritten(
        agent=asking.agent,
        kind=given.kind,
        text=given.text or "",
        value=given.value,
        unit=given.unit,
        category=given.category,
        said_by="assistant",
    )
    fact_id = await write_fact(asking.parts.database, asking.parts.keyring, written, asking.author)
    asking.parts.worker.wake()
    return f"Stored as {given.kind} {fact_id}, marked as said by the assistant."


async def forget(asking: Asking, given: ForgetIn) -> str:
    """Ends a fact of the agent or retires a procedure; both stay readable, and a person can restore them.

    Raises:
        NotFound: no fact and no procedure has this id.
    """
    author = asking.author
    async with asking.parts.database.as_user(author.user_sub, author.authorised_at) as connection:
        with suppress(NotFound):
            await close_fact(connection, author, asking.agent, given.id)
            return "The fact no longer holds; it stays readable as an earlier fact."
        with suppress(NotFound):
            await _check_agent(connection, asking, procedures, given.id)
            await retire(connection, author, given.id)
            return "The procedure is out of use; it stays readable, and pinning it restores it."
    raise NotFound("no fact and no procedure in use has this id; finished runs are deleted by the user, not by a tool")


async def _check_agent(connection: AsyncConnection, asking: Asking, table: Table, subject: UUID | None) -> None:
    """Checks that a row belongs to the agent.

    Raises:
        NotFound: the agent has no such row, though another agent of the user may.
    """
    whose = table.c.user_sub == asking.author.user_sub, table.c.agent_key == asking.agent
    if await connection.scalar(select(table.c.id).where(*whose, table.c.id == subject).limit(1)) is None:
        raise NotFound("no recall of this agent has this retrieval_id: pass the one from recall, or for a run none")


async def _run(asking: Asking, given: RememberIn) -> str:
    """Retains the run as a case and returns the confirmation; an equal call with its retrieval stores no second one."""
    parts, author = asking.parts, asking.author
    parts.admission.backlog.check(author.user_sub)
    run = FinishedRun(
        agent=asking.agent,
        task=given.text or "",
        outcome=given.outcome or "unknown",
        plan=given.steps or [],
        retrieval_id=given.retrieval_id,
    )
    prepared = await asyncio.to_thread(prepare, run)
    key = None
    if given.retrieval_id is not None:
        async with parts.database.as_user(author.user_sub, author.authorised_at) as connection:
            await _check_agent(connection, asking, decisions, given.retrieval_id)
            words = await parts.keyring.find_or_make(connection, author.user_sub)
        key = f"memory-tools:{words.hash_of_call(prepared.request_hash).hex()}"
    retained = await store(parts.database, parts.keyring, prepared, author, key)
    parts.admission.backlog.took(author.user_sub)
    parts.worker.wake()
    return f"Stored as run {retained.case_id}" + (", joined to its recall." if retained.retrieval_id else ".")

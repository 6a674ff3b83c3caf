"""The tools that write: a fact, a finished run or feedback is kept, and a fact or procedure is taken out of use.

What a model says is its own word and no user's: a fact is marked as said by the assistant, and a reward as a guess, so
that no text that a model read somewhere can pass for the user's judgement. Nothing is deleted or written over.
"""

import asyncio
import hashlib
from collections.abc import Mapping
from contextlib import suppress
from typing import cast
from uuid import UUID

from sqlalchemy import Table, select
from sqlalchemy.ext.asyncio import AsyncConnection

from app.memory_tools.asking import Asking
from app.schemas.memory_tools import ForgetIn, RememberIn, RunEnd
from retrieval.errors import NotFound
from retrieval.tables.decisions import decisions
from retrieval.tables.kinds import FactKind, RewardSource
from retrieval.tables.procedures import procedures
from retrieval.telemetry import REWARDS
from writer.facts.by_hand import FactWritten, write_fact
from writer.facts.close import close_fact
from writer.procedures.pinning import retire
from writer.retain.prepare import prepare
from writer.retain.retain import store
from writer.rewards.feedback import Feedback, give_feedback
from writer.run import FinishedRun

REWARD: Mapping[RunEnd, float] = {"success": 1.0, "partial": 0.5, "failure": 0.0}
GUESS: RewardSource = "heuristic"
"""The source of a reward that a model gives."""


async def remember(asking: Asking, given: RememberIn) -> str:
    """Keeps what the model says, and returns what became of it.

    Raises:
        NotFound: feedback with a receipt that the agent does not have.
        UnknownReference: a run with the receipt of another agent's recall.
        NotNow: too many of the user's runs wait already.
        SecretInName: the agent's name looks like a secret.
    """
    if given.kind == "run":
        return await _run(asking, given)
    if given.kind == "feedback":
        return await _feedback(asking, given)
    return await _fact(asking, given)


async def forget(asking: Asking, given: ForgetIn) -> str:
    """Ends a fact of the agent, or retires a procedure; a person can look at either, and bring it back.

    Raises:
        NotFound: there is neither of that id.
    """
    author = asking.author
    async with asking.parts.database.as_user(author.user_sub, author.authorised_at) as connection:
        with suppress(NotFound):
            await close_fact(connection, author, asking.agent, given.id)
            return "The fact holds no more; it stays readable as what held before."
        with suppress(NotFound):
            await _check_agent(connection, asking, procedures, given.id)
            await retire(connection, author, given.id)
            return "The procedure is out of use; it stays readable, and pinning it brings it back."
    raise NotFound("no fact and no procedure in use has this id; finished runs are deleted by the user, not by a tool")


async def _check_agent(connection: AsyncConnection, asking: Asking, table: Table, subject: UUID | None) -> None:
    """Lets through what is of the agent that asks.

    Raises:
        NotFound: the agent has no such thing, though another one of the user may.
    """
    whose = table.c.user_sub == asking.author.user_sub, table.c.agent_key == asking.agent
    if await connection.scalar(select(table.c.id).where(*whose, table.c.id == subject).limit(1)) is None:
        raise NotFound("no recall of this agent has this receipt")


async def _fact(asking: Asking, given: RememberIn) -> str:
    kind = cast("FactKind", given.kind)
    written = FactWritten(agent=asking.agent, kind=kind, text=given.text or "", said_by="assistant")
    fact_id = await write_fact(asking.parts.database, asking.parts.keyring, written, asking.author)
    return f"Kept as {kind} {fact_id}, marked as the assistant's word."


async def _run(asking: Asking, given: RememberIn) -> str:
    """Retains the run; the same again with the same receipt is the same run."""
    parts, author = asking.parts, asking.author
    parts.admission.backlog.check(author.user_sub)
    run = FinishedRun(
        agent=asking.agent,
        task=given.text or "",
        outcome=given.outcome or "unknown",
        plan=given.steps or [],
        retrieval_id=given.receipt,
    )
    prepared = await asyncio.to_thread(prepare, run)
    key = None if given.receipt is None else _key(given)
    retained = await store(parts.database, parts.keyring, prepared, author, key)
    parts.admission.backlog.took(author.user_sub)
    parts.worker.wake()
    return f"Kept as run {retained.case_id}" + (", joined to its recall." if retained.retrieval_id else ".")


def _key(given: RememberIn) -> str:
    return "memory-tools:" + hashlib.sha256(given.model_dump_json().encode()).hexdigest()


async def _feedback(asking: Asking, given: RememberIn) -> str:
    author = asking.author
    reward = Feedback(REWARD[given.outcome or "failure"], GUESS, decision_id=given.receipt)
    async with asking.parts.database.as_user(author.user_sub, author.authorised_at) as connection:
        await _check_agent(connection, asking, decisions, given.receipt)
        reached = await give_feedback(connection, author.user_sub, author.actor, reward)
    REWARDS.labels(GUESS).inc()
    return f"Noted as a guess: {reward.reward:g}. What counts now is {reached.reward:g}, from {reached.source}."

"""Runs that are retained, finished and rewarded, and the procedures that the bank then holds."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import select

from app.providers.wordllama import WordLlamaEmbedder
from retrieval.ranking.retrieved import Question, Retrieved
from retrieval.retrieve import Reader
from retrieval.search.candidates import CaseSearch
from retrieval.tables.audit import audit
from retrieval.tables.procedures import procedures
from tests.writer.conftest import AGENT, Bank
from writer.queue.worker import Worker
from writer.retain.retain import retain
from writer.run import FinishedRun

EMBEDDER = WordLlamaEmbedder()


TASK = "Restart the web server"


PLAN = ["drain the connections", "restart the unit", "look at the health page"]


DAY = timedelta(days=1)


async def finish(bank: Bank, user: str, task: str = TASK, worker: dict[str, Any] | None = None, **more: Any) -> UUID:
    """Retains the run and lets the worker finish it."""
    run = FinishedRun.model_validate({"agent": AGENT, "task": task, "outcome": "success", **more})
    case_id = (await retain(bank.database, bank.keyring, run, bank.author(user))).case_id
    while await Worker(bank.database, EMBEDDER, bank.keyring, **(worker or {})).run_once():
        pass
    return case_id


def calls(*tools: str, failing: str = "") -> list[dict[str, Any]]:
    return [
        {"tool": tool, "input": {"host": "web-1"}, "output": "Error: not found" if tool == failing else "done"}
        for tool in tools
    ]


async def stored(bank: Bank, user: str) -> list[Any]:
    mine = select(procedures).where(procedures.c.user_sub == user)
    return await bank.read(user, mine.order_by(procedures.c.id, procedures.c.version))


async def the_one(bank: Bank, user: str) -> Any:
    (row,) = await stored(bank, user)
    return row


async def noted(bank: Bank, user: str, action: str) -> list[Any]:
    return await bank.read(user, select(audit).where(audit.c.user_sub == user, audit.c.action == action))


async def ask(bank: Bank, user: str, query: str = TASK, **more: Any) -> Retrieved:
    reader = Reader(bank.database, EMBEDDER)
    return await reader.retrieve(user, datetime.now(UTC), Question(CaseSearch(AGENT, query), **more))


async def ended(bank: Bank, user: str, slate: Retrieved, reward: float, used: Sequence[UUID] | None = None) -> UUID:
    """Finishes a run, without anything to learn from, that began with the slate."""
    said = {} if used is None else {"used_procedure_ids": [str(each) for each in used]}
    more = {"retrieval_id": slate.retrieval_id, "reward": reward, "reward_source": "user", **said}
    return await finish(bank, user, f"run {uuid4()}", outcome="success" if reward > 0.5 else "failure", **more)


async def failing_run(bank: Bank, user: str, procedure_id: UUID, **more: Any) -> None:
    traces = calls("drain", "restart", failing="restart")
    more = {"outcome": "failure", "used_procedure_ids": [str(procedure_id)], **more}
    await finish(bank, user, f"run {uuid4()}", tool_traces=traces, **more)


async def versions(bank: Bank, user: str, procedure_id: UUID) -> list[tuple[int, str]]:
    return [(row.version, row.status) for row in await stored(bank, user) if row.id == procedure_id]


async def two_versions(bank: Bank, user: str, parent_reward: float) -> UUID:
    """A procedure whose second version superseded a first one that had been used and rewarded five times."""
    await finish(bank, user, tool_traces=calls("drain", "restart"))
    row = await the_one(bank, user)
    for _ in range(5):
        await ended(bank, user, await ask(bank, user), parent_reward)
    await failing_run(bank, user, row.id)
    assert await versions(bank, user, row.id) == [(1, "superseded"), (2, "active")]
    return row.id


async def use(bank: Bank, user: str, procedure_id: UUID, reward: float) -> None:
    slate = await ask(bank, user)
    assert procedure_id in [each.id for each in slate.procedures]
    await ended(bank, user, slate, reward, [procedure_id])


class Renamed(WordLlamaEmbedder):
    """The same vectors under another name, and so of another space."""

    model = "another space"

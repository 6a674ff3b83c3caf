"""Steps of runs and turns of sessions, sent one by one."""

from typing import Any
from uuid import UUID

from sqlalchemy import select

from retrieval.tables.runs import runs
from tests.writer.conftest import AGENT, Bank
from writer.retain.steps import StepsTaken, append_steps, prepare_steps
from writer.sessions.append import AppendedTurns, append_turns
from writer.sessions.prepare import TurnsTold, prepare_turns


async def take_step(bank: Bank, user: str, run_id: UUID, number: int = 1, task: str = "water the garden") -> None:
    taken = {"agent": AGENT, "task": task, "steps": [{"number": number, "tool": "pour", "output": f"{number} l"}]}
    steps = prepare_steps(StepsTaken.model_validate(taken))
    await append_steps(bank.database, bank.keyring, run_id, steps, bank.author(user))


async def say(bank: Bank, user: str, name: str, text: str) -> AppendedTurns:
    told = TurnsTold.model_validate({"agent": AGENT, "turns": [{"role": "user", "content": text}]})
    return await append_turns(bank.database, bank.keyring, name, prepare_turns(told), bank.author(user))


async def run_row(bank: Bank, user: str, run_id: UUID) -> Any:
    (row,) = await bank.read(user, select(runs).where(runs.c.user_sub == user, runs.c.id == run_id))
    return row

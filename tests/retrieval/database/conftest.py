"""A bank of two users with a row of theirs in every table."""

import os
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import asyncpg
import pytest
from sqlalchemy import Table
from sqlalchemy.dialects.postgresql import insert as upsert

from app.db import SERVICE_ROLE, service_database
from app.providers.wordllama import WordLlamaEmbedder
from retrieval.database.database import Database
from retrieval.ranking.slate import Question
from retrieval.retrieve import Reader
from retrieval.schema import case_tools, llm_usage, metadata
from retrieval.search.candidates import Search
from tests.policies import stored
from writer.author import Author
from writer.privacy.keys import Keyring
from writer.retain.retain import retain
from writer.rewards.feedback import Feedback, give_feedback
from writer.rights.erase import erase
from writer.run import FinishedRun
from writer.training import lifecycle
from writer.worker.worker import Worker

A, B, GONE = "alice", "bob", "carol"
TABLES = list(metadata.tables.values())
NAMES = [table.name for table in TABLES]
LESSON = {
    "procedure_name": "turn the tap",
    "semantic_description": "how to water",
    "initial_failure_summary": "no water",
    "identified_root_cause": "the tap was closed",
    "successful_intervention": "opened it",
    "learned_procedure_steps": ["turn the tap"],
    "example_scenario_abstract": "watering",
}


def others(user: str, case_id: UUID) -> dict[Table, dict[str, Any]]:
    """Rows of the tables that only runs with tools or a language model fill."""
    mine = {"user_sub": user, "agent_key": "gardener"}
    used = {"case_id": case_id, "tool": "tap", "calls": 1, "errors": 0, "forms": [], "failures": []}
    told = {"purpose": "analyse", "calls": 1, "failures": 0, "prompt_tokens": 1, "completion_tokens": 1}
    return {case_tools: mine | used, llm_usage: mine | told | {"day": datetime.now(UTC).date()}}


async def fill(url: str) -> None:
    """Leaves a row of Alice and of Bob in every table that holds users' rows, and a tombstone of Carol."""
    async with service_database(url) as database:
        await _fill(database)


async def _fill(database: Database) -> None:
    embedder, keyring = WordLlamaEmbedder(), Keyring(os.urandom(32))
    for user in (A, B, GONE):
        author = Author(user, user, datetime.now(UTC))
        run = {"agent": "gardener", "task": f"water the garden of {user}", "outcome": "success"}
        kept = await retain(
            database, keyring, FinishedRun.model_validate({**run, "procedure": {"data": LESSON}}), author
        )
        while await Worker(database, embedder, keyring).run_once():
            pass
        question = Question(Search(agent_key="gardener", query="garden"))
        slate = await Reader(database, embedder).retrieve(user, author.authorised_at, question)
        assert [choice.row.id for choice in slate.choices] == [kept.case_id]
        async with database.as_user(user, author.authorised_at) as connection:
            await give_feedback(connection, user, user, Feedback(1.0, "user", case_id=kept.case_id))
            await lifecycle.add(connection, user, "gardener", stored())
            for table, row in others(user, kept.case_id).items():
                await connection.execute(upsert(table).values(row).on_conflict_do_nothing())
    assert (await erase(database, GONE)).clean


@dataclass(frozen=True)
class Bank:
    """The same database, as its owner and as the plain role of the service."""

    url: str
    owner: asyncpg.Connection
    service: asyncpg.Connection

    async def become(self, user: str) -> None:
        """Sets the user until the transaction ends."""
        await self.service.execute("SELECT set_config('app.user_sub', $1, true)", user)


@pytest.fixture(scope="module")
async def filled(database_url: str) -> str:
    await fill(database_url)
    return database_url


@pytest.fixture
async def bank(filled: str) -> AsyncIterator[Bank]:
    """Every change is rolled back."""
    owner, service = [await asyncpg.connect(filled.replace("+asyncpg", "")) for _ in range(2)]
    await service.execute(f"SET ROLE {SERVICE_ROLE}")
    change = service.transaction()
    await change.start()
    yield Bank(filled, owner, service)
    await change.rollback()
    await owner.close()
    await service.close()


async def owners_of(connection: asyncpg.Connection, table: str) -> set[str]:
    return {row["user_sub"] for row in await connection.fetch(f"SELECT user_sub FROM {table}")}  # noqa: S608
